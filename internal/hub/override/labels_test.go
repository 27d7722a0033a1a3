package override_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	hub "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/hub/rolling"
	"github.com/fleetwright/fleetwright/internal/hub/work"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of clusters that overrides ask for reach the clusters within the placement's budget, however many change at once, and
// all of them in the end, however fast the agents answer.
func TestLabelsKeepTheBudget(t *testing.T) {
	for name, kinds := range map[string]*placement.Kinds{"cluster": placement.ClusterKinds(), "namespaced": placement.NamespacedKinds()} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, kinds, "a", "b", "c")
			f.answering(true)
			f.override("zone", []string{"it"}, change(everywhere(), replace, "/data/value", `"${MEMBER-CLUSTER-LABEL-KEY-zone}"`))
			f.publish()
			for _, c := range f.clusters {
				f.awaitValue(c, "z1")
				f.awaitAvailable(c)
			}
			f.answering(false)
			for i := range 3 {
				zone := "z" + strconv.Itoa(i+2)
				f.relabel("a", zone)
				f.awaitValue("a", zone)
				f.relabel("b", zone)
				f.relabel("c", zone)
			}
			f.relabel("a", "z5")
			f.awaitValue("a", "z5") // events of clusters come in their order: those before are dealt with
			if b, c := f.value("b", "it"), f.value("c", "it"); b != "z1" || c != "z1" {
				t.Errorf("b has %s and c has %s, while a is not available and 1 may be unavailable", b, c)
			}
			f.answering(true)
			for c, want := range map[string]string{"a": "z5", "b": "z4", "c": "z4"} {
				f.awaitValue(c, want)
				f.awaitAvailable(c)
			}
			if n := f.mostUnanswered(); n > 1 {
				t.Errorf("%d clusters were changed at once, where 1 may be unavailable", n)
			}
		})
	}
}

// fleet is a fixture of a placement of either scope that may have one cluster unavailable, with agents that answer.
type fleet struct {
	*fixture
	kinds    *placement.Kinds
	clusters []string
	// scope is the namespace of the placement's objects; empty for a cluster-scoped one.
	scope string

	mu      sync.Mutex
	answers bool
	most    int
}

func newFleet(t *testing.T, kinds *placement.Kinds, clusters ...string) *fleet {
	t.Helper()
	f := &fleet{fixture: &fixture{Hub: framework.NewHub(t, hubConfig), t: t}, kinds: kinds, clusters: clusters}
	f.namespace = f.Name + "-ns"
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	p := kinds.NewPlacement()
	p.SetName(f.Name)
	selector := placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: f.namespace}
	if kinds.Namespaced {
		f.scope = f.namespace
		selector = placementv1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: "it"}
	}
	p.SetNamespace(f.scope)
	p.PlacementSpec().ResourceSelectors = []placementv1.ResourceSelector{selector}
	p.PlacementSpec().Strategy.Type = placementv1.RollingUpdateRolloutStrategyType
	f.Make(p)
	f.UID = p.GetUID()
	f.Change(p, `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":1,"maxSurge":1}}}}`)
	t.Cleanup(func() { f.Erase(p) })
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		c, live, all := mgr.GetClient(), mgr.GetAPIReader(), []*placement.Kinds{kinds}
		if err := work.AddIndexes(mgr.GetFieldIndexer()); err != nil {
			return err
		}
		for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
			&hub.Controller{Client: c, APIReader: live, Kinds: all, Tracker: &consistency.Tracker{}},
			&hub.Controller{Client: c, APIReader: live, Kinds: all, Tracker: &consistency.Tracker{}, Namespaced: true},
			&rolling.Controller{Client: c, Kinds: kinds, Overrides: hub.NewFinder(live, kinds)},
			&work.Controller{Client: c, APIReader: live, Carriage: &kinds.Carriage, Clock: clock.RealClock{}, Tracker: &consistency.Tracker{}},
		} {
			if err := controller.SetupWithManager(mgr); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range clusters {
		f.bind(c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.runAgents(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return f
}

// owned names and marks what belongs to the placement.
func (f *fleet) owned(o client.Object, name string, labels, annotations map[string]string) {
	m := f.Owned(name)
	for k, v := range labels {
		m.Labels[k] = v
	}
	for k, v := range annotations {
		m.Annotations[k] = v
	}
	o.SetNamespace(f.scope)
	o.SetName(name)
	o.SetLabels(m.Labels)
	o.SetAnnotations(m.Annotations)
}

// bind makes a member in zone z1, and binds the placement to it as the scheduler does.
func (f *fleet) bind(short string) {
	f.t.Helper()
	name := f.Cluster(short)
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(name)}})
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "z1"}}}
	f.Make(m)
	b := f.kinds.NewBinding()
	f.owned(b, placement.BindingName(placement.Key{Namespace: f.scope, Name: f.Name}, name), nil, nil)
	b.SetFinalizers([]string{placementv1.FinalizerWorkCleanup})
	*b.BindingSpec() = placementv1.ResourceBindingSpec{State: placementv1.BindingStateScheduled, TargetCluster: name, SchedulingPolicySnapshotName: f.Name + "-0",
		ClusterDecision: placementv1.ClusterDecision{ClusterName: name, Selected: true, Reason: "picked"}}
	f.Make(b)
	f.t.Cleanup(func() { f.Erase(b); f.Erase(m) })
}

// override makes a ResourceOverride of ConfigMaps, for the placement alone.
func (f *fleet) override(name string, configMaps []string, rules ...placementv1.OverrideRule) *placementv1.ResourceOverride {
	f.t.Helper()
	o := &placementv1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	o.Spec.Placement = &placementv1.PlacementRef{Name: f.Name}
	if f.kinds.Namespaced {
		o.Spec.Placement.Scope = placementv1.NamespaceScoped
	}
	for _, c := range configMaps {
		o.Spec.ResourceSelectors = append(o.Spec.ResourceSelectors, placementv1.ResourceOverrideSelector{Version: "v1", Kind: "ConfigMap", Name: c})
	}
	o.Spec.Policy = &placementv1.OverridePolicy{OverrideRules: rules}
	f.Make(o)
	f.t.Cleanup(func() { f.Erase(o) })
	return o
}

// publish makes the first resource snapshot, of one ConfigMap.
func (f *fleet) publish() {
	f.t.Helper()
	s := f.kinds.NewResourceSnapshot()
	f.owned(s, placement.ResourceSnapshotName(f.Name, 0),
		map[string]string{placementv1.LabelResourceIndex: "0", placementv1.LabelIsLatestSnapshot: "true"},
		map[string]string{placementv1.AnnotationSnapshotCount: "1", placementv1.AnnotationResourceHash: f.Name})
	s.ResourceSnapshotSpec().SelectedResources = []placementv1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(f.configMap("it", "hub"))}}}
	f.Make(s)
	f.t.Cleanup(func() { f.Erase(s) })
}

func (f *fleet) relabel(short, zone string) {
	f.t.Helper()
	f.Change(f.member(short), fmt.Sprintf(`{"metadata":{"labels":{"zone":%q}}}`, zone))
}

func (f *fleet) workOf(short string) *placementv1.Work {
	key := placement.Key{Namespace: f.scope, Name: f.Name}
	return &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: placement.MemberNamespace(f.Cluster(short)), Name: placement.WorkName(key, 0)}}
}

// value is what the placed ConfigMap has in a cluster.
func (f *fleet) value(short, name string) string {
	f.t.Helper()
	w := f.workOf(short)
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		f.t.Fatalf("read the Work for %s: %v", short, err)
	}
	return valueIn(f.t, w, name)
}

func (f *fleet) awaitValue(short, want string) {
	f.t.Helper()
	framework.Await(f.t, f, f.workOf(short), "has "+want, func(w *placementv1.Work) bool { return valueIn(f.t, w, "it") == want })
}

func (f *fleet) awaitAvailable(short string) {
	f.t.Helper()
	b := f.kinds.NewBinding()
	b.SetNamespace(f.scope)
	b.SetName(placement.BindingName(placement.Key{Namespace: f.scope, Name: f.Name}, f.Cluster(short)))
	framework.Await(f.t, f, b, "is available", func(b placementv1.BindingObject) bool {
		c := meta.FindStatusCondition(b.BindingStatus().Conditions, placementv1.ConditionAvailable)
		return c != nil && c.Status == yes && c.ObservedGeneration == b.GetGeneration()
	})
}

// answering has the agents answer at once from now on, or not at all.
func (f *fleet) answering(answers bool) {
	f.t.Helper()
	f.mu.Lock()
	f.answers = answers
	f.mu.Unlock()
	f.answerAll(f.t.Context())
}

func (f *fleet) mostUnanswered() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

func (f *fleet) runAgents(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := f.Watch(ctx, &placementv1.WorkList{}, client.MatchingLabels{placementv1.LabelParentPlacement: f.Name})
		if err != nil {
			continue
		}
		for event := range w.ResultChan() {
			if event.Type == watch.Added || event.Type == watch.Modified {
				f.answerAll(ctx)
			}
		}
	}
}

// answerAll says of all Works that all is well, if they are answered at all. It counts those that wait for an answer to a change.
func (f *fleet) answerAll(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var works placementv1.WorkList
	if err := f.List(ctx, &works, client.MatchingLabels{placementv1.LabelParentPlacement: f.Name}); err != nil {
		return // at the end of the test
	}
	changed := 0
	for i := range works.Items {
		w := &works.Items[i]
		if c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionAvailable); !f.answers || (c != nil && c.ObservedGeneration == w.Generation) {
			continue
		}
		if w.Generation > 1 {
			changed++
		}
		before := w.DeepCopy()
		for _, c := range []metav1.Condition{{Type: placementv1.ConditionApplied, Reason: "AppliedManifestComplete"}, {Type: placementv1.ConditionAvailable, Reason: "WorkAvailable"}} {
			c.Status, c.ObservedGeneration = yes, w.Generation
			meta.SetStatusCondition(&w.Status.Conditions, c)
		}
		// A conflict, or that it is gone, brings another event.
		_ = f.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	f.most = max(f.most, changed)
}
