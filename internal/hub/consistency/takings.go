package consistency

import "k8s.io/apimachinery/pkg/types"

// Takings is what several controllers that take clusters from placements share, so that together they take no more than one
// of them would: while one decides and writes, the others leave the placement alone, and what one has deleted is gone for all
// of them. Its zero value is ready for use.
type Takings struct {
	// Deleted are bindings that were deleted, and that a cache may still show as if they had not been.
	Deleted Awaited[types.UID]

	// Locks has one for each placement.
	Locks
}
