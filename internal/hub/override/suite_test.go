package override_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	hub "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/hub/rolling"
	"github.com/fleetwright/fleetwright/internal/hub/work"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// fixture is one placement with a hub that keeps overrides, rolls out and writes Works.
type fixture struct {
	*framework.Hub
	t         *testing.T
	placement *placementv1.ClusterResourcePlacement
	// namespace is what the placement places.
	namespace string
}

func newFixture(t *testing.T, strategy placementv1.RolloutStrategyType) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t}
	f.namespace = f.Name + "-ns"
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	f.placement = f.Place(strategy)
	t.Cleanup(func() { f.Erase(f.placement) })
	if strategy == placementv1.RollingUpdateRolloutStrategyType { // no agents answer here, so nothing is ever available
		f.Change(f.placement, `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"100%","maxSurge":"100%"}}}}`)
	}
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		kinds, c, live := placement.ClusterKinds(), f.Writes.Count(mgr.GetClient()), mgr.GetAPIReader()
		if err := work.AddIndexes(mgr.GetFieldIndexer()); err != nil {
			return err
		}
		for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
			&hub.Controller{Client: c, APIReader: live, Kinds: []*placement.Kinds{kinds}, Tracker: &consistency.Tracker{}},
			&hub.Controller{Client: c, APIReader: live, Kinds: []*placement.Kinds{kinds}, Tracker: &consistency.Tracker{}, Namespaced: true},
			&rolling.Controller{Client: c, Kinds: kinds, Overrides: hub.NewFinder(live, kinds)},
			&work.Controller{Client: c, APIReader: live, Carriage: &kinds.Carriage, Clock: clock.RealClock{}, Tracker: &consistency.Tracker{}},
		} {
			if err := controller.SetupWithManager(mgr); err != nil {
				return err
			}
		}
		return nil
	})
	return f
}

// snapshot makes a resource snapshot of the namespace and objects in it.
func (f *fixture) snapshot(index int, objects ...string) *placementv1.ClusterResourceSnapshot {
	f.t.Helper()
	s := &placementv1.ClusterResourceSnapshot{ObjectMeta: f.Owned(placement.ResourceSnapshotName(f.Name, index))}
	s.Labels[placementv1.LabelResourceIndex], s.Labels[placementv1.LabelIsLatestSnapshot] = strconv.Itoa(index), "true"
	s.Annotations[placementv1.AnnotationSnapshotCount] = "1"
	s.Annotations[placementv1.AnnotationResourceHash] = f.Name + strconv.Itoa(index)
	objects = append([]string{fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, f.namespace)}, objects...)
	for _, o := range objects {
		s.Spec.SelectedResources = append(s.Spec.SelectedResources, placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(o)}})
	}
	var envelopes []string
	for _, o := range objects {
		id, err := render.Identify([]byte(o))
		if err != nil {
			f.t.Fatal(err)
		}
		if strings.HasSuffix(id.Kind, "Envelope") {
			envelopes = append(envelopes, "0:"+placement.EnvelopeID(id.Kind, id.Namespace, id.Name))
		}
	}
	if len(envelopes) > 0 {
		s.Annotations[placementv1.AnnotationEnvelopes] = strings.Join(envelopes, ",")
	}
	f.Make(s)
	f.t.Cleanup(func() { f.Erase(s) })
	return s
}

// configMap is a ConfigMap of the namespace.
func (f *fixture) configMap(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q},"data":{"value":%q}}`, name, f.namespace, value)
}

// join makes a member with labels, and binds the placement to it as the scheduler does.
func (f *fixture) join(short string, labels map[string]string) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	name := f.Cluster(short)
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(name)}})
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	f.Make(m)
	b := &placementv1.ClusterResourceBinding{ObjectMeta: f.Owned(placement.BindingName(placement.Key{Name: f.Name}, name))}
	b.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	b.Spec = placementv1.ResourceBindingSpec{State: placementv1.BindingStateScheduled, TargetCluster: name, SchedulingPolicySnapshotName: f.Name + "-0",
		ClusterDecision: placementv1.ClusterDecision{ClusterName: name, Selected: true, Reason: "picked"}}
	f.Make(b)
	f.t.Cleanup(func() { f.Erase(b); f.Erase(m) })
	return b
}

// given waits until a binding was given what is wanted, and its status says so.
func (f *fixture) given(b *placementv1.ClusterResourceBinding, clusterWide, namespaced []string, status metav1.ConditionStatus, reason string) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	framework.Await(f.t, f, b, fmt.Sprintf("has the overrides %v and %v, and is %s/%s", clusterWide, namespaced, status, reason),
		func(b *placementv1.ClusterResourceBinding) bool {
			var names []string
			for _, n := range b.Spec.ResourceOverrideSnapshots {
				names = append(names, n.Namespace+"/"+n.Name)
			}
			c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionOverridden)
			return fmt.Sprint(b.Spec.ClusterResourceOverrideSnapshots) == fmt.Sprint(clusterWide) && fmt.Sprint(names) == fmt.Sprint(namespaced) &&
				c != nil && c.ObservedGeneration == b.Generation && c.Status == status && c.Reason == reason
		})
	return b
}

// placed reads the object that the Work for a cluster carries; nil where it carries none.
func (f *fixture) placed(short, kind, name string) *unstructured.Unstructured {
	f.t.Helper()
	w := &placementv1.Work{}
	key := client.ObjectKey{Namespace: placement.MemberNamespace(f.Cluster(short)), Name: placement.WorkName(placement.Key{Name: f.Name}, 0)}
	if err := f.Get(f.t.Context(), key, w); err != nil {
		f.t.Fatalf("read Work %s: %v", key, err)
	}
	return manifestIn(f.t, w, kind, name)
}

func manifestIn(t *testing.T, w *placementv1.Work, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for i := range w.Spec.Workload.Manifests {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(w.Spec.Workload.Manifests[i].Raw, &o.Object); err != nil {
			t.Fatalf("read a manifest of Work %s/%s: %v", w.Namespace, w.Name, err)
		}
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// value is what a placed ConfigMap has; "-" where it is not placed.
func (f *fixture) value(short, name string) string {
	f.t.Helper()
	return valueOf(f.t, f.placed(short, "ConfigMap", name))
}

// valueIn is what a ConfigMap in a Work has; "-" where it is not in it.
func valueIn(t *testing.T, w *placementv1.Work, name string) string {
	t.Helper()
	return valueOf(t, manifestIn(t, w, "ConfigMap", name))
}

func valueOf(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	if o == nil {
		return "-"
	}
	value, _, err := unstructured.NestedString(o.Object, "data", "value")
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// everywhere selects all clusters; labelled those with a label.
func everywhere() *placementv1.OverrideClusterSelector { return &placementv1.OverrideClusterSelector{} }

func labelled(key, value string) *placementv1.OverrideClusterSelector {
	return &placementv1.OverrideClusterSelector{ClusterSelectorTerms: []placementv1.OverrideClusterSelectorTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}}
}

func change(where *placementv1.OverrideClusterSelector, op placementv1.JSONPatchOverrideOperator, path, value string) placementv1.OverrideRule {
	p := placementv1.JSONPatchOverride{Operator: op, Path: path}
	if value != "" {
		p.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return placementv1.OverrideRule{ClusterSelector: where, OverrideType: placementv1.JSONPatchOverrideType, JSONPatchOverrides: []placementv1.JSONPatchOverride{p}}
}

func leaveOut(where *placementv1.OverrideClusterSelector) placementv1.OverrideRule {
	return placementv1.OverrideRule{ClusterSelector: where, OverrideType: placementv1.DeleteOverrideType}
}

// overrideAll makes a ClusterResourceOverride of the whole namespace.
func (f *fixture) overrideAll(name string, rules ...placementv1.OverrideRule) *placementv1.ClusterResourceOverride {
	f.t.Helper()
	o := &placementv1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: f.Name + "-" + name}}
	o.Spec.Placement = &placementv1.PlacementRef{Name: f.Name}
	o.Spec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: f.namespace}}
	o.Spec.Policy = &placementv1.OverridePolicy{OverrideRules: rules}
	f.Make(o)
	f.t.Cleanup(func() { f.Erase(o) })
	return o
}

// override makes a ResourceOverride of ConfigMaps.
func (f *fixture) override(name string, configMaps []string, rules ...placementv1.OverrideRule) *placementv1.ResourceOverride {
	f.t.Helper()
	o := &placementv1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	for _, c := range configMaps {
		o.Spec.ResourceSelectors = append(o.Spec.ResourceSelectors, placementv1.ResourceOverrideSelector{Version: "v1", Kind: "ConfigMap", Name: c})
	}
	o.Spec.Policy = &placementv1.OverridePolicy{OverrideRules: rules}
	f.Make(o)
	f.t.Cleanup(func() { f.Erase(o) })
	return o
}

// member reads the MemberCluster of a cluster.
func (f *fixture) member(short string) *clusterv1.MemberCluster {
	f.t.Helper()
	m := &clusterv1.MemberCluster{}
	if err := f.Get(f.t.Context(), client.ObjectKey{Name: f.Cluster(short)}, m); err != nil {
		f.t.Fatal(err)
	}
	return m
}
