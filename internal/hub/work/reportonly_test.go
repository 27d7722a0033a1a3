package work

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
)

// onlyReports has a binding report, and moves it to a snapshot at the same time.
func (f *fixture) onlyReports(b *placementv1.ClusterResourceBinding, snapshot string) {
	f.t.Helper()
	f.edit(b, func(s *placementv1.ResourceBindingSpec) {
		s.ResourceSnapshotName, s.ApplyStrategy = snapshot, &placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff}
	})
}

func (f *fixture) awaitIndex(short string, part int, index string) {
	f.t.Helper()
	framework.Await(f.t, f, f.work(short, part), "carries snapshot "+index, func(w *placementv1.Work) bool {
		return w.Labels[placementv1.LabelParentSnapshotIndex] == index
	})
}

// A part that the snapshot of a report-only binding has no more stays, and does not go on applying what it has; it goes when
// the binding applies again.
func TestReportOnlyKeepsWhatIsNotSelectedAnyMore(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"}, []string{"b"})
	f.snapshot(1, []string{"a"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	f.onlyReports(b, f.Name+"-1-snapshot")
	f.awaitIndex("c", 0, "1")
	f.writes()
	second := f.work("c", 1)
	if !second.DeletionTimestamp.IsZero() || isConfirmed(second) || !second.Spec.ApplyStrategy.ReportsOnly() {
		t.Fatalf("the part that is not needed is %+v, with strategy %+v", second.ObjectMeta, second.Spec.ApplyStrategy)
	}
	f.Stop() // a hub that starts then leaves it alone as well
	f.Start()
	if got := f.writes(); got["patch *v1.Work"]+got["update *v1.Work"]+got["delete *v1.Work"] > 0 {
		t.Errorf("writes %v, want none of Works", got)
	}
	f.tells(a, nil, nil)

	f.edit(b, func(s *placementv1.ResourceBindingSpec) { s.ApplyStrategy = &placementv1.ApplyStrategy{} })
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	framework.AwaitGone(t, f, second)
	f.tells(a, []string{second.Name}, nil)
}

// It carries its part again when there is one again, and goes with a binding that is deleted.
func TestReportOnlyPartIsUsedAgain(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"}, []string{"b"})
	f.snapshot(1, []string{"a"})
	f.snapshot(2, []string{"a"}, []string{"c"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	second := f.work("c", 1)
	f.onlyReports(b, f.Name+"-1-snapshot")
	f.awaitIndex("c", 0, "1")
	f.onlyReports(b, f.Name+"-2-snapshot")
	f.awaitIndex("c", 1, "2")
	if again := f.work("c", 1); again.UID != second.UID {
		t.Error("the part was made anew")
	}
	f.onlyReports(b, f.Name+"-1-snapshot")
	f.awaitIndex("c", 0, "1")
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{second.Name, f.Name + "-work"}, nil)
}

// Deleted by somebody, it goes, and nothing is removed from the member.
func TestReportOnlyPartIsDeletedByAccident(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"}, []string{"b"})
	f.snapshot(1, []string{"a"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	second := f.work("c", 1)
	f.onlyReports(b, f.Name+"-1-snapshot")
	f.awaitIndex("c", 0, "1")
	f.delete(second)
	framework.AwaitGone(t, f, second)
	f.tells(a, nil, []string{second.Name})
}
