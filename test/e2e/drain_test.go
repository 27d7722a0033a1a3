package e2e

import (
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// evict asks the hub to take a placement from a member, and returns the word that ends it.
func evict(t *testing.T, hub client.WithWatch, name, placement, cluster string) metav1.Condition {
	t.Helper()
	e := &placementv1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec = placementv1.PlacementEvictionSpec{PlacementName: placement, ClusterName: cluster}
	create(t, hub, e)
	var word *metav1.Condition
	framework.Await(t, hub, e, "is answered", func(e *placementv1.ClusterResourcePlacementEviction) bool {
		if word = meta.FindStatusCondition(e.Status.Conditions, placementv1.ConditionExecuted); word == nil {
			word = meta.FindStatusCondition(e.Status.Conditions, placementv1.ConditionValid)
		}
		return word != nil && (word.Type == placementv1.ConditionExecuted || word.Status == metav1.ConditionFalse)
	})
	return *word
}

// TestDrain empties member3: a disruption budget keeps a placement there until it is lifted, and then another member takes the
// place; one that is everywhere comes back when the member may be used again.
func TestDrain(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const two, all = "drain-two", "drain-all"
	placeWeb(t, hub, all)
	create(t, hub, namespace(two))
	create(t, hub, web(two))
	p := placeNamespace(two, two, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](2)}
	placement := create(t, hub, p)
	awaitAvailable(t, hub, placement)
	if rowOf(placement, "member3").ClusterName == "" {
		t.Fatalf("of equal members the last ones are chosen, but the placement is on %+v", placement.Status.PlacementStatuses)
	}
	budget := &placementv1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: two}}
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(2))
	create(t, hub, budget)
	t.Cleanup(func() { _ = uncordon(t) })

	amcSays(t, 1, []string{
		"member3 cordoned", all + " evicted from member3", two + " not evicted from member3: Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget",
		"ClusterResourcePlacementDisruptionBudget " + two + " has minAvailable 2: evict again when more clusters are available, or change it",
		`member "member3" is not drained; blocked: ClusterResourcePlacement ` + two,
	}, "drain", "member3")
	framework.AwaitGone(t, m[2], namespace(all))
	kept := web(two)
	if err := m[2].Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil || kept.DeletionTimestamp != nil {
		t.Errorf("the budget keeps the placement in member3, but its Deployment: %v, deleted at %v", err, kept.DeletionTimestamp)
	}
	if err := hub.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	amcSays(t, 0, []string{"member3 already cordoned", two + " evicted from member3", "member3 drained"}, "drain", "member3")
	framework.AwaitGone(t, m[2], namespace(two))
	for i := range 2 {
		framework.Await(t, m[i], web(two), "runs in the other members", func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 2 })
	}
	if out := uncordon(t); !strings.Contains(out, "member3 uncordoned") {
		t.Errorf("uncordon prints %q", out)
	}
	member := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member3"}}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(member), member); err != nil || len(member.Spec.Taints) > 0 {
		t.Errorf("after uncordon member3 has the taints %v (%v)", member.Spec.Taints, err)
	}
	framework.Await(t, m[2], web(all), "is back", func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 2 })

	amcSays(t, 1, []string{`there is no member "member9" on this hub`}, "drain", "member9")
	amcSays(t, 1, []string{`there is no member "member9" on this hub`}, "uncordon", "member9")
	for name, tc := range map[string]struct{ placement, cluster, want string }{
		"drain-no-placement": {"drain-none", "member1", `Failed to find ClusterResourcePlacement targeted by eviction; there is no ClusterResourcePlacement "drain-none"`},
		"drain-no-member":    {all, "member9", `Failed to find scheduler decision for placement in cluster targeted by eviction; ClusterResourcePlacement "` + all + `" has nothing in cluster "member9"`},
	} {
		if got := evict(t, hub, name, tc.placement, tc.cluster); got.Type != placementv1.ConditionValid || !strings.HasPrefix(got.Message, tc.want) {
			t.Errorf("%s: %s is %s, %q", name, got.Type, got.Status, got.Message)
		}
	}
}

// uncordon lets member3 be used again, at the end of a test too, and returns what is printed.
func uncordon(t *testing.T) string {
	t.Helper()
	out, code := amc(t, "uncordon", "member3")
	if code != 0 {
		t.Errorf("kubectl amc uncordon member3: exit code %d\n%s", code, out)
	}
	return out
}
