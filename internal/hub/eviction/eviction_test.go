package eviction

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/eviction"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

type fixture struct {
	*framework.Hub
	t       *testing.T
	takings *consistency.Takings
	// recorder has the events, which nobody reads before a test has ended.
	recorder *events.FakeRecorder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t, takings: &consistency.Takings{}, recorder: events.NewFakeRecorder(100)}
	f.Place(placementv1.RollingUpdateRolloutStrategyType)
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		c := &Controller{Client: f.Writes.Count(mgr.GetClient()), APIReader: mgr.GetAPIReader(), Kinds: placement.ClusterKinds(), Clock: clock.RealClock{}, Recorder: f.recorder,
			Takings: f.takings}
		return c.SetupWithManager(mgr)
	})
	return f
}

// placed makes a binding of a cluster that is available.
func (f *fixture) placed(cluster string) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := &placementv1.ClusterResourceBinding{ObjectMeta: f.Owned(placement.BindingName(placement.Key{Name: f.Name}, cluster))}
	b.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	b.Spec = placementv1.ResourceBindingSpec{State: placementv1.BindingStateBound, TargetCluster: cluster, ResourceSnapshotName: f.Name + "-0-snapshot", SchedulingPolicySnapshotName: f.Name + "-0"}
	f.Make(b)
	f.t.Cleanup(func() { f.Erase(b) })
	b.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: placementv1.ReasonAllWorkAreAvailable,
		ObservedGeneration: b.Generation, LastTransitionTime: metav1.Now()}}
	if err := f.Status().Update(f.t.Context(), b); err != nil {
		f.t.Fatal(err)
	}
	return b
}

func (f *fixture) read(b *placementv1.ClusterResourceBinding) {
	f.t.Helper()
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		f.t.Fatalf("read binding %s: %v", b.Name, err)
	}
}

func (f *fixture) evict(cluster string) *placementv1.ClusterResourcePlacementEviction {
	f.t.Helper()
	e := &placementv1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{GenerateName: f.Name + "-"}}
	e.Spec = placementv1.PlacementEvictionSpec{PlacementName: f.Name, ClusterName: cluster}
	f.Make(e)
	f.t.Cleanup(func() { f.Erase(e) })
	return e
}

// outcome waits until an eviction is dealt with, and returns its last condition.
func (f *fixture) outcome(e *placementv1.ClusterResourcePlacementEviction) string {
	f.t.Helper()
	framework.Await(f.t, f, e, "is dealt with", eviction.Finished)
	c := meta.FindStatusCondition(e.Status.Conditions, placementv1.ConditionExecuted)
	if c == nil {
		c = meta.FindStatusCondition(e.Status.Conditions, placementv1.ConditionValid)
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

// Several at once take no more than the budget lets them; one is dealt with once.
func TestBudgetHolds(t *testing.T) {
	f := newFixture(t)
	budget := &placementv1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(2))
	f.Make(budget)
	t.Cleanup(func() { f.Erase(budget) })
	var evictions []*placementv1.ClusterResourcePlacementEviction
	var bindings []*placementv1.ClusterResourceBinding
	for _, cluster := range []string{"a", "b", "c"} {
		bindings = append(bindings, f.placed(cluster))
	}
	for _, cluster := range []string{"a", "b", "c"} {
		evictions = append(evictions, f.evict(cluster))
	}
	executed := 0
	for _, e := range evictions {
		switch got, _, _ := strings.Cut(f.outcome(e), "; "); got {
		case "True/ClusterResourcePlacementEvictionExecuted: Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 3, totalPlacements: 3":
			executed++
		case "False/ClusterResourcePlacementEvictionNotExecuted: Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 3":
		default:
			t.Errorf("an eviction says %q", got)
		}
	}
	if executed != 1 {
		t.Errorf("%d evictions were executed, want 1", executed)
	}
	for _, b := range bindings {
		f.read(b)
		if gone, marked := !b.DeletionTimestamp.IsZero(), b.Annotations[placementv1.AnnotationEvictedBy] != ""; gone != marked {
			t.Errorf("binding %s is being deleted: %v, and says that an eviction does it: %v", b.Name, gone, marked)
		}
	}
	// A budget that is lifted does not make one that was blocked come back.
	f.Change(budget, `{"spec":{"minAvailable":0}}`)
	f.outcome(f.evict("nowhere"))
	for _, e := range evictions {
		before := e.ResourceVersion
		if f.outcome(e); e.ResourceVersion != before {
			t.Errorf("eviction %s, which was dealt with, was written again", e.Name)
		}
	}
}

// A hub that crashed between the mark and the deletion leaves a mark. Where the eviction is blocked by now it is taken off: else
// a deletion by accident would be taken for one that is meant.
func TestMarkIsTakenOff(t *testing.T) {
	f := newFixture(t)
	b := f.placed("a")
	budget := &placementv1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
	f.Make(budget)
	t.Cleanup(func() { f.Erase(budget) })
	unlock := f.takings.Lock(placement.Key{Name: f.Name})
	e := f.evict("a")
	f.Change(b, `{"metadata":{"annotations":{"fleetwright.io/evicted-by":"`+string(e.UID)+`"}}}`)
	unlock()
	f.outcome(e)
	f.read(b)
	if by := b.Annotations[placementv1.AnnotationEvictedBy]; by != "" || !b.DeletionTimestamp.IsZero() {
		t.Errorf("the binding, whose eviction was blocked, is marked as evicted by %q, deleted at %v", by, b.DeletionTimestamp)
	}
}

// None is decided on while the rolling update works on the placement, so that what that one writes counts; and what is evicted is
// known to the rolling update before its cache shows it.
func TestSharesWithTheRollingUpdate(t *testing.T) {
	f := newFixture(t)
	a, b := f.placed("a"), f.placed("b")
	budget := &placementv1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
	f.Make(budget)
	t.Cleanup(func() { f.Erase(budget) })
	unlock := f.takings.Lock(placement.Key{Name: f.Name})
	e := f.evict("a")
	f.Change(b, `{"spec":{"resourceSnapshotName":"`+f.Name+`-1-snapshot"}}`)
	unlock()
	if got := f.outcome(e); got != "False/ClusterResourcePlacementEvictionNotExecuted: Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 1, totalPlacements: 2; ClusterResourcePlacementDisruptionBudget "+f.Name+" has minAvailable 1: evict again when more clusters are available, or change it" {
		t.Errorf("while another cluster is being updated, the eviction says %q", got)
	}
	f.Change(budget, `{"spec":{"minAvailable":0}}`)
	f.outcome(f.evict("a"))
	if !f.takings.Deleted.Has(a.UID, metav1.Now().Time) {
		t.Error("the rolling update does not know of what was evicted")
	}
	if got := f.outcome(f.evict("a")); got != "True/ClusterResourcePlacementEvictionExecuted: Eviction is allowed, resources propagated by placement is currently being removed from cluster targeted by eviction" {
		t.Errorf("another eviction says %q", got)
	}
}

func TestInvalid(t *testing.T) {
	f := newFixture(t)
	f.placed("a")
	if got := f.outcome(f.evict("b")); got != "False/ClusterResourcePlacementEvictionInvalid: Failed to find scheduler decision for placement in cluster targeted by eviction; ClusterResourcePlacement \""+f.Name+"\" has nothing in cluster \"b\": its status has the clusters where it has; make another eviction with the right clusterName" {
		t.Errorf("on a cluster without it, the eviction says %q", got)
	}
	e := &placementv1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: f.Name + "-none"}}
	e.Spec = placementv1.PlacementEvictionSpec{PlacementName: f.Name + "-none", ClusterName: "a"}
	f.Make(e)
	t.Cleanup(func() { f.Erase(e) })
	if got := f.outcome(e); got != "False/ClusterResourcePlacementEvictionInvalid: Failed to find ClusterResourcePlacement targeted by eviction; there is no ClusterResourcePlacement \""+f.Name+"-none\": make another eviction with the right placementName" {
		t.Errorf("of no placement, the eviction says %q", got)
	}
}

// event returns the next event.
func (f *fixture) event() string {
	f.t.Helper()
	select {
	case e := <-f.recorder.Events:
		return e
	case <-time.After(time.Minute):
		f.t.Fatal("no event came")
		return ""
	}
}

// counted is how many evictions were dealt with, by result and by what blocked them.
func counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatalf("gather metrics: %v", err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "fleetwright_evictions_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			values := map[string]string{}
			for _, label := range m.GetLabel() {
				values[label.GetName()] = label.GetValue()
			}
			if len(values) != 2 {
				t.Errorf("labels %v, want result and by alone: others have as many values as there are objects", values)
			}
			counts[values["result"]+" "+values["by"]] = m.GetCounter().GetValue()
		}
	}
	return counts
}

// Operators are told of every eviction once: on the eviction, and on the placement that it was from.
func TestTells(t *testing.T) {
	f := newFixture(t)
	before := counted(t)
	budget := &placementv1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
	f.Make(budget)
	t.Cleanup(func() { f.Erase(budget) })
	f.placed("a")
	want := func(e *placementv1.ClusterResourcePlacementEviction, eventType, reason, note string, onPlacement bool) {
		t.Helper()
		f.outcome(e)
		where := " from cluster " + e.Spec.ClusterName + ": " + note
		if got := f.event(); got != eventType+" "+reason+" Placement "+f.Name+where {
			t.Errorf("on the eviction there is event %q, want %s %s %q", got, eventType, reason, note)
		}
		if !onPlacement {
			return
		}
		if got := f.event(); got != eventType+" "+reason+" Eviction "+e.Name+where {
			t.Errorf("on the placement there is event %q, want %s %s %q", got, eventType, reason, note)
		}
	}
	want(f.evict("a"), "Warning", placementv1.ReasonEvictionNotExecuted, "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 1, totalPlacements: 1; "+
		"ClusterResourcePlacementDisruptionBudget "+f.Name+" has minAvailable 1: evict again when more clusters are available, or change it", true)
	want(f.evict("b"), "Warning", placementv1.ReasonEvictionInvalid, "Failed to find scheduler decision for placement in cluster targeted by eviction; ClusterResourcePlacement \""+f.Name+
		"\" has nothing in cluster \"b\": its status has the clusters where it has; make another eviction with the right clusterName", false)
	f.Change(budget, `{"spec":{"minAvailable":0}}`)
	want(f.evict("a"), "Normal", placementv1.ReasonEvictionExecuted, "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 1, totalPlacements: 1", true)
	if n := len(f.recorder.Events); n > 0 {
		t.Errorf("there are %d more events", n)
	}
	after := counted(t)
	for what, n := range map[string]float64{"Blocked minAvailable": 1, "Invalid ": 1, "Executed ": 1, "Blocked maxUnavailable": 0} {
		if got := after[what] - before[what]; got != n {
			t.Errorf("%q was counted %v times, want %v", what, got, n)
		}
	}
}
