package work

import (
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const notYet = "False/" + placementv1.ReasonWorkNotSynchronizedYet

// placed is a fixture with one cluster on snapshot 0.
func placed(t *testing.T) (*fixture, *agent, *placementv1.ClusterResourceBinding) {
	t.Helper()
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"})
	f.snapshot(1, []string{"b"})
	return f, a, f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
}

func (f *fixture) delete(o client.Object) {
	f.t.Helper()
	if err := f.Delete(f.t.Context(), o); client.IgnoreNotFound(err) != nil {
		f.t.Fatalf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// leave has the user delete the MemberCluster; gone has the hub finish that.
func (f *fixture) leave(short string) {
	f.t.Helper()
	f.delete(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster(short)}})
}

func (f *fixture) gone(short string) {
	f.t.Helper()
	f.LetGo(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster(short)}})
}

func (f *fixture) tells(a *agent, wantRemoved, wantReleased []string) {
	f.t.Helper()
	removed, released := a.story()
	if diff := cmp.Diff([][]string{wantRemoved, wantReleased}, [][]string{removed, released}); diff != "" {
		f.t.Errorf("the agent removed and released (-want +got):\n%s", diff)
	}
}

// A deleted binding goes when its agent has removed what was placed, and no write is made that is not needed.
func TestDeletion(t *testing.T) {
	f, a, b := placed(t)
	f.writes()
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{f.Name + "-work"}, nil)
	want := map[string]int{"patch *v1.Work": 2, "delete *v1.Work": 1, "patch *v1.ClusterResourceBinding": 1}
	got := f.writes()
	delete(got, "status *v1.ClusterResourceBinding") // on a slow machine it is said that it takes a while
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// While an agent does not answer, or cannot remove, the binding stays and says so.
func TestDeletionWaits(t *testing.T) {
	f, a, b := placed(t)
	a.be(silent)
	f.delete(b)
	f.await(b, placementv1.ConditionWorkSynchronized, notYet)
	if m := f.message(b, placementv1.ConditionWorkSynchronized); !strings.Contains(m, f.Cluster("c")) {
		t.Errorf("message %q does not name the cluster", m)
	}
	a.be(clinging)
	framework.Await(t, f, b, "quotes the member", func(b *placementv1.ClusterResourceBinding) bool {
		return strings.Contains(f.message(b, placementv1.ConditionWorkSynchronized), "the member does not let go of it")
	})
	f.Stop() // a hub that starts in the middle goes on
	f.Start()
	a.be("")
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{f.Name + "-work"}, nil)
}

// A binding that was never bound has nothing to wait for.
func TestDeletionOfNothing(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	b := f.bind("c", 7)
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(a, nil, nil)
}

// A Work that somebody deletes comes back, and nothing is removed from the member.
func TestWorkDeletedByAccident(t *testing.T) {
	f, a, b := placed(t)
	before := f.work("c", 0)
	f.delete(before)
	framework.Await(t, f, &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Name: before.Name, Namespace: before.Namespace}}, "is made again",
		func(w *placementv1.Work) bool { return w.UID != before.UID })
	f.tells(a, nil, []string{f.Name + "-work"})
	f.await(b, placementv1.ConditionAvailable, isAvailable)
}

// While the agent has not answered for the accident, the binding says what it waits for; deleted then, it removes after all.
func TestDeletionAfterAccident(t *testing.T) {
	f, a, b := placed(t)
	a.be(silent)
	w := f.work("c", 0)
	f.delete(w)
	f.await(b, placementv1.ConditionWorkSynchronized, notYet)
	f.delete(b)
	framework.Await(t, f, w, "is confirmed", isConfirmed)
	a.be("")
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{f.Name + "-work"}, nil)
}

// The same where the agent had answered that it left everything alone: that is no answer to the confirmed removal.
func TestAnswerToTheAccidentIsNoneToTheRemoval(t *testing.T) {
	f, a, b := placed(t)
	f.Stop()
	w := f.work("c", 0)
	f.delete(w)
	framework.Await(t, f, w, "is answered for", func(w *placementv1.Work) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, placementv1.ConditionRemoved)
	})
	f.delete(b)
	f.Start()
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{f.Name + "-work"}, []string{f.Name + "-work"})
}

// A cluster that is leaving keeps what it has, unless its own agent is told otherwise: a deleted binding confirms no removal.
func TestLeavingClusterKeeps(t *testing.T) {
	f, a, b := placed(t)
	f.leave("c")
	f.delete(b)
	f.await(b, placementv1.ConditionWorkSynchronized, notYet)
	if m := f.message(b, placementv1.ConditionWorkSynchronized); !strings.Contains(m, "leaving") {
		t.Errorf("message %q does not say that the cluster is leaving", m)
	}
	if w := f.work("c", 0); isConfirmed(w) || !w.DeletionTimestamp.IsZero() {
		t.Errorf("the Work of a leaving cluster is being removed: %v", w.ObjectMeta)
	}
	f.gone("c")
	framework.AwaitGone(t, f, b)
	if removed, _ := a.story(); len(removed) > 0 {
		t.Errorf("the agent was told to remove %v", removed)
	}
}

// A cluster that is gone is not waited for, and should its agent still be there, it is not told to remove anything.
func TestGoneClusterIsNotWaitedFor(t *testing.T) {
	f, a, b := placed(t)
	a.be(silent)
	f.leave("c")
	f.gone("c")
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(a, nil, nil)

	// Nor where the removal was on its way.
	f, a, b = placed(t)
	a.be(silent)
	f.delete(b)
	f.await(b, placementv1.ConditionWorkSynchronized, notYet)
	f.leave("c")
	f.gone("c")
	framework.AwaitGone(t, f, b)
}

// A cluster that is given up keeps what it has until its binding is deleted, and one that left and came back starts anew.
func TestUnscheduledAndReset(t *testing.T) {
	f, a, b := placed(t)
	f.edit(b, func(s *placementv1.ResourceBindingSpec) {
		s.State, s.ResourceSnapshotName = placementv1.BindingStateUnscheduled, f.Name+"-1-snapshot" // given up before it moved
	})
	f.await(b, placementv1.ConditionWorkSynchronized, notYet)
	if index := f.work("c", 0).Labels[placementv1.LabelParentSnapshotIndex]; index != "0" {
		t.Errorf("the Work of a cluster that was given up was changed to snapshot %s", index)
	}
	f.edit(b, func(s *placementv1.ResourceBindingSpec) { s.State = placementv1.BindingStateBound })
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	f.edit(b, func(s *placementv1.ResourceBindingSpec) { s.State = placementv1.BindingStateUnscheduled })
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	f.edit(b, func(s *placementv1.ResourceBindingSpec) {
		s.State, s.ResourceSnapshotName = placementv1.BindingStateScheduled, ""
	})
	framework.Await(t, f, b, "says nothing of earlier times", func(b *placementv1.ClusterResourceBinding) bool {
		return len(b.Status.Conditions) == 0 && b.Status.ObservedResourceIndex == ""
	})
	f.tells(a, nil, nil)
}

// A Work whose binding is not there is left alone; deleted, it goes when its agent has answered, and nothing is removed.
func TestWorkWithoutBinding(t *testing.T) {
	f, a, b := placed(t)
	w := f.work("c", 0)
	f.Stop()
	f.LetGo(b)
	f.delete(b)
	f.Start()
	f.writes()
	if w := f.work("c", 0); !w.DeletionTimestamp.IsZero() {
		t.Fatal("the Work was deleted since its binding could not be found")
	}
	f.delete(w)
	framework.AwaitGone(t, f, w)
	f.tells(a, nil, []string{f.Name + "-work"})
}

// A rollback is a step back that the binding says; what an old cache says is not believed.
func TestStepBack(t *testing.T) {
	f, _, b := placed(t)
	f.await(f.move(b, 1), placementv1.ConditionAvailable, isAvailable)
	f.await(f.move(b, 0), placementv1.ConditionAvailable, isAvailable)
	if index := f.work("c", 0).Labels[placementv1.LabelParentSnapshotIndex]; index != "0" || b.Status.ObservedResourceIndex != "0" {
		t.Errorf("on snapshot %s, observed %s, want 0", index, b.Status.ObservedResourceIndex)
	}
}

// A binding that somebody deletes though its placement wants it goes, and what it placed stays; made again, it finds its Works
// as they are. When the placement is deleted they go with it, those too that are not labelled as they were.
func TestBindingDeletedByAccident(t *testing.T) {
	f := newFixture(t)
	p := f.Place(placementv1.ExternalRolloutStrategyType)
	t.Cleanup(func() { f.Erase(p) })
	p.Finalizers = []string{placementv1.FinalizerPlacementCleanup}
	if err := f.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	a := f.join("c")
	f.snapshot(0, []string{"a"}, []string{"b"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	before := f.work("c", 0)
	f.writes()
	f.delete(b)
	framework.AwaitGone(t, f, b)
	b = f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	if after := f.work("c", 0); after.UID != before.UID || after.Generation != before.Generation || !after.DeletionTimestamp.IsZero() {
		t.Errorf("the Work was touched: %+v", after.ObjectMeta)
	}
	if got := f.writes(); got["create *v1.Work"]+got["update *v1.Work"]+got["patch *v1.Work"]+got["delete *v1.Work"] > 0 {
		t.Errorf("writes %v, want none of Works", got)
	}
	f.tells(a, nil, nil)

	f.Stop()
	f.delete(p)
	f.Change(f.work("c", 1), `{"metadata":{"labels":null}}`)
	f.Start()
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{f.Name + "-work", f.Name + "-0"}, nil)
}

// A binding that an eviction deletes though its placement wants it takes along what it placed.
func TestEvicted(t *testing.T) {
	f := newFixture(t)
	p := f.Place(placementv1.RollingUpdateRolloutStrategyType)
	t.Cleanup(func() { f.Erase(p) })
	a := f.join("c")
	f.snapshot(0, []string{"a"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	f.Change(b, `{"metadata":{"annotations":{"fleetwright.io/evicted-by":"an-eviction"}}}`)
	f.delete(b)
	framework.AwaitGone(t, f, b)
	f.tells(a, []string{f.Name + "-work"}, nil)
}

// A Work that has lost the label of its binding, and that the next snapshot does not need, is removed all the same.
func TestSurplusThatLostItsLabel(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"}, []string{"b"})
	f.snapshot(1, []string{"a"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	surplus := f.work("c", 1)
	f.Stop()
	f.Change(surplus, `{"metadata":{"labels":{"`+placementv1.LabelParentBinding+`":null}}}`)
	f.move(b, 1)
	f.Start()
	framework.AwaitGone(t, f, surplus)
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	f.tells(a, []string{f.Name + "-0"}, nil)
}
