package rolling

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// fixture is one placement, with a hub that runs this controller alone.
type fixture struct {
	*framework.Hub
	t         *testing.T
	placement *placementv1.ClusterResourcePlacement
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t}
	f.placement = f.Place(placementv1.RollingUpdateRolloutStrategyType)
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		c := &Controller{Client: f.Writes.Count(mgr.GetClient()), Kinds: placement.ClusterKinds(),
			Overrides: overrides.NewFinder(mgr.GetAPIReader(), placement.ClusterKinds())}
		return c.SetupWithManager(mgr)
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
	later := &fixture{Hub: f.Later(), t: f.t}
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
