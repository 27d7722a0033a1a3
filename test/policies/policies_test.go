package policies_test

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bindings are the fixture's, by cluster.
func (f *fixture) bindings() map[string]placementv1.BindingObject {
	f.t.Helper()
	all, err := listing.Bindings(f.t.Context(), f, placement.ObjectCarriages()[1], client.ObjectKeyFromObject(f.internal()))
	if err != nil {
		f.t.Fatal(err)
	}
	by := map[string]placementv1.BindingObject{}
	for _, b := range all {
		by[b.BindingSpec().TargetCluster] = b
	}
	return by
}

// TestPain20ZeroReplicas: an object with no replicas is in each of its clusters, stays there when it is scaled to none, and is the same
// object when it is scaled again.
func TestPain20ZeroReplicas(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(0))
	f.Make(f.policy(nil))
	f.awaitShares(0, 0)
	before := f.bindings()
	f.scale(8)
	f.awaitShares(4, 4)
	f.answer(f.east, 4)
	f.answer(f.west, 4)
	f.scale(0)
	f.awaitShares(0, 0)
	f.scale(1)
	o := f.internal()
	framework.Await(t, f, o, "has one replica", func(o *policyv1alpha1.ObjectPlacement) bool {
		return ptr.Deref(o.Status.DecidedFor, -1) == 1 && ptr.Deref(o.Status.Clusters[0].Replicas, 0)+ptr.Deref(o.Status.Clusters[1].Replicas, 0) == 1
	})
	for cluster, b := range f.bindings() {
		if b.GetUID() != before[cluster].GetUID() {
			t.Errorf("%s has another binding than before", cluster)
		}
	}
}

// TestFollowsEdits: an edit reaches the Works by itself and makes a revision; a scaling makes none; the hub's object shows the sum, and
// its observed generation once every cluster has observed it.
func TestFollowsEdits(t *testing.T) {
	f := newFixture(t)
	web := f.deployment(4)
	f.Make(web)
	f.Make(f.policy(nil))
	f.awaitShares(2, 2)
	if err := f.Patch(t.Context(), web, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:2"}]`))); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{f.east, f.west} {
		framework.Await(t, f, f.workIn(cluster), "has the new image", func(w *placementv1.Work) bool {
			return manifest(w).Spec.Template.Spec.Containers[0].Image == "web:2"
		})
	}
	f.scale(6)
	f.awaitShares(3, 3)
	revisions, err := listing.ResourceSnapshots(t.Context(), f, placement.ObjectCarriages()[1], client.ObjectKeyFromObject(f.internal()))
	if err != nil || len(revisions) != 2 {
		t.Errorf("%d revisions (%v), want those of the two templates", len(revisions), err)
	}
	f.answer(f.east, 3)
	framework.Await(t, f, web, "shows one cluster", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 3 })
	if web.Status.ObservedGeneration == web.Generation {
		t.Error("the generation is observed, though one cluster has not answered")
	}
	f.answer(f.west, 2)
	framework.Await(t, f, web, "shows both clusters", func(d *appsv1.Deployment) bool {
		return d.Status.ReadyReplicas == 5 && d.Status.ObservedGeneration == d.Generation
	})
}

// TestTooLittleRoom: what does not fit changes nothing, and the condition says how much is missing where.
func TestTooLittleRoom(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(4))
	f.Make(f.policy(nil))
	f.awaitShares(2, 2)
	f.answer(f.east, 2)
	f.answer(f.west, 2)
	f.room(f.east, "3")
	f.room(f.west, "1")
	f.scale(10)
	message := f.awaitScheduled("False/" + policyv1alpha1.ReasonUnschedulable)
	for _, part := range []string{"10 replicas are wanted, 8 fit", f.east + " 5", f.west + " 3", "2 are missing"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	f.awaitShares(2, 2)
	f.room(f.west, "3") // which is news enough
	f.awaitScheduled("True/" + policyv1alpha1.ReasonScheduled)
	f.awaitShares(5, 5)
}

// TestNeverGivenTwice: what a workload was given and its cluster does not report to be in use yet is not given to another.
func TestNeverGivenTwice(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(20))
	f.Make(f.policy(nil))
	f.awaitShares(10, 10)
	other := f.deployment(1)
	other.Name = "other"
	f.Make(other)
	policy := f.policy(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "other" })
	policy.Name = "other"
	f.Make(policy)
	o := &policyv1alpha1.ObjectPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: placement.ObjectPlacementName(deployments, f.ns, "other")}}
	framework.Await(t, f, o, "finds no room", func(o *policyv1alpha1.ObjectPlacement) bool {
		for _, c := range o.Status.Conditions {
			if c.Type == policyv1alpha1.ConditionScheduled && c.Reason == policyv1alpha1.ReasonUnschedulable {
				return true
			}
		}
		return false
	})
	f.scale(18)
	f.awaitShares(9, 9)
	f.answer(f.east, 9)
	f.answer(f.west, 9)
	f.room(f.east, "1")
	framework.Await(t, f, o, "finds room", func(o *policyv1alpha1.ObjectPlacement) bool { return len(o.Status.Clusters) > 0 })
}

// TestSelectsWhatIsThere: a selector that matches everything finds what is there already; one of a kind without namespaces, in a policy
// of a namespace, finds nothing and holds up nobody.
func TestSelectsWhatIsThere(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(2))
	f.Make(f.policy(func(s *policyv1alpha1.PropagationSpec) {
		s.ResourceSelectors = []policyv1alpha1.ResourceSelector{
			{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"},
			{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{}},
		}
	}))
	f.awaitShares(1, 1)
}

// TestReleasedAndTakenUp: without its policy an object's copies stay as they are, even when it is edited; made again, the policy goes on
// with them. Deleting the object removes them.
func TestReleasedAndTakenUp(t *testing.T) {
	f := newFixture(t)
	web, policy := f.deployment(2), f.policy(nil)
	f.Make(web)
	f.Make(policy)
	f.awaitShares(1, 1)
	before := f.bindings()
	if err := f.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	f.awaitScheduled("False/" + policyv1alpha1.ReasonReleased)
	f.scale(4)
	f.Make(f.policy(nil))
	f.awaitShares(2, 2)
	for cluster, b := range f.bindings() {
		if b.GetUID() != before[cluster].GetUID() {
			t.Errorf("%s has another binding than before", cluster)
		}
	}
	if err := f.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	f.removes(f.east)
	f.removes(f.west)
	framework.AwaitGone(t, f, f.internal())
}

// TestPreserved: copies of an object that its policy preserves are let go of when it is deleted, and not removed.
func TestPreserved(t *testing.T) {
	f := newFixture(t)
	web := f.deployment(2)
	f.Make(web)
	f.Make(f.policy(func(s *policyv1alpha1.PropagationSpec) { s.PreserveResourcesOnDeletion = ptr.To(true) }))
	f.awaitShares(1, 1)
	if err := f.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, f, f.workIn(f.east), "is let go of", func(w *placementv1.Work) bool {
		return w.Annotations[placementv1.AnnotationRemovalConfirmed] == placementv1.RemovalAbandons
	})
}

// TestPain24Suspended: a suspended cluster keeps exactly what it has, whatever the hub's object says, and gets it all once that is over.
func TestPain24Suspended(t *testing.T) {
	f := newFixture(t)
	web := f.deployment(6)
	policy := f.policy(func(s *policyv1alpha1.PropagationSpec) {
		s.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"nobody"}}}
	})
	f.Make(web)
	f.Make(policy)
	f.awaitShares(3, 3)
	f.Change(policy, `{"spec":{"suspension":{"dispatchingOnClusters":{"clusterNames":["`+f.east+`"]}}}}`)
	framework.Await(t, f, f.bindings()[f.east].(*placementv1.ResourceBinding), "is suspended", func(b *placementv1.ResourceBinding) bool { return b.Spec.Suspended })
	if err := f.Patch(t.Context(), web, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:2"}]`))); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, f, f.workIn(f.west), "has the new image", func(w *placementv1.Work) bool { return manifest(w).Spec.Template.Spec.Containers[0].Image == "web:2" })
	f.scale(4)
	f.awaitShares(3, 1) // east is frozen
	w := f.workIn(f.east)
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil || manifest(w).Spec.Template.Spec.Containers[0].Image != "web:1" {
		t.Errorf("the suspended cluster got the new image (%v)", err)
	}
	f.Change(policy, `{"spec":{"suspension":null}}`)
	framework.Await(t, f, w, "has the new image", func(w *placementv1.Work) bool { return manifest(w).Spec.Template.Spec.Containers[0].Image == "web:2" })
}

// TestPain22Moves: replicas that move to another cluster leave theirs only as they are ready there.
func TestPain22Moves(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(4))
	policy := f.policy(func(s *policyv1alpha1.PropagationSpec) {
		s.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.east}}
	})
	f.Make(policy)
	f.awaitShares(4, -1)
	f.answer(f.east, 4)
	f.Change(policy, `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["`+f.west+`"]}}}}`)
	f.awaitShares(4, 4)
	f.answer(f.west, 1)
	f.awaitShares(3, 4)
	f.answer(f.east, 3)
	f.answer(f.west, 4)
	f.removes(f.east)
}

// TestNothingMovesInRelease: while a member releases the object in batches, replicas stay where they are; after that they move.
func TestNothingMovesInRelease(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(4))
	policy := f.policy(nil)
	f.Make(policy)
	f.awaitShares(2, 2)
	f.answer(f.east, 2, func(m *placementv1.ManifestCondition) {
		m.Conditions[1].Status, m.Conditions[1].Reason = metav1.ConditionFalse, placementv1.ReasonManifestUpdatedByRollout
	})
	f.answer(f.west, 2)
	f.Change(policy, `{"metadata":{"annotations":{"marker":"1"}},"spec":{"placement":{"clusterAffinity":{"labelSelector":null,"clusterNames":["`+f.west+`"]}}}}`)
	o := f.internal()
	framework.Await(t, f, o, "says that a release is in progress", func(o *policyv1alpha1.ObjectPlacement) bool {
		for _, c := range o.Status.Conditions {
			if c.Type == policyv1alpha1.ConditionScheduled && c.ObservedGeneration == o.Generation && strings.Contains(c.Message, "release in progress") {
				return true
			}
		}
		return false
	})
	f.awaitShares(2, 2)
	f.answer(f.east, 2)
	f.awaitShares(2, 4)
}

// TestDamage: a binding that somebody deletes is made again with what it had, and one that lost its label is found again.
func TestDamage(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(2))
	f.Make(f.policy(nil))
	f.awaitShares(1, 1)
	b := f.bindings()[f.east]
	work := f.workIn(f.east)
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	again := &placementv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: b.GetNamespace(), Name: b.GetName()}}
	framework.Await(t, f, again, "is made again", func(r *placementv1.ResourceBinding) bool {
		return r.UID != b.GetUID() && r.DeletionTimestamp.IsZero() && ptr.Deref(r.Spec.Replicas, -1) == 1
	})
	after := f.workIn(f.east)
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil || after.UID != work.UID {
		t.Errorf("the Work is another one (%v): its copies would have been removed", err)
	}
	f.Change(again, `{"metadata":{"labels":{"`+placementv1.LabelParentObject+`":null}}}`)
	framework.Await(t, f, again, "has its label back", func(r *placementv1.ResourceBinding) bool { return r.Labels[placementv1.LabelParentObject] != "" })
}

// TestRebalance divides anew on demand and says what that changed.
func TestRebalance(t *testing.T) {
	f := newFixture(t)
	web := f.deployment(8)
	f.Make(web)
	f.Make(f.policy(nil))
	f.awaitShares(4, 4)
	f.answer(f.east, 4)
	f.answer(f.west, 4)
	f.room(f.east, "0")
	f.room(f.west, "20")
	f.Change(web, `{"metadata":{"annotations":{"`+policyv1alpha1.AnnotationRebalance+`":"2030-01-01T00:00:00Z"}}}`)
	o := f.internal()
	framework.Await(t, f, o, "says what a rebalancing has changed", func(o *policyv1alpha1.ObjectPlacement) bool { return o.Status.LastRebalance != nil })
	if r := o.Status.LastRebalance; !r.Changed || !strings.Contains(r.Message, f.east+" from 4 to 1") {
		t.Errorf("got %+v", r)
	}
}

// TestLazy: an edit of a lazy policy counts once its object is edited; a rebalance is made at once, and one that is no time is named.
func TestLazy(t *testing.T) {
	f := newFixture(t)
	web := f.deployment(4)
	policy := f.policy(func(s *policyv1alpha1.PropagationSpec) { s.ActivationPreference = policyv1alpha1.ActivateLazily })
	f.Make(web)
	f.Make(policy)
	f.awaitShares(2, 2)
	f.answer(f.east, 2)
	f.answer(f.west, 2)
	f.Change(policy, `{"spec":{"placement":{"clusterAffinity":{"labelSelector":null,"clusterNames":["`+f.west+`"]}}}}`)
	f.Change(policy, `{"metadata":{"annotations":{"`+policyv1alpha1.AnnotationRebalance+`":"2030-01-01T00:00:00Z"}}}`)
	o := f.internal()
	framework.Await(t, f, o, "has made a rebalancing", func(o *policyv1alpha1.ObjectPlacement) bool { return o.Status.LastRebalance != nil })
	if names := o.Spec.Placement.ClusterAffinity.ClusterNames; len(names) > 0 {
		t.Errorf("the edit of the policy counts already: %v", names)
	}
	f.Change(web, `{"metadata":{"annotations":{"`+policyv1alpha1.AnnotationRebalance+`":"tomorrow"}},"spec":{"revisionHistoryLimit":3}}`)
	framework.Await(t, f, o, "follows the policy, and names what is no time", func(o *policyv1alpha1.ObjectPlacement) bool {
		for _, c := range o.Status.Conditions {
			if c.Type == policyv1alpha1.ConditionScheduled && strings.Contains(c.Message, `is "tomorrow"`) {
				return len(o.Spec.Placement.ClusterAffinity.ClusterNames) == 1
			}
		}
		return false
	})
	f.awaitShares(2, 4)
}

// TestNamespaceDeleted: copies go when the hub's namespace is deleted, though its objects may go in any order.
func TestNamespaceDeleted(t *testing.T) {
	f := newFixture(t)
	f.Make(f.deployment(2))
	f.Make(f.policy(nil))
	f.awaitShares(1, 1)
	if err := f.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}); err != nil {
		t.Fatal(err)
	}
	// The namespace controller deletes all that is in it; here the bindings come first.
	for _, b := range f.bindings() {
		if err := client.IgnoreNotFound(f.Delete(t.Context(), b)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Delete(t.Context(), f.deployment(0)); err != nil {
		t.Fatal(err)
	}
	f.removes(f.east)
	f.removes(f.west)
	framework.AwaitGone(t, f, f.internal())
}

// TestDependencies: what the pods refer to goes along and follows; what is missing is named.
func TestDependencies(t *testing.T) {
	f := newFixture(t)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "settings"}, Data: map[string]string{"a": "1"}}
	f.Make(settings)
	web := f.deployment(2)
	from := func(name string) corev1.EnvFromSource {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	web.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{from("settings"), from("absent")}
	f.Make(web)
	f.Make(f.policy(func(s *policyv1alpha1.PropagationSpec) { s.PropagateDeps = true }))
	carries := func(text string) func(*placementv1.Work) bool {
		return func(w *placementv1.Work) bool {
			for i := range w.Spec.Workload.Manifests {
				if strings.Contains(string(w.Spec.Workload.Manifests[i].Raw), text) {
					return true
				}
			}
			return false
		}
	}
	framework.Await(t, f, f.workIn(f.east), "carries the ConfigMap", carries(`"a":"1"`))
	if message := f.awaitScheduled("True/" + policyv1alpha1.ReasonScheduled); !strings.Contains(message, "ConfigMap absent") {
		t.Errorf("%q does not name what is missing", message)
	}
	f.Change(settings, `{"data":{"a":"2"}}`)
	framework.Await(t, f, f.workIn(f.east), "follows the ConfigMap", carries(`"a":"2"`))
	f.Make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "absent"}, Data: map[string]string{"b": "3"}})
	framework.Await(t, f, f.workIn(f.east), "carries what was missing", carries(`"b":"3"`))
}
