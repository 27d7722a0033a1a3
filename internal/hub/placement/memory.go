package placement

import (
	"sync"
	"time"

	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what the hub remembers of a placement between two looks at it. All of it can be found out again.
type memory struct {
	uid types.UID
	// touched is the generation whose selectors have been, or are about to be, evaluated; evaluated the one whose have been.
	touched, evaluated int64
	// problem is what was wrong with the last evaluation; nil if nothing was.
	problem *rollup.Problem
	// obstacle is what keeps the policy's snapshot from being made; nil if nothing does.
	obstacle *rollup.Problem
	// pending is since when there is no snapshot of an override as it is; zero where there is.
	pending time.Time
	// unmatched are the selectors that found nothing in it.
	unmatched []model.Selector
	// foundNothing is what the status says of selectors that find nothing.
	foundNothing string
	// failures counts the evaluations in a row that could not read everything; retry is when to try again.
	failures int
	retry    time.Time
	// roots are what the selectors found last.
	roots map[schema.GroupKind][]string
	// revision is the last resource snapshot that was made or found, and when; nil before the first.
	revision *snapshots.Revision
	revised  time.Time
	// written is when the status was last written, and looked when it was last found that what is new may wait.
	written, looked time.Time
	// removing tells that the removal of the placement has begun.
	removing bool
	// told are the snapshots for which the events of conditions were recorded last, by condition.
	told map[string]string
}

// memories are those of all placements.
type memories struct {
	mu  sync.Mutex
	all map[model.Key]*memory
}

// of returns the memory of a placement. It belongs to whoever looks at the placement, of whom there is one at a time.
func (m *memories) of(key model.Key, uid types.UID) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[model.Key]*memory{}
	}
	found := m.all[key]
	if found == nil || found.uid != uid {
		found = &memory{uid: uid, told: map[string]string{}}
		m.all[key] = found
	}
	return found
}

func (m *memories) forget(key model.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}
