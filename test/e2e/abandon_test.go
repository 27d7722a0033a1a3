package e2e

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAbandon deletes a placement whose objects are to stay in the members, after it has given up one member, from which they
// are removed. A later placement takes over what was left, and removes it in the end.
func TestAbandon(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const ns = "abandoned"
	create(t, hub, namespace(ns))
	create(t, hub, configMap(ns, "test-cm", "hub"))
	p := placeNamespace(ns, ns, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType, ClusterNames: []string{"member1", "member2", "member3"}}
	p.Spec.Strategy.DeleteStrategy = &placementv1.DeleteStrategy{PropagationPolicy: placementv1.DeletePropagationPolicyAbandon}
	placement := create(t, hub, p)
	for i := range m {
		awaitValue(t, m[i], ns, "test-cm", "hub")
	}
	fewer := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"policy":{"clusterNames":["member1","member2"]}}}`))
	if err := hub.Patch(t.Context(), placement, fewer); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, m[2], namespace(ns))

	if err := hub.Delete(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, hub, placement)
	var uids [2]types.UID
	for i, member := range m[:2] {
		left := &corev1.ConfigMap{}
		if err := member.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "test-cm"}, left); err != nil {
			t.Fatalf("what was abandoned in member%d: %v", i+1, err)
		}
		if len(left.OwnerReferences) > 0 || left.DeletionTimestamp != nil {
			t.Errorf("in member%d it is owned by %v, and deleted at %v", i+1, left.OwnerReferences, left.DeletionTimestamp)
		}
		uids[i] = left.UID
		framework.AwaitGone(t, member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: ns + "-work"}})
	}

	later := create(t, hub, placeNamespace(ns+"-later", ns, placementv1.RollingUpdateRolloutStrategyType))
	framework.Await(t, hub, later, "is available", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementAvailable") == "True/ResourceAvailable"
	})
	for i, member := range m[:2] {
		taken := &corev1.ConfigMap{}
		if err := member.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "test-cm"}, taken); err != nil || taken.UID != uids[i] || len(taken.OwnerReferences) != 1 {
			t.Errorf("member%d: it was %s, and is %s, owned by %v, error %v", i+1, uids[i], taken.UID, taken.OwnerReferences, err)
		}
	}
	if err := hub.Delete(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, hub, later)
	for i := range m {
		framework.AwaitGone(t, m[i], namespace(ns))
	}
}
