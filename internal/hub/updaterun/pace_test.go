package updaterun

import (
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPace(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var p pace
	if got := p.wait(now); got > 0 {
		t.Errorf("the first change waits %v", got)
	}
	p.wrote(now)
	if got := p.wait(now.Add(100 * time.Millisecond)); got != 400*time.Millisecond {
		t.Errorf("100 ms after a write the next waits %v", got)
	}
	if got := p.wait(now.Add(-time.Hour)); got != statusPeriod {
		t.Errorf("on a clock that was set back it waits %v", got)
	}
	stored, status := &placementv1.UpdateRunStatus{}, &placementv1.UpdateRunStatus{PolicySnapshotIndexUsed: "1"}
	if !p.hold(stored, status) || p.hold(stored, status) {
		t.Error("a new status is not told from one that waits already")
	}
}

func TestAttempt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{UID: "uid-1", Generation: 1}}
	var a attempt
	if got := a.wait(basisOf(run, p), now); got > 0 {
		t.Errorf("the first attempt waits %v", got)
	}
	a = attempt{of: basisOf(run, p), due: now.Add(unreadRetry)}
	if got := a.wait(basisOf(run, p), now.Add(time.Second)); got != unreadRetry-time.Second {
		t.Errorf("after a second the next attempt waits %v", got)
	}
	if got := a.wait(basisOf(run, p), now.Add(-time.Hour)); got > 0 {
		t.Errorf("on a clock that was set back it waits %v", got)
	}
	if got := a.wait(basisOf(run, nil), now); got > 0 {
		t.Errorf("without its placement it waits %v", got)
	}
	run.Generation++
	if got := a.wait(basisOf(run, p), now); got > 0 {
		t.Errorf("after the run was changed it waits %v", got)
	}
}

func TestUnwritten(t *testing.T) {
	t.Parallel()
	key := placement.Key{Name: "web"}
	r := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{UID: "uid-1"}}
	runs := []placementv1.UpdateRunObject{r}
	var all paces
	all.of(key, runs)[r.UID].hold(&r.Status, &placementv1.UpdateRunStatus{PolicySnapshotIndexUsed: "1"})
	if got := all.of(key, runs).unwritten(runs); got[r.UID] == nil || got[r.UID].PolicySnapshotIndexUsed != "1" {
		t.Errorf("what waits: %v", got)
	}
	r.Status.PolicySnapshotIndexUsed = "7"
	if got := all.of(key, runs).unwritten(runs); len(got) > 0 {
		t.Errorf("a status that somebody else wrote is to be overwritten with %v", got[r.UID])
	}
	other := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{UID: "uid-2"}}
	if got := all.of(key, []placementv1.UpdateRunObject{other}); len(got) != 1 || got[other.UID] == nil {
		t.Errorf("a run that is gone takes memory: %v", got)
	}
	if all.of(key, nil); len(all.all) > 0 {
		t.Errorf("a placement without runs takes memory: %v", all.all)
	}
}

// What waits for an override is looked at soon, and then less and less often.
func TestAttemptsForOverridesSlowDown(t *testing.T) {
	t.Parallel()
	var a attempt
	var waited time.Duration
	for range 8 {
		a.pause = a.next()
		waited += a.pause
	}
	if a.next() != unreadRetry || a.pause != unreadRetry || (&attempt{}).next() != enqueue.Stale || waited < unreadRetry || waited > 4*unreadRetry {
		t.Errorf("after %s the pause is %s, and then %s", waited, a.pause, a.next())
	}
}
