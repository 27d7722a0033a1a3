package work

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// fixture is one placement with snapshots, bindings and clusters, and the hub's controller of Works at work on it.
type fixture struct {
	*framework.Hub
	t     *testing.T
	key   placement.Key
	reads *contentReads
	wrap  func(client.Client) client.Client // the controller's client; nil leaves it as it is
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	hub := framework.NewHub(t, hubConfig)
	f := &fixture{Hub: hub, t: t, key: placement.Key{Name: hub.Name}, reads: &contentReads{}}
	f.Run(withoutContent(), func(mgr ctrl.Manager) error {
		f.reads.Reader = mgr.GetAPIReader()
		writer := f.Writes.Count(mgr.GetClient())
		if f.wrap != nil {
			writer = f.wrap(writer)
		}
		c := &Controller{Client: writer, APIReader: f.reads,
			Carriage: &placement.ClusterKinds().Carriage, Clock: clock.RealClock{}, Tracker: &consistency.Tracker{}}
		if err := AddIndexes(mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return c.SetupWithManager(mgr)
	})
	return f
}

// withoutContent is a cache like the hub's.
func withoutContent() cache.Options {
	strip := func(o any) (any, error) {
		switch o := o.(type) {
		case *placementv1.Work:
			o.ManagedFields, o.Spec.Workload.Manifests = nil, nil
		case *placementv1.ClusterResourceSnapshot:
			o.ManagedFields, o.Spec.SelectedResources = nil, nil
		}
		return o, nil
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
		&placementv1.Work{}: {Transform: strip}, &placementv1.ClusterResourceSnapshot{}: {Transform: strip}}}
}

// writes waits until the controller has dealt with all that happened before, also with what it put off, and returns what it
// wrote since the last time. It has, once it says of another placement, made later, what it puts off for longest: another
// detail of what is still on its way.
func (f *fixture) writes() map[string]int {
	f.t.Helper()
	hub := f.Later()
	later := &fixture{Hub: hub, t: f.t, key: placement.Key{Name: hub.Name}}
	a := later.join("c")
	a.be(starts)
	later.snapshot(0, []string{"a"})
	b := later.await(later.bind("c", 0), placementv1.ConditionAvailable, "False/"+placementv1.ReasonNotAllWorkAreAvailable)
	const detail = "it is still starting"
	a.say(detail)
	framework.Await(f.t, f, b, "says the detail", func(b *placementv1.ClusterResourceBinding) bool {
		return strings.Contains(later.message(b, placementv1.ConditionAvailable), detail)
	})
	return f.Writes.Take()
}

// join makes a member, with its namespace and an agent that answers as it is told.
func (f *fixture) join(short string) *agent {
	f.t.Helper()
	f.Make(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster(short), Finalizers: []string{clusterv1.FinalizerMemberCluster}}})
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(f.Cluster(short))}})
	a := &agent{fixture: f, namespace: placement.MemberNamespace(f.Cluster(short))}
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
		s := &placementv1.ClusterResourceSnapshot{ObjectMeta: f.Owned(placement.ResourceSnapshotName(f.Name, index))}
		s.Labels[placementv1.LabelResourceIndex] = strconv.Itoa(index)
		s.Annotations[placementv1.AnnotationSnapshotCount] = strconv.Itoa(len(parts))
		s.Annotations[placementv1.AnnotationResourceHash] = fmt.Sprint(parts)
		if i > 0 {
			s.Name = placement.ResourceSnapshotPartName(f.Name, index, i-1)
		}
		s.Spec.SelectedResources = []placementv1.ResourceContent{}
		for _, n := range names {
			raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"}}`, n)
			s.Spec.SelectedResources = append(s.Spec.SelectedResources, placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: raw}})
		}
		f.Make(s)
	}
}

// bind makes a binding as the scheduler does, and moves it to a snapshot as a rollout does.
func (f *fixture) bind(short string, index int) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := &placementv1.ClusterResourceBinding{ObjectMeta: f.Owned(placement.BindingName(f.key, f.Cluster(short)))}
	b.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	b.Spec = placementv1.ResourceBindingSpec{
		State: placementv1.BindingStateScheduled, SchedulingPolicySnapshotName: f.Name + "-0", TargetCluster: f.Cluster(short),
		ClusterDecision: placementv1.ClusterDecision{ClusterName: f.Cluster(short), Selected: true, Reason: "picked"},
	}
	f.Make(b)
	return f.move(b, index)
}

func (f *fixture) move(b *placementv1.ClusterResourceBinding, index int) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	return f.edit(b, func(s *placementv1.ResourceBindingSpec) {
		s.State, s.ResourceSnapshotName = placementv1.BindingStateBound, placement.ResourceSnapshotName(f.Name, index)
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
	w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Name: placement.WorkName(f.key, part), Namespace: placement.MemberNamespace(f.Cluster(short))}}
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
