package consistency

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestLocks(t *testing.T) {
	t.Parallel()
	var l Locks
	one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Namespace: "n", Name: "one"}
	unlock := l.Lock(one)
	l.Lock(other)() // does not wait
	var group sync.WaitGroup
	busy := true // the race detector sees whoever does not wait
	for range 20 {
		group.Go(func() {
			defer l.Lock(one)()
			if busy {
				t.Error("two hold the lock of one object")
			}
			busy = true
			busy = false
		})
	}
	busy = false
	unlock()
	group.Wait()
	if len(l.held) != 0 {
		t.Errorf("%d locks are kept that nobody holds", len(l.held))
	}
}
