package updaterun

import (
	"maps"
	"sync"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// statusPeriod is the shortest time between two writes of a run's status where the second tells of the progress of clusters
// alone. A stage of fast clusters then takes one write, and not one for each wave of them.
const statusPeriod = 500 * time.Millisecond

// pace is what is remembered of a run between two looks at it: when its status was last written, what was decided since
// that was allowed to wait, and the last attempt to plan it. A hub that is started anew finds all of it out again.
type pace struct {
	written time.Time
	attempt attempt
	// ahead is the status that waits to be written in place of stored; nil where none does.
	stored, ahead *placementv1.UpdateRunStatus
}

// wait returns for how long a status that may wait has to.
func (p *pace) wait(now time.Time) time.Duration {
	return min(p.written.Add(statusPeriod).Sub(now), statusPeriod) // a clock that was set back holds nothing up
}

// hold keeps a status that waits. It tells whether it is another than before.
func (p *pace) hold(stored, status *placementv1.UpdateRunStatus) (changed bool) {
	changed = p.ahead == nil || !equality.Semantic.DeepEqual(p.ahead, status)
	p.stored, p.ahead = stored.DeepCopy(), status.DeepCopy()
	return changed
}

// wrote says that a status was written.
func (p *pace) wrote(now time.Time) {
	p.written = now
	p.settle()
}

// settle says that nothing waits any more.
func (p *pace) settle() { p.stored, p.ahead = nil, nil }

// basis is what an attempt to plan a run rests on, as far as another of it is a reason to try again at once. All else that a
// plan is made from is looked at in the cache first.
type basis struct {
	runGeneration, placementGeneration int64
	placementUID                       types.UID
}

func basisOf(run placementv1.UpdateRunObject, p placementv1.PlacementObject) basis {
	b := basis{runGeneration: run.GetGeneration()}
	if p != nil {
		b.placementGeneration, b.placementUID = p.GetGeneration(), p.GetUID()
	}
	return b
}

// attempt is one to plan a run that came to nothing because something could not be read. Each reads much from the API server,
// and events come often; what could not be read sends none when it can be.
type attempt struct {
	of  basis
	due time.Time // when to try again
	// message says what could not be read; empty where that was an error.
	message string
	// pause is how long it is from an attempt that waited for an override to this one; 0 where it did not.
	pause time.Duration
}

// next is the pause after an attempt that waits for an override: twice the last one, up to the longest.
func (a *attempt) next() time.Duration {
	return min(max(2*a.pause, enqueue.Stale), unreadRetry)
}

// wait returns for how long not to try again; 0 or less where it is due, or rests on something else now.
func (a *attempt) wait(of basis, now time.Time) time.Duration {
	if wait := a.due.Sub(now); a.of == of && wait <= unreadRetry { // more is due to a clock that was set back
		return wait
	}
	return 0
}

// runPaces are those of the runs of one placement, by UID.
type runPaces map[types.UID]*pace

// unwritten are the statuses that wait. One goes with what was stored when it was decided: where somebody has written
// another status meanwhile, that one counts.
func (all runPaces) unwritten(runs []placementv1.UpdateRunObject) map[types.UID]*placementv1.UpdateRunStatus {
	waiting := map[types.UID]*placementv1.UpdateRunStatus{}
	for _, run := range runs {
		p := all[run.GetUID()]
		switch {
		case p == nil || p.ahead == nil:
		case equality.Semantic.DeepEqual(p.stored, run.UpdateRunStatus()):
			waiting[run.GetUID()] = p.ahead
		default:
			p.settle()
		}
	}
	return waiting
}

// paces are those of all placements. Its zero value is ready for use.
type paces struct {
	mu  sync.Mutex
	all map[placement.Key]runPaces
}

// of returns the paces of a placement's runs, and forgets those of runs that are gone. They belong to whoever looks at the
// placement, of whom there is one at a time.
func (p *paces) of(key placement.Key, runs []placementv1.UpdateRunObject) runPaces {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(runs) == 0 {
		delete(p.all, key)
		return nil
	}
	if p.all == nil {
		p.all = map[placement.Key]runPaces{}
	}
	if p.all[key] == nil {
		p.all[key] = runPaces{}
	}
	there := map[types.UID]bool{}
	for _, run := range runs {
		there[run.GetUID()] = true
		if p.all[key][run.GetUID()] == nil {
			p.all[key][run.GetUID()] = &pace{}
		}
	}
	maps.DeleteFunc(p.all[key], func(uid types.UID, _ *pace) bool { return !there[uid] })
	return p.all[key]
}
