package rolling

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// fixture is one placement, with a hub that runs this controller alone.
type fixture struct {
	*framework.Hub
	t         *testing.T
	placement *placementv1.ClusterResourcePlacement
	clock     *clocktesting.FakePassiveClock
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t, clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))}
	f.placement = f.Place(placementv1.RollingUpdateRolloutStrategyType)
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		c := &Controller{Client: f.Writes.Count(mgr.GetClient()), Kinds: placement.ClusterKinds(), Clock: f.clock,
			Overrides: overrides.NewFinder(mgr.GetAPIReader(), placement.ClusterKinds())}
		return errors.Join(listing.IndexByCluster(mgr.GetFieldIndexer(), &c.Kinds.Carriage), c.SetupWithManager(mgr))
	})
	return f
}

// snapshot makes an object of a resource snapshot of some parts: 0 is the master.
func (f *fixture) snapshot(index, part, parts int, latest string) *placementv1.ClusterResourceSnapshot {
	f.t.Helper()
	s := &placementv1.ClusterResourceSnapshot{ObjectMeta: f.Owned(placement.ResourceSnapshotName(f.Name, index))}
	s.Labels[placementv1.LabelResourceIndex], s.Labels[placementv1.LabelIsLatestSnapshot] = strconv.Itoa(index), latest
	if part > 0 {
		s.Name = placement.ResourceSnapshotPartName(f.Name, index, part-1)
	} else {
		s.Annotations[placementv1.AnnotationSnapshotCount] = strconv.Itoa(parts)
	}
	s.Spec.SelectedResources = []placementv1.ResourceContent{}
	f.Make(s)
	return s
}

// bind makes a binding as the scheduler does.
func (f *fixture) bind(cluster string, state placementv1.BindingState, snapshot string) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := &placementv1.ClusterResourceBinding{ObjectMeta: f.Owned(placement.BindingName(placement.Key{Name: f.Name}, cluster))}
	b.Spec = placementv1.ResourceBindingSpec{State: state, TargetCluster: cluster, ResourceSnapshotName: snapshot, SchedulingPolicySnapshotName: f.Name + "-0"}
	f.Make(b)
	return b
}

// budget sets the placement's budget.
func (f *fixture) budget(config string) {
	f.t.Helper()
	f.Change(f.placement, `{"spec":{"strategy":{"rollingUpdate":`+config+`}}}`)
}

// report says of clusters what the hub says of them: Available True with a reason, or Applied False with one.
func (f *fixture) report(conditionType string, status metav1.ConditionStatus, reason string, bindings ...*placementv1.ClusterResourceBinding) {
	f.t.Helper()
	for _, b := range bindings {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			f.t.Fatalf("read a binding: %v", err)
		}
		b.Status.Conditions = nil
		for _, c := range []metav1.Condition{{Type: placementv1.ConditionRolloutStarted, Status: metav1.ConditionTrue, Reason: placementv1.ReasonRolloutStarted},
			{Type: conditionType, Status: status, Reason: reason}} {
			c.ObservedGeneration, c.LastTransitionTime = b.Generation, metav1.NewTime(f.clock.Now())
			b.Status.Conditions = append(b.Status.Conditions, c)
		}
		if err := f.Status().Update(f.t.Context(), b); err != nil {
			f.t.Fatalf("write the status of binding %s: %v", b.Name, err)
		}
	}
}

func (f *fixture) available(bindings ...*placementv1.ClusterResourceBinding) {
	f.t.Helper()
	f.report(placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonAllWorkAreAvailable, bindings...)
}

// newSnapshot makes a snapshot the latest, in place of another.
func (f *fixture) newSnapshot(before *placementv1.ClusterResourceSnapshot, index int) *placementv1.ClusterResourceSnapshot {
	f.t.Helper()
	f.Change(before, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	return f.snapshot(index, 0, 1, "true")
}

// on tells on which snapshot each of some clusters is, as an index; -1 stands for none.
func (f *fixture) on(bindings ...*placementv1.ClusterResourceBinding) string {
	f.t.Helper()
	var all []string
	for _, b := range bindings {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			f.t.Fatalf("read a binding: %v", err)
		}
		index, ok := placement.ResourceSnapshotIndex(f.Name, b.Spec.ResourceSnapshotName)
		if !ok {
			index = -1
		}
		all = append(all, fmt.Sprint(index))
	}
	return strings.Join(all, " ")
}

// wantOn waits until the controller has dealt with all that happened before, and compares where the clusters are.
func (f *fixture) wantOn(want, why string, bindings ...*placementv1.ClusterResourceBinding) {
	f.t.Helper()
	f.writes()
	if got := f.on(bindings...); got != want {
		f.t.Fatalf("%s: the clusters are on snapshots %s, want %s", why, got, want)
	}
}

func (f *fixture) awaitOn(b *placementv1.ClusterResourceBinding, index int) {
	f.t.Helper()
	framework.Await(f.t, f, b, fmt.Sprint("is on snapshot ", index), func(b *placementv1.ClusterResourceBinding) bool {
		return b.Spec.State == placementv1.BindingStateBound && b.Spec.ResourceSnapshotName == placement.ResourceSnapshotName(f.Name, index)
	})
}

// writes waits until the controller has dealt with all that happened before, and returns what it wrote since the last time.
// It has, once another placement is rolled out whose objects, one of every kind that it watches, were made after.
func (f *fixture) writes() map[string]int {
	f.t.Helper()
	later := &fixture{Hub: f.Later(), t: f.t, clock: f.clock}
	later.Place(placementv1.RollingUpdateRolloutStrategyType)
	b := later.bind("a", placementv1.BindingStateScheduled, "")
	later.snapshot(0, 0, 1, "true")
	later.awaitOn(b, 0)
	return f.Writes.Take()
}

func TestRollsToTheLatest(t *testing.T) {
	f := newFixture(t)
	a := f.bind("a", placementv1.BindingStateScheduled, "")
	if got := f.writes(); len(got) > 0 {
		t.Errorf("nothing to roll out yet, but writes: %v", got)
	}
	first := f.snapshot(0, 0, 1, "true")
	f.awaitOn(a, 0)
	b := f.bind("b", placementv1.BindingStateScheduled, "") // a newcomer
	f.awaitOn(b, 0)
	f.budget(`{"maxUnavailable":"100%"}`)
	f.available(a, b)

	// The next snapshot counts once it is whole.
	f.Change(first, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	f.snapshot(1, 0, 3, "true")
	f.snapshot(1, 1, 3, "true")
	if diff := cmp.Diff(map[string]int{"update *v1.ClusterResourceBinding": 2}, f.writes()); diff != "" {
		t.Errorf("writes for the first snapshot (-want +got):\n%s", diff)
	}
	f.snapshot(1, 2, 3, "true")
	f.awaitOn(a, 1)
	f.awaitOn(b, 1)
	if diff := cmp.Diff(map[string]int{"update *v1.ClusterResourceBinding": 2}, f.writes()); diff != "" {
		t.Errorf("writes for two clusters (-want +got):\n%s", diff)
	}
	// A hub that starts looks at all placements; by the time that it has moved a newcomer it has looked at this one.
	f.Stop()
	f.Start()
	f.awaitOn(f.bind("c", placementv1.BindingStateScheduled, ""), 1)
	if diff := cmp.Diff(map[string]int{"update *v1.ClusterResourceBinding": 1}, f.writes()); diff != "" {
		t.Errorf("writes for a newcomer after a restart (-want +got):\n%s", diff)
	}
}

func TestRemovesWhatIsGivenUp(t *testing.T) {
	f := newFixture(t)
	f.snapshot(0, 0, 1, "true")
	a := f.bind("a", placementv1.BindingStateScheduled, "")
	f.awaitOn(a, 0)
	f.Change(a, `{"spec":{"state":"Unscheduled"}}`)
	f.available(a)
	framework.AwaitGone(t, f, a)
}

// What others made, or an earlier placement left, is not touched, and nor is anything of a placement that is being deleted.
func TestLeavesOthersAlone(t *testing.T) {
	f := newFixture(t)
	f.snapshot(0, 0, 1, "true")
	earlier := f.bind("a", placementv1.BindingStateScheduled, "")
	f.awaitOn(earlier, 0)
	f.Change(earlier, `{"metadata":{"annotations":{"`+placementv1.AnnotationPlacementUID+`":"an-earlier-one"}},"spec":{"state":"Unscheduled"}}`)
	f.writes()
	f.Change(f.placement, `{"metadata":{"finalizers":["`+placementv1.FinalizerPlacementCleanup+`"]}}`)
	if err := f.Delete(t.Context(), f.placement); err != nil {
		t.Fatal(err)
	}
	f.bind("b", placementv1.BindingStateUnscheduled, f.Name+"-0-snapshot")
	if got := f.writes(); len(got) > 0 {
		t.Errorf("writes: %v", got)
	}
	f.Change(f.placement, `{"metadata":{"finalizers":null}}`)
}

// External placements are moved by update runs alone. One that becomes External keeps what runs.
func TestExternal(t *testing.T) {
	f := newFixture(t)
	first := f.snapshot(0, 0, 1, "true")
	a := f.bind("a", placementv1.BindingStateScheduled, "")
	f.awaitOn(a, 0)
	f.Change(f.placement, `{"spec":{"strategy":{"type":"External"}}}`)
	f.writes()
	f.Change(first, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	f.snapshot(1, 0, 1, "true")
	f.bind("b", placementv1.BindingStateScheduled, "")
	f.bind("c", placementv1.BindingStateUnscheduled, "")
	if got := f.writes(); len(got) > 0 {
		t.Errorf("writes to an External placement: %v", got)
	}
	f.awaitOn(a, 0)
}

// fleet is some clusters that are available on the first snapshot.
func (f *fixture) fleet(names ...string) (*placementv1.ClusterResourceSnapshot, []*placementv1.ClusterResourceBinding) {
	f.t.Helper()
	first := f.snapshot(0, 0, 1, "true")
	var all []*placementv1.ClusterResourceBinding
	for _, name := range names {
		all = append(all, f.bind(name, placementv1.BindingStateScheduled, ""))
	}
	for _, b := range all {
		f.awaitOn(b, 0)
	}
	f.available(all...)
	return first, all
}

// One cluster of four at a time, in the order of their names, each as soon as the one before is available. One that fails
// keeps its place, and what comes next reaches it first.
func TestBudget(t *testing.T) {
	f := newFixture(t)
	first, b := f.fleet("a", "b", "c", "d")
	second := f.newSnapshot(first, 1)
	f.awaitOn(b[0], 1)
	f.wantOn("1 0 0 0", "one is being updated", b...)
	f.report(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonApplyInProgress, b[0])
	f.wantOn("1 0 0 0", "it is in progress", b...)
	f.available(b[0])
	f.awaitOn(b[1], 1)
	f.report(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied, b[1])
	f.wantOn("1 1 0 0", "it fails", b...)
	f.newSnapshot(second, 2)
	f.awaitOn(b[1], 2)
	f.wantOn("1 2 0 0", "the one that fails is given the remedy, and no other", b...)
	f.available(b[1])
	f.awaitOn(b[0], 2)
	f.Change(f.placement, `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":3}}}}`)
	f.awaitOn(b[2], 2)
	f.awaitOn(b[3], 2)
}

// Where nothing tells whether it is available, a cluster counts as available after a while.
func TestUnavailablePeriod(t *testing.T) {
	f := newFixture(t)
	f.budget(`{"maxUnavailable":1,"unavailablePeriodSeconds":5}`)
	first, b := f.fleet("a", "b")
	f.newSnapshot(first, 1)
	f.awaitOn(b[0], 1)
	f.report(placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonNotAllWorkAreAvailabilityTrackable, b[0])
	f.wantOn("1 0", "the period is not over", b...)
	f.clock.SetTime(f.clock.Now().Add(5 * time.Second))
	f.awaitOn(b[1], 1) // by the controller's own timer
}

// A cluster that takes another's place comes first where the budget says so.
func TestSurge(t *testing.T) {
	f := newFixture(t)
	f.budget(`{"maxUnavailable":0,"maxSurge":1}`)
	_, b := f.fleet("a")
	newcomer := f.bind("b", placementv1.BindingStateScheduled, "")
	f.Change(b[0], `{"spec":{"state":"Unscheduled"}}`)
	f.available(b[0])
	f.awaitOn(newcomer, 0)
	f.wantOn("0 0", "the newcomer is not available yet", b[0], newcomer)
	f.available(newcomer)
	framework.AwaitGone(t, f, b[0])
}

func TestLatestComplete(t *testing.T) {
	t.Parallel()
	snapshot := func(name, index, latest, count, uid string) placementv1.ResourceSnapshotObject {
		return &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels:      map[string]string{placementv1.LabelResourceIndex: index, placementv1.LabelIsLatestSnapshot: latest},
			Annotations: map[string]string{placementv1.AnnotationSnapshotCount: count, placementv1.AnnotationPlacementUID: uid}}}
	}
	deleting := snapshot("app-1-snapshot", "1", "true", "1", "uid")
	deleting.SetDeletionTimestamp(ptr.To(metav1.Now()))
	tests := map[string]struct {
		snapshots []placementv1.ResourceSnapshotObject
		want      string
	}{
		"none":                  {},
		"one":                   {[]placementv1.ResourceSnapshotObject{snapshot("app-0-snapshot", "0", "true", "1", "uid")}, "app-0-snapshot"},
		"of an earlier one":     {[]placementv1.ResourceSnapshotObject{snapshot("app-0-snapshot", "0", "true", "1", "earlier")}, ""},
		"not the latest":        {[]placementv1.ResourceSnapshotObject{snapshot("app-0-snapshot", "0", "false", "1", "uid")}, ""},
		"says not how many":     {[]placementv1.ResourceSnapshotObject{snapshot("app-0-snapshot", "0", "true", "", "uid")}, ""},
		"being deleted":         {[]placementv1.ResourceSnapshotObject{deleting}, ""},
		"the master is missing": {[]placementv1.ResourceSnapshotObject{snapshot("app-0-0", "0", "true", "", "uid")}, ""},
		"a part is missing":     {[]placementv1.ResourceSnapshotObject{snapshot("app-0-snapshot", "0", "true", "2", "uid")}, ""},
		"of two parts": {[]placementv1.ResourceSnapshotObject{
			snapshot("app-0-snapshot", "0", "true", "2", "uid"), snapshot("app-0-0", "0", "true", "", "uid")}, "app-0-snapshot"},
		"two say they are the latest": {[]placementv1.ResourceSnapshotObject{
			snapshot("app-9-snapshot", "9", "true", "1", "uid"), snapshot("app-10-snapshot", "10", "true", "1", "uid")}, "app-10-snapshot"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := latestComplete(placement.Key{Name: "app"}, "uid", tc.snapshots); got != tc.want {
				t.Errorf("latest %q, want %q", got, tc.want)
			}
		})
	}
}
