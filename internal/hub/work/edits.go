package work

import (
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/types"
)

// edits tells Works that somebody else has written manifests into from those that are as we wrote them. The cache has no
// manifests to compare, but their generation counts every change. Its zero value is ready for use.
type edits struct {
	mu      sync.Mutex
	written map[types.UID]int64 // UID of a Work → generation after our last write of it
}

// wrote takes note of a Work as the API server returned it.
func (e *edits) wrote(w *placementv1.Work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.written == nil {
		e.written = map[types.UID]int64{}
	}
	e.written[w.UID] = w.Generation
}

// by tells whether somebody else has changed a Work's manifests since we wrote them. Of one that was last written by an
// earlier process nothing is known: it is taken for what it says it is.
func (e *edits) by(w *placementv1.Work) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.written == nil {
		e.written = map[types.UID]int64{}
	}
	last, known := e.written[w.UID]
	if !known {
		e.written[w.UID] = w.Generation
		return false
	}
	return w.Generation > last
}

// forget is for a Work that is gone.
func (e *edits) forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.written, uid)
}
