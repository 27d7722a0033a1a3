package placement

import (
	"sync"
	"time"

	model "github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/utils/clock"
)

const (
	// quietFor is how long nothing that a placement selects must have changed before it is looked at, so that applying a
	// folder makes one revision.
	quietFor = 200 * time.Millisecond
	// quietAtMost is how long that is waited for.
	quietAtMost = 800 * time.Millisecond
)

// quiet knows which placements have changes that were not looked at yet, and when they may be. It may be used by several
// goroutines at once.
type quiet struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since map[model.Key]unrest // only of placements that have changes
}

// unrest is the time of the first and of the last change.
type unrest struct{ first, last time.Time }

// touch notes a change. It tells whether it is the first since the placement was last looked at.
func (q *quiet) touch(key model.Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	u, more := q.since[key]
	if !more {
		u.first = now
	}
	u.last = now
	if q.since == nil {
		q.since = map[model.Key]unrest{}
	}
	q.since[key] = u
	return !more
}

// wait tells whether there are changes, and for how long they have to wait.
func (q *quiet) wait(key model.Key) (after time.Duration, changed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u, changed := q.since[key]
	if !changed {
		return 0, false
	}
	now := q.clock.Now()
	return max(0, min(u.last.Add(quietFor).Sub(now), u.first.Add(quietAtMost).Sub(now))), true
}

// settle says that all changes up to now are being looked at, or that nobody will.
func (q *quiet) settle(key model.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.since, key)
}
