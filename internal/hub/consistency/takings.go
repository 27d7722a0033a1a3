package consistency

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Takings is what several controllers that take clusters from placements share, so that together they take no more than one
// of them would: while one decides and writes, the others leave the placement alone, and what one has deleted is gone for all
// of them. Its zero value is ready for use.
type Takings struct {
	// Deleted are bindings that were deleted, and that a cache may still show as if they had not been.
	Deleted Awaited[types.UID]

	mu    sync.Mutex
	locks map[types.NamespacedName]*taking
}

type taking struct {
	sync.Mutex
	users int
}

// Lock waits until nobody else works on a placement, and returns what ends it.
func (t *Takings) Lock(placement types.NamespacedName) (unlock func()) {
	t.mu.Lock()
	if t.locks == nil {
		t.locks = map[types.NamespacedName]*taking{}
	}
	l := t.locks[placement]
	if l == nil {
		l = &taking{}
		t.locks[placement] = l
	}
	l.users++
	t.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.locks, placement)
		}
	}
}
