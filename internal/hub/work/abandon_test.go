package work

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
)

// abandoning is a fixture with two clusters on snapshot 0 of a placement whose objects are to stay when it is deleted.
func abandoning(t *testing.T) (*fixture, *placementv1.ClusterResourcePlacement) {
	t.Helper()
	f := newFixture(t)
	p := f.Place(placementv1.RollingUpdateRolloutStrategyType)
	t.Cleanup(func() { f.Erase(p) })
	f.Change(p, `{"metadata":{"finalizers":["`+placementv1.FinalizerPlacementCleanup+`"]},"spec":{"strategy":{"deleteStrategy":{"propagationPolicy":"Abandon"}}}}`)
	f.snapshot(0, []string{"a"}, []string{"b"})
	f.snapshot(1, []string{"a"})
	return f, p
}

// What a deleted placement abandons is released, all parts of it; while the agent has not answered, the binding says so.
func TestAbandonWithThePlacement(t *testing.T) {
	f, p := abandoning(t)
	a := f.join("c")
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	a.be(silent)
	f.delete(p)
	f.delete(b)
	f.await(b, placementv1.ConditionWorkSynchronized, notYet)
	if m := f.message(b, placementv1.ConditionWorkSynchronized); !strings.Contains(m, "to let go of what was placed there") {
		t.Errorf("the binding says %q", m)
	}
	f.Stop() // a hub that starts in the middle goes on
	f.Start()
	a.be("")
	framework.AwaitGone(t, f, b)
	f.tells(a, nil, []string{f.Name + "-0", f.Name + "-work"})
}

// A cluster that is not chosen any more, and a part of a snapshot that is not there any more, are removed: the placement is
// not deleted. Nor does it count that it once said Abandon.
func TestAbandonIsForTheDeletionAlone(t *testing.T) {
	f, p := abandoning(t)
	a := f.join("c")
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	second := f.work("c", 1)
	f.await(f.move(b, 1), placementv1.ConditionAvailable, isAvailable)
	framework.AwaitGone(t, f, second)
	f.edit(b, func(s *placementv1.ResourceBindingSpec) { s.State = placementv1.BindingStateUnscheduled })
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{f.Name + "-0", f.Name + "-work"}, nil)

	d := f.join("d")
	b = f.await(f.bind("d", 1), placementv1.ConditionAvailable, isAvailable)
	f.Change(p, `{"spec":{"strategy":{"deleteStrategy":{"propagationPolicy":"Delete"}}}}`)
	f.delete(p)
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(d, []string{f.Name + "-work"}, nil)
}

// What was on its way out of a cluster when its placement was deleted stays, if nobody has been told to remove it yet.
func TestAbandonWhatWasGivenUpBefore(t *testing.T) {
	f, p := abandoning(t)
	a := f.join("c")
	b := f.await(f.bind("c", 1), placementv1.ConditionAvailable, isAvailable)
	f.edit(b, func(s *placementv1.ResourceBindingSpec) { s.State = placementv1.BindingStateUnscheduled })
	f.Stop()
	f.delete(p)
	f.delete(b)
	f.Start()
	framework.AwaitGone(t, f, b)
	f.tells(a, nil, []string{f.Name + "-work"})
}
