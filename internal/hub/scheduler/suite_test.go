package scheduler

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// hubConfig leads to the API server that the tests share. They run one after the other, and each leaves nothing behind.
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

// fixture is a fleet, and one placement in it, with a hub that runs the scheduler alone.
type fixture struct {
	client.WithWatch
	t         *testing.T
	name      string
	placement *placementv1.ClusterResourcePlacement
	writes    *framework.Writes
	stop      func()
}

func newFixture(t *testing.T, clusters ...string) *fixture {
	t.Helper()
	c, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	f := &fixture{WithWatch: c, t: t, name: fmt.Sprintf("app%d", fixtures.Add(1)), writes: &framework.Writes{}}
	for _, c := range clusters {
		f.join(c)
	}
	f.place()
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
	c := &Controller{Client: f.writes.Count(mgr.GetClient()), Kinds: placement.ClusterKinds(), Clock: clock.RealClock{}}
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

func (f *fixture) cluster(short string) string { return f.name + "-" + short }

func (f *fixture) create(o client.Object) {
	f.t.Helper()
	if err := f.Create(f.t.Context(), o); err != nil {
		f.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// remove deletes an object, whatever holds it.
func (f *fixture) remove(o client.Object) {
	f.t.Helper()
	ctx := framework.CleanupContext(f.t)
	if err := client.IgnoreNotFound(f.Delete(ctx, o)); err != nil {
		f.t.Fatalf("delete %T %s: %v", o, o.GetName(), err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(f.Patch(ctx, o, patch)); err != nil {
		f.t.Fatalf("let %T %s go: %v", o, o.GetName(), err)
	}
}

// join makes a member that has joined and is healthy.
func (f *fixture) join(short string) {
	f.t.Helper()
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster(short), Finalizers: []string{clusterv1.FinalizerMemberCluster}}}
	f.create(m)
	f.t.Cleanup(func() { f.remove(m) })
	f.health(short, metav1.ConditionTrue, clusterv1.ReasonHealthy)
}

func (f *fixture) member(short string) *clusterv1.MemberCluster {
	return &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster(short)}}
}

// health has the agent say how its cluster is; each time it gives a sign of life as well.
func (f *fixture) health(short string, status metav1.ConditionStatus, reason string) {
	f.t.Helper()
	m := f.member(short)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonJoined})
		if len(m.Status.AgentStatus) == 0 {
			m.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent}}
		}
		agent := &m.Status.AgentStatus[0]
		agent.LastReceivedHeartbeat = metav1.Now()
		meta.SetStatusCondition(&agent.Conditions, metav1.Condition{Type: clusterv1.ConditionHealthy, Status: status, Reason: reason})
		return f.Status().Update(f.t.Context(), m)
	})
	if err != nil {
		f.t.Fatalf("set the health of %s: %v", short, err)
	}
}

// place makes the placement and its first policy snapshot.
func (f *fixture) place() {
	f.t.Helper()
	f.placement = &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	f.placement.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "test"}}
	f.create(f.placement)
	f.policy(0, "1")
	f.t.Cleanup(func() {
		f.remove(f.placement)
		for _, b := range f.bindings() {
			f.remove(&b)
		}
		ctx := framework.CleanupContext(f.t)
		if err := f.DeleteAllOf(ctx, &placementv1.ClusterSchedulingPolicySnapshot{}, client.MatchingLabels{placementv1.LabelParentPlacement: f.name}); err != nil {
			f.t.Errorf("delete policy snapshots: %v", err)
		}
	})
}

// policy makes a policy snapshot that is the latest.
func (f *fixture) policy(index int, generation string) *placementv1.ClusterSchedulingPolicySnapshot {
	f.t.Helper()
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: placement.PolicySnapshotName(f.name, index),
		Labels: map[string]string{placementv1.LabelParentPlacement: f.name, placementv1.LabelIsLatestSnapshot: "true",
			placementv1.LabelPolicyIndex: fmt.Sprint(index)},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: string(f.placement.UID),
			placementv1.AnnotationPlacementGeneration: generation},
	}}
	s.Spec.PolicyHash = []byte("hash")
	f.create(s)
	return s
}

func (f *fixture) bindings() []placementv1.ClusterResourceBinding {
	f.t.Helper()
	var list placementv1.ClusterResourceBindingList
	if err := f.List(framework.CleanupContext(f.t), &list, client.MatchingLabels{placementv1.LabelParentPlacement: f.name}); err != nil {
		f.t.Fatalf("list bindings: %v", err)
	}
	return list.Items
}

func (f *fixture) binding(short string) *placementv1.ClusterResourceBinding {
	return &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: placement.BindingName(placement.Key{Name: f.name}, f.cluster(short))}}
}

// awaitBinding waits until a cluster's binding has a state.
func (f *fixture) awaitBinding(short string, state placementv1.BindingState) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := f.binding(short)
	framework.Await(f.t, f, b, "is "+string(state), func(b *placementv1.ClusterResourceBinding) bool { return b.Spec.State == state })
	return b
}

// bound moves a binding to a snapshot as a rollout does.
func (f *fixture) bound(short, snapshot string) {
	f.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"state":"Bound","resourceSnapshotName":%q}}`, snapshot)
	if err := f.Patch(f.t.Context(), f.binding(short), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		f.t.Fatalf("bind %s: %v", short, err)
	}
}

// awaitScheduled waits until a policy snapshot says how many clusters are chosen, or, with -1, that this is not known yet.
func (f *fixture) awaitScheduled(index int, count int32) *placementv1.ClusterSchedulingPolicySnapshot {
	f.t.Helper()
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: placement.PolicySnapshotName(f.name, index)}}
	framework.Await(f.t, f, s, fmt.Sprintf("has %d clusters", count), func(s *placementv1.ClusterSchedulingPolicySnapshot) bool {
		c := meta.FindStatusCondition(s.Status.Conditions, placementv1.ConditionScheduled)
		if c == nil || fmt.Sprint(s.Status.ObservedCRPGeneration) != s.Annotations[placementv1.AnnotationPlacementGeneration] {
			return false
		}
		if count < 0 {
			return c.Status == metav1.ConditionUnknown && c.Reason == placementv1.ReasonSchedulePending
		}
		return c.Status == metav1.ConditionTrue && c.Reason == placementv1.ReasonSchedulingPolicyFulfilled && s.Status.SelectedCount == count
	})
	return s
}

// quiet waits until nothing is left to be written for a while, and returns what was.
func (f *fixture) quiet() map[string]int {
	time.Sleep(time.Second)
	return f.writes.Take()
}
