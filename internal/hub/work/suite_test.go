package work

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

// fixture is one placement with snapshots, bindings and clusters, and the hub's controller of Works at work on it.
type fixture struct {
	client.WithWatch
	t      *testing.T
	name   string
	key    placement.Key
	uid    string
	writes *framework.Writes
	reads  *contentReads
	wrap   func(client.Client) client.Client // the controller's client; nil leaves it as it is
	stop   func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	name := fmt.Sprintf("app%d", fixtures.Add(1))
	f := &fixture{WithWatch: c, t: t, name: name, key: placement.Key{Name: name}, uid: "uid-" + name, writes: &framework.Writes{}, reads: &contentReads{}}
	f.start()
	return f
}

// start starts a hub with this controller alone, whose cache is like the hub's: without content.
func (f *fixture) start() {
	f.t.Helper()
	strip := func(o any) (any, error) {
		switch o := o.(type) {
		case *placementv1.Work:
			o.ManagedFields, o.Spec.Workload.Manifests = nil, nil
		case *placementv1.ClusterResourceSnapshot:
			o.ManagedFields, o.Spec.SelectedResources = nil, nil
		}
		return o, nil
	}
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: framework.Scheme(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
			&placementv1.Work{}: {Transform: strip}, &placementv1.ClusterResourceSnapshot{}: {Transform: strip}}},
	})
	if err != nil {
		f.t.Fatalf("make a manager: %v", err)
	}
	f.reads.Reader = mgr.GetAPIReader()
	writer := f.writes.Count(mgr.GetClient())
	if f.wrap != nil {
		writer = f.wrap(writer)
	}
	c := &Controller{Client: writer, APIReader: f.reads,
		Kinds: placement.ClusterKinds(), Clock: clock.RealClock{}, Tracker: &consistency.Tracker{}}
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

// join makes a member, with its namespace and an agent that answers as it is told.
func (f *fixture) join(short string) *agent {
	f.t.Helper()
	f.create(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster(short), Finalizers: []string{clusterv1.FinalizerMemberCluster}}})
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(f.cluster(short))}})
	a := &agent{fixture: f, namespace: placement.MemberNamespace(f.cluster(short))}
	ctx, cancel := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.run(ctx) })
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return a
}

// snapshot makes a resource snapshot of parts, each of which holds ConfigMaps of the given names.
func (f *fixture) snapshot(index int, parts ...[]string) {
	f.t.Helper()
	for i, names := range parts {
		s := &placementv1.ClusterResourceSnapshot{ObjectMeta: f.owned(placement.ResourceSnapshotName(f.name, index))}
		s.Labels[placementv1.LabelResourceIndex] = strconv.Itoa(index)
		s.Annotations[placementv1.AnnotationSnapshotCount] = strconv.Itoa(len(parts))
		s.Annotations[placementv1.AnnotationResourceHash] = fmt.Sprint(parts)
		if i > 0 {
			s.Name = placement.ResourceSnapshotPartName(f.name, index, i-1)
		}
		s.Spec.SelectedResources = []placementv1.ResourceContent{}
		for _, n := range names {
			raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"}}`, n)
			s.Spec.SelectedResources = append(s.Spec.SelectedResources, placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: raw}})
		}
		f.create(s)
	}
}

// owned is the metadata of something that belongs to the placement.
func (f *fixture) owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{placementv1.LabelParentPlacement: f.name},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: f.uid},
	}
}

// bind makes a binding as the scheduler does, and moves it to a snapshot as a rollout does.
func (f *fixture) bind(short string, index int) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := &placementv1.ClusterResourceBinding{ObjectMeta: f.owned(placement.BindingName(f.key, f.cluster(short)))}
	b.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	b.Spec = placementv1.ResourceBindingSpec{
		State: placementv1.BindingStateScheduled, SchedulingPolicySnapshotName: f.name + "-0", TargetCluster: f.cluster(short),
		ClusterDecision: placementv1.ClusterDecision{ClusterName: f.cluster(short), Selected: true, Reason: "picked"},
	}
	f.create(b)
	return f.move(b, index)
}

func (f *fixture) move(b *placementv1.ClusterResourceBinding, index int) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	return f.edit(b, func(s *placementv1.ResourceBindingSpec) {
		s.State, s.ResourceSnapshotName = placementv1.BindingStateBound, placement.ResourceSnapshotName(f.name, index)
	})
}

func (f *fixture) edit(b *placementv1.ClusterResourceBinding, change func(*placementv1.ResourceBindingSpec)) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	before := b.DeepCopy()
	change(&b.Spec)
	if err := f.Patch(f.t.Context(), b, client.MergeFrom(before)); err != nil {
		f.t.Fatalf("change binding %s: %v", b.Name, err)
	}
	return b
}

// await waits until a condition of the binding, for the binding as it is, is "status/reason".
func (f *fixture) await(b *placementv1.ClusterResourceBinding, conditionType, want string) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	generation := b.Generation
	framework.Await(f.t, f, b, conditionType+" is "+want, func(b *placementv1.ClusterResourceBinding) bool {
		c := meta.FindStatusCondition(b.Status.Conditions, conditionType)
		return c != nil && c.ObservedGeneration >= generation && c.ObservedGeneration == b.Generation && string(c.Status)+"/"+c.Reason == want
	})
	return b
}

func (f *fixture) message(b *placementv1.ClusterResourceBinding, conditionType string) string {
	f.t.Helper()
	if c := meta.FindStatusCondition(b.Status.Conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// work reads the Work that carries a part.
func (f *fixture) work(short string, part int) *placementv1.Work {
	f.t.Helper()
	w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Name: placement.WorkName(f.key, part), Namespace: placement.MemberNamespace(f.cluster(short))}}
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		f.t.Fatalf("read Work %s: %v", w.Name, err)
	}
	return w
}

const (
	isAvailable = "True/" + placementv1.ReasonAllWorkAreAvailable
	isProgress  = "False/" + placementv1.ReasonApplyInProgress
)

// contentReads counts live reads of whole snapshots.
type contentReads struct {
	client.Reader
	count atomic.Int32
}

func (r *contentReads) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*placementv1.ClusterResourceSnapshot); ok {
		r.count.Add(1)
	}
	return r.Reader.Get(ctx, key, o, opts...)
}
