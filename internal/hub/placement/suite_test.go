package placement_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/hub/override"
	controller "github.com/fleetwright/fleetwright/internal/hub/placement"
	rollingupdate "github.com/fleetwright/fleetwright/internal/hub/rolling"
	"github.com/fleetwright/fleetwright/internal/hub/scheduler"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

// patience is how long a test waits for one thing.
const patience = 3 * time.Minute

// hub leads to the API server that the tests share. They run one after the other.
var hub *rest.Config

func TestMain(m *testing.M) {
	logger := logr.Discard()
	if os.Getenv("VERBOSE") != "" {
		logger = klog.Background()
	}
	ctrl.SetLogger(logger)
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // that an old API is deprecated
	os.Exit(framework.RunWithAPIServer(m, &hub))
}

// fleet is a hub with the controllers that a placement needs, and members that are played.
type fleet struct {
	client.WithWatch
	Gomega
	t     *testing.T
	kinds *placement.Kinds
	stop  func()

	mu     sync.Mutex
	refuse map[string]string // cluster → the error with which it refuses what it is given
	away   map[string]bool   // clusters that do not answer

	unreadable atomic.Bool // resource snapshots cannot be read
}

// store is a snapshots.Store whose contents cannot always be read.
type store struct {
	*snapshots.Store
	f *fleet
}

func (s store) Contents(ctx context.Context, p placementv1.PlacementObject, index int) ([]placementv1.ResourceIdentifier, error) {
	if s.f.unreadable.Load() {
		return nil, errors.New("the API server is away")
	}
	return s.Store.Contents(ctx, p, index)
}

func newFleet(t *testing.T, clusters ...string) *fleet {
	t.Helper()
	c, err := client.NewWithWatch(hub, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{WithWatch: c, Gomega: NewWithT(t), t: t, kinds: placement.ClusterKinds(), refuse: map[string]string{}, away: map[string]bool{}}
	for _, cluster := range clusters {
		f.join(cluster)
	}
	f.start()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // they are needed for cleaning up
	var played sync.WaitGroup
	played.Go(func() { f.playMembers(ctx) })
	t.Cleanup(func() { cancel(); played.Wait() })
	t.Cleanup(func() { f.stop() })
	return f
}

// start starts the hub's controllers, as a new process would.
func (f *fleet) start() {
	f.t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme:     framework.Scheme(),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&placementv1.ClusterResourceSnapshot{}: {
			Transform: func(o any) (any, error) {
				if s, ok := o.(*placementv1.ClusterResourceSnapshot); ok {
					s.Spec.SelectedResources = nil
				}
				return o, nil
			},
		}}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range f.controllers(mgr) {
		if err := c.SetupWithManager(mgr); err != nil {
			f.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
}

func (f *fleet) controllers(mgr ctrl.Manager) []interface{ SetupWithManager(ctrl.Manager) error } {
	f.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(hub)
	if err != nil {
		f.t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(hub)
	if err != nil {
		f.t.Fatal(err)
	}
	m, err := metadata.NewForConfig(hub)
	if err != nil {
		f.t.Fatal(err)
	}
	real := clock.RealClock{}
	selector := &selection.Selector{Discovery: d, Client: objects}
	made := &snapshots.Store{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Carriage: &f.kinds.Carriage, Kinds: f.kinds, Selector: selector}
	watches := selection.NewWatches(d, m, real)
	if err := mgr.Add(watches); err != nil {
		f.t.Fatal(err)
	}
	finder := override.NewFinder(mgr.GetAPIReader(), f.kinds)
	if err := listing.IndexByCluster(mgr.GetFieldIndexer(), &f.kinds.Carriage); err != nil {
		f.t.Fatal(err)
	}
	return []interface{ SetupWithManager(ctrl.Manager) error }{
		&controller.Controller{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Kinds: f.kinds, Clock: real, Recorder: mgr.GetEventRecorder("test"),
			Tracker: &consistency.Tracker{}, Snapshots: store{made, f}, Overrides: finder, Validator: selector, Watches: watches,
		},
		&scheduler.Controller{Client: mgr.GetClient(), Kinds: f.kinds, Clock: real},
		&rollingupdate.Controller{Client: mgr.GetClient(), Kinds: f.kinds, Overrides: finder},
		&override.Controller{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Kinds: []*placement.Kinds{f.kinds}, Tracker: &consistency.Tracker{}},
	}
}

// join makes a member that has joined and is well.
func (f *fleet) join(cluster string) {
	f.t.Helper()
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	f.create(m)
	ok := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}}
	}
	m.Status.Conditions = ok(clusterv1.ConditionJoined)
	m.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent, Conditions: append(ok(clusterv1.ConditionHealthy), ok(clusterv1.ConditionJoined)...)}}
	f.Expect(f.Status().Update(f.t.Context(), m)).To(Succeed())
}

// create creates an object and deletes it when the test ends.
func (f *fleet) create(o client.Object) {
	f.t.Helper()
	if err := f.Create(f.t.Context(), o); err != nil {
		f.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	f.t.Cleanup(func() { framework.Remove(f.t, f, o) })
}

// apply creates objects given as YAML documents.
func (f *fleet) apply(documents ...string) {
	f.t.Helper()
	for _, document := range documents {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			f.t.Fatalf("parse %s: %v", document, err)
		}
		f.create(o)
	}
}

// place makes a placement, and takes it away, with all that belongs to it, when the test ends.
func (f *fleet) place(name string, strategy placementv1.RolloutStrategyType, selectors ...placementv1.ResourceSelector) {
	f.t.Helper()
	f.placeAs(name, placementv1.PlacementSpec{ResourceSelectors: selectors, Strategy: placementv1.RolloutStrategy{Type: strategy}})
}

// placeWith is place with a policy and rolling updates.
func (f *fleet) placeWith(name string, policy *placementv1.PlacementPolicy, selectors ...placementv1.ResourceSelector) {
	f.t.Helper()
	f.placeAs(name, placementv1.PlacementSpec{ResourceSelectors: selectors, Policy: policy})
}

func (f *fleet) placeAs(name string, spec placementv1.PlacementSpec) {
	f.t.Helper()
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	f.create(p)
	f.t.Cleanup(func() {
		ctx := framework.CleanupContext(f.t)
		if err := f.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
			f.t.Error(err)
		}
		f.Eventually(func() error { return f.Get(ctx, client.ObjectKeyFromObject(p), p) }).WithTimeout(patience).Should(Satisfy(apierrors.IsNotFound))
	})
}

func namespaceSelector(name string) placementv1.ResourceSelector {
	return placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: name}
}

// placement reads a placement.
func (f *fleet) placement(name string) *placementv1.ClusterResourcePlacement {
	f.t.Helper()
	p := &placementv1.ClusterResourcePlacement{}
	f.Expect(f.Get(f.t.Context(), client.ObjectKey{Name: name}, p)).To(Succeed())
	return p
}

// condition returns status and reason of one of a placement's conditions; "" where it has no such.
func (f *fleet) condition(name, kind string) func() string {
	return func() string {
		c := meta.FindStatusCondition(f.placement(name).Status.Conditions, placementv1.ClusterPlacementConditionPrefix+kind)
		if c == nil {
			return ""
		}
		return string(c.Status) + "/" + c.Reason
	}
}

func (f *fleet) message(name, kind string) string {
	if c := meta.FindStatusCondition(f.placement(name).Status.Conditions, placementv1.ClusterPlacementConditionPrefix+kind); c != nil {
		return c.Message
	}
	return ""
}

// snapshots are the names of a placement's resource snapshots.
func (f *fleet) snapshots(name string) []string {
	f.t.Helper()
	all, err := listing.ResourceSnapshots(f.t.Context(), f, &f.kinds.Carriage, placement.Key{Name: name})
	f.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, s := range all {
		names = append(names, s.GetName())
	}
	return names
}

// edit changes a placement.
func (f *fleet) edit(name string, change func(*placementv1.ClusterResourcePlacement)) {
	f.t.Helper()
	f.Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p := f.placement(name)
		change(p)
		return f.Update(f.t.Context(), p)
	})).To(Succeed())
}

func (f *fleet) set(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	f.answer(f.t.Context())
}

// playMembers plays hub/work and the agents: every binding that has a snapshot is answered as the test says.
func (f *fleet) playMembers(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := f.Watch(ctx, &placementv1.ClusterResourceBindingList{})
		if err != nil {
			continue
		}
		for range w.ResultChan() {
			f.answer(ctx)
		}
	}
}

func (f *fleet) answer(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bindings, err := listing.AllBindings(ctx, f, &f.kinds.Carriage)
	if err != nil {
		return
	}
	for _, b := range bindings {
		err := f.answerOne(ctx, b)
		if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			f.t.Errorf("answer for binding %s: %v", b.GetName(), err)
		}
	}
}

func (f *fleet) answerOne(ctx context.Context, b placementv1.BindingObject) error {
	cluster := b.BindingSpec().TargetCluster
	if f.away[cluster] {
		return nil
	}
	if !b.GetDeletionTimestamp().IsZero() {
		b.SetFinalizers(slices.DeleteFunc(b.GetFinalizers(), func(s string) bool { return s == placementv1.FinalizerWorkCleanup }))
		return f.Update(ctx, b)
	}
	index, ok := placement.ResourceSnapshotIndex(b.GetLabels()[placementv1.LabelParentPlacement], b.BindingSpec().ResourceSnapshotName)
	if !ok || b.BindingSpec().State == placementv1.BindingStateScheduled {
		return nil
	}
	status := b.BindingStatus()
	before := status.DeepCopy()
	status.ObservedResourceIndex, status.FailedPlacements = fmt.Sprint(index), nil
	set := func(kind string, s metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: s, Reason: reason, ObservedGeneration: b.GetGeneration()})
	}
	set(placementv1.ConditionRolloutStarted, metav1.ConditionTrue, placementv1.ReasonRolloutStarted)
	set(placementv1.ConditionOverridden, metav1.ConditionTrue, placementv1.ReasonNoOverrideSpecified)
	set(placementv1.ConditionWorkSynchronized, metav1.ConditionTrue, placementv1.ReasonAllWorkSynced)
	if refused := f.refuse[cluster]; refused != "" {
		set(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied)
		meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionAvailable)
		status.FailedPlacements = []placementv1.FailedResourcePlacement{{
			ResourceIdentifier: placementv1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "config", Namespace: "x"},
			Condition:          metav1.Condition{Type: placementv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: placementv1.ReasonManifestApplyFailed, Message: refused, LastTransitionTime: metav1.NewTime(b.GetCreationTimestamp().Time)},
		}}
	} else {
		set(placementv1.ConditionApplied, metav1.ConditionTrue, placementv1.ReasonAllWorkHaveBeenApplied)
		set(placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonAllWorkAreAvailable)
	}
	if metaEqual(before, status) {
		return nil
	}
	return f.Status().Update(ctx, b)
}
