package rolling

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) {
	logger := logr.Discard()
	if os.Getenv("VERBOSE") != "" {
		logger = klog.Background()
	}
	ctrl.SetLogger(logger)
	os.Exit(framework.RunWithAPIServer(m, &hubConfig))
}

// fixtures counts fixtures, so that each has names of its own.
var fixtures atomic.Int32

// fixture is one placement, with a hub that runs this controller alone.
type fixture struct {
	client.WithWatch
	t         *testing.T
	name      string
	placement *placementv1.ClusterResourcePlacement
	writes    *framework.Writes
	stop      func()
}

func newFixture(t *testing.T, strategy placementv1.RolloutStrategyType) *fixture {
	t.Helper()
	c, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	f := &fixture{WithWatch: c, t: t, name: fmt.Sprintf("app%d", fixtures.Add(1)), writes: &framework.Writes{}}
	f.placement = &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	f.placement.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "test"}}
	f.placement.Spec.Strategy.Type = strategy
	f.create(f.placement)
	f.start()
	return f
}

func (f *fixture) start() {
	f.t.Helper()
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: framework.Scheme(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		f.t.Fatalf("make a manager: %v", err)
	}
	c := &Controller{Client: f.writes.Count(mgr.GetClient()), Kinds: placement.ClusterKinds()}
	if err := c.SetupWithManager(mgr); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			f.t.Errorf("the hub ended: %v", err)
		}
	})
	f.stop = func() {
		cancel()
		running.Wait()
	}
	f.t.Cleanup(f.stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		f.t.Fatal("the hub's cache does not fill")
	}
}

func (f *fixture) create(o client.Object) {
	f.t.Helper()
	if err := f.Create(f.t.Context(), o); err != nil {
		f.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

func (f *fixture) patch(o client.Object, patch string) {
	f.t.Helper()
	if err := f.Patch(f.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		f.t.Fatalf("change %T %s: %v", o, o.GetName(), err)
	}
}

func (f *fixture) owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{placementv1.LabelParentPlacement: f.name},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: string(f.placement.UID)},
	}
}

// snapshot makes an object of a resource snapshot of some parts: 0 is the master.
func (f *fixture) snapshot(index, part, parts int, latest string) *placementv1.ClusterResourceSnapshot {
	f.t.Helper()
	s := &placementv1.ClusterResourceSnapshot{ObjectMeta: f.owned(placement.ResourceSnapshotName(f.name, index))}
	s.Labels[placementv1.LabelResourceIndex], s.Labels[placementv1.LabelIsLatestSnapshot] = strconv.Itoa(index), latest
	if part > 0 {
		s.Name = placement.ResourceSnapshotPartName(f.name, index, part-1)
	} else {
		s.Annotations[placementv1.AnnotationSnapshotCount] = strconv.Itoa(parts)
	}
	s.Spec.SelectedResources = []placementv1.ResourceContent{}
	f.create(s)
	return s
}

// bind makes a binding as the scheduler does.
func (f *fixture) bind(cluster string, state placementv1.BindingState, snapshot string) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := &placementv1.ClusterResourceBinding{ObjectMeta: f.owned(placement.BindingName(placement.Key{Name: f.name}, cluster))}
	b.Spec = placementv1.ResourceBindingSpec{State: state, TargetCluster: cluster, ResourceSnapshotName: snapshot, SchedulingPolicySnapshotName: f.name + "-0"}
	f.create(b)
	return b
}

func (f *fixture) awaitOn(b *placementv1.ClusterResourceBinding, index int) {
	f.t.Helper()
	framework.Await(f.t, f, b, fmt.Sprint("is on snapshot ", index), func(b *placementv1.ClusterResourceBinding) bool {
		return b.Spec.State == placementv1.BindingStateBound && b.Spec.ResourceSnapshotName == placement.ResourceSnapshotName(f.name, index)
	})
}

// quiet waits a while, and returns what was written.
func (f *fixture) quiet() map[string]int {
	time.Sleep(time.Second)
	return f.writes.Take()
}

func TestRollsToTheLatest(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	a := f.bind("a", placementv1.BindingStateScheduled, "")
	if got := f.quiet(); len(got) > 0 {
		t.Errorf("nothing to roll out yet, but writes: %v", got)
	}
	first := f.snapshot(0, 0, 1, "true")
	f.awaitOn(a, 0)
	b := f.bind("b", placementv1.BindingStateScheduled, "") // a newcomer
	f.awaitOn(b, 0)

	// The next snapshot counts once it is whole.
	f.patch(first, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	f.snapshot(1, 0, 3, "true")
	f.snapshot(1, 1, 3, "true")
	f.quiet()
	f.awaitOn(a, 0)
	f.snapshot(1, 2, 3, "true")
	f.awaitOn(a, 1)
	f.awaitOn(b, 1)
	if diff := cmp.Diff(map[string]int{"update *v1.ClusterResourceBinding": 2}, f.quiet()); diff != "" {
		t.Errorf("writes for two clusters (-want +got):\n%s", diff)
	}
	f.stop()
	f.start()
	if got := f.quiet(); len(got) > 0 {
		t.Errorf("writes after a restart: %v", got)
	}
}

func TestRemovesWhatIsGivenUp(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	f.snapshot(0, 0, 1, "true")
	a := f.bind("a", placementv1.BindingStateScheduled, "")
	f.awaitOn(a, 0)
	f.patch(a, `{"spec":{"state":"Unscheduled"}}`)
	framework.AwaitGone(t, f, a)
}

// What others made, or an earlier placement left, is not touched, and nor is anything of a placement that is being deleted.
func TestLeavesOthersAlone(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	f.snapshot(0, 0, 1, "true")
	earlier := f.bind("a", placementv1.BindingStateScheduled, "")
	f.awaitOn(earlier, 0)
	f.patch(earlier, `{"metadata":{"annotations":{"`+placementv1.AnnotationPlacementUID+`":"an-earlier-one"}},"spec":{"state":"Unscheduled"}}`)
	f.writes.Take()
	f.patch(f.placement, `{"metadata":{"finalizers":["`+placementv1.FinalizerPlacementCleanup+`"]}}`)
	if err := f.Delete(t.Context(), f.placement); err != nil {
		t.Fatal(err)
	}
	f.bind("b", placementv1.BindingStateUnscheduled, f.name+"-0-snapshot")
	if got := f.quiet(); len(got) > 0 {
		t.Errorf("writes: %v", got)
	}
	f.patch(f.placement, `{"metadata":{"finalizers":null}}`)
}

// External placements are moved by update runs alone. One that becomes External keeps what runs.
func TestExternal(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	first := f.snapshot(0, 0, 1, "true")
	a := f.bind("a", placementv1.BindingStateScheduled, "")
	f.awaitOn(a, 0)
	f.patch(f.placement, `{"spec":{"strategy":{"type":"External"}}}`)
	f.quiet()
	f.patch(first, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	f.snapshot(1, 0, 1, "true")
	f.bind("b", placementv1.BindingStateScheduled, "")
	f.bind("c", placementv1.BindingStateUnscheduled, "")
	if got := f.quiet(); len(got) > 0 {
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
