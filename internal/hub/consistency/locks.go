package consistency

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Locks is a lock for each object of a kind. Its zero value is ready for use.
type Locks struct {
	mu   sync.Mutex
	held map[types.NamespacedName]*lock // only those that somebody holds or waits for
}

type lock struct {
	sync.Mutex
	users int
}

// Lock waits until nobody else works on an object, and returns what ends it.
func (l *Locks) Lock(object types.NamespacedName) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[types.NamespacedName]*lock{}
	}
	one := l.held[object]
	if one == nil {
		one = &lock{}
		l.held[object] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, object)
		}
	}
}
