package e2e

import (
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A placement moves with its policy: to the clusters that are named, and, by property, number and taint, to those that are fit.
// One that asks for what the fleet has not says so, and one that contradicts itself is refused.
func TestScheduling(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	create(t, hub, namespace("sched"))
	create(t, hub, configMap("sched", "config", "value1"))
	fixed := placeNamespace("sched-fixed", "sched", placementv1.RollingUpdateRolloutStrategyType)
	fixed.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType, ClusterNames: []string{"member2"}}
	create(t, hub, fixed)
	awaitValue(t, clientFor(t, fleet, "member2"), "sched", "config", "value1")
	if got := valueOf(t, clientFor(t, fleet, "member1"), "sched", "config"); got != "" {
		t.Errorf("member1 is not named and has %q", got)
	}
	change(t, hub, fixed, `{"spec":{"policy":{"clusterNames":["member3"]}}}`)
	awaitValue(t, clientFor(t, fleet, "member3"), "sched", "config", "value1")
	awaitGone(t, clientFor(t, fleet, "member2"), "sched", "config")

	taint(t, hub, "member1", `[{"key":"e2e-full","effect":"NoSchedule"}]`)
	t.Cleanup(func() { taint(t, hub, "member1", "null") })
	create(t, hub, namespace("sched-n"))
	some := placeNamespace("sched-n", "sched-n", placementv1.RollingUpdateRolloutStrategyType)
	some.Spec.Policy = &placementv1.PlacementPolicy{
		PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](3),
		Affinity: &placementv1.Affinity{ClusterAffinity: &placementv1.ClusterAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &placementv1.ClusterSelector{
			ClusterSelectorTerms: []placementv1.ClusterSelectorTerm{{PropertySelector: &placementv1.PropertySelector{
				MatchExpressions: []placementv1.PropertySelectorRequirement{
					{Name: "resources.kubernetes-fleet.io/allocatable-cpu", Operator: placementv1.PropertyGreaterThanOrEqual, Values: []string{"16"}}},
			}}}}}},
	}
	create(t, hub, some)
	scheduled := func(want string) string {
		t.Helper()
		p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "sched-n"}}
		framework.Await(t, hub, p, "Scheduled is "+want, func(p *placementv1.ClusterResourcePlacement) bool {
			return condition(p.Status.Conditions, "ClusterResourcePlacementScheduled") == want
		})
		return meta.FindStatusCondition(p.Status.Conditions, "ClusterResourcePlacementScheduled").Message
	}
	if got := scheduled("False/SchedulingPolicyUnfulfilled"); !strings.Contains(got, "found 2 cluster(s) instead; 3 are asked for; of the others, 1 with a taint") {
		t.Errorf("message %q", got)
	}
	taint(t, hub, "member1", "null")
	scheduled("True/SchedulingPolicyFulfilled")

	wrong := placeNamespace("sched-wrong", "sched-n", placementv1.RollingUpdateRolloutStrategyType)
	wrong.Spec.Policy.NumberOfClusters = ptr.To[int32](1)
	if err := hub.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll") {
		t.Errorf("a PickAll placement with a number: %v", err)
	}
}

func change(t *testing.T, hub client.Client, o client.Object, patch string) {
	t.Helper()
	if err := hub.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatalf("change %s: %v", o.GetName(), err)
	}
}

func taint(t *testing.T, hub client.Client, member, taints string) {
	t.Helper()
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
	if err := hub.Patch(framework.CleanupContext(t), m, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"taints":`+taints+`}}`))); err != nil {
		t.Errorf("taint %s with %s: %v", member, taints, err)
	}
}

// awaitGone waits until a member has the ConfigMap no more.
func awaitGone(t *testing.T, member client.WithWatch, namespace, name string) {
	t.Helper()
	cm := configMap(namespace, name, "")
	if err := framework.AwaitE(t.Context(), member, cm, func(exists bool) bool { return !exists }); err != nil {
		t.Errorf("wait until ConfigMap %s/%s is gone: %v", namespace, name, err)
	}
}
