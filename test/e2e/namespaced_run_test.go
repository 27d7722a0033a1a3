package e2e

import (
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// placeConfigMap is a placement of one ConfigMap out of its own namespace.
func placeConfigMap(namespace, name string, strategy placementv1.RolloutStrategyType) *placementv1.ResourcePlacement {
	p := &placementv1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "test-cm"}}
	p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickAllPlacementType}
	p.Spec.Strategy.Type = strategy
	return p
}

// placeOnly is a placement of a namespace without what is in it.
func placeOnly(name, namespace string) *placementv1.ClusterResourcePlacement {
	p := placeNamespace(name, namespace, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.ResourceSelectors[0].SelectionScope = placementv1.SelectionScopeNamespaceOnly
	return p
}

// placeShell places a namespace alone, and waits until the hub knows that every member has it: it chooses no other for the
// placements in it, and a run goes to those that are chosen when it begins.
func placeShell(t *testing.T, hub client.WithWatch, name, namespace string) *placementv1.ClusterResourcePlacement {
	t.Helper()
	shell := create(t, hub, placeOnly(name, namespace))
	awaitNamespace(t, hub, namespace, "member1", "member2", "member3")
	return shell
}

// awaitNamespace waits until the hub knows that members have a namespace.
func awaitNamespace(t *testing.T, hub client.WithWatch, namespace string, members ...string) {
	t.Helper()
	for _, name := range members {
		member := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		framework.Await(t, hub, member, "is known to have namespace "+namespace, func(m *clusterv1.MemberCluster) bool {
			_, has := m.Status.Namespaces[namespace]
			return has
		})
	}
}

func namespacedRun(namespace, name, placement, strategy, index string) *placementv1.StagedUpdateRun {
	r := &placementv1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	r.Spec = updateRun(name, placement, strategy, index, placementv1.UpdateRunStateRun).Spec
	return r
}

func awaitNamespacedRun(t testing.TB, hub client.WithWatch, run *placementv1.StagedUpdateRun) {
	t.Helper()
	framework.Await(t, hub, run, "has succeeded", func(r *placementv1.StagedUpdateRun) bool {
		return condition(r.Status.Conditions, placementv1.ConditionSucceeded) == "True/UpdateRunSucceeded"
	})
}

// approveNamespaced approves a request as the first seed does.
func approveNamespaced(t testing.TB, hub client.WithWatch, namespace, name string) {
	t.Helper()
	request := &placementv1.ApprovalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	framework.Await(t, hub, request, "exists", func(*placementv1.ApprovalRequest) bool { return true })
	patch := `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"testPassed","message":"lgtm","observedGeneration":1,"lastTransitionTime":"` +
		metav1.Now().UTC().Format(time.RFC3339) + `"}]}}`
	if err := hub.Status().Patch(t.Context(), request, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatalf("approve %s: %v", name, err)
	}
	if request.Status.ApprovedBy == nil || request.Status.ApprovedBy.User == "" {
		t.Errorf("nothing says who approved %s", name)
	}
}

// TestSeedOneNamespaced is the namespaced half of the first seed. A cluster-scoped placement and its parts, of the same names,
// are there at the same time and have nothing to do with it.
func TestSeedOneNamespaced(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	labelMembers(t, hub)
	const ns, twin, name = "seed-two", "seed-two-twin", "example"
	create(t, hub, namespace(ns))
	create(t, hub, namespace(twin))
	cm := create(t, hub, configMap(ns, "test-cm", "value1"))
	create(t, hub, configMap(twin, "test-cm", "twin"))
	shell := placeShell(t, hub, "seed-two-shell", ns)
	create(t, hub, placeNamespace(name, twin, placementv1.RollingUpdateRolloutStrategyType))
	for i := range m {
		awaitValue(t, m[i], twin, "test-cm", "twin")
	}
	if diff := cmp.Diff([3]string{}, values(t, m, ns)); diff != "" {
		t.Errorf("with the namespace alone nothing in it is placed (-want +got):\n%s", diff)
	}
	placement := create(t, hub, placeConfigMap(ns, name, placementv1.ExternalRolloutStrategyType))
	framework.Await(t, hub, placement, "is scheduled", func(p *placementv1.ResourcePlacement) bool {
		return condition(p.Status.Conditions, "ResourcePlacementScheduled") == "True/SchedulingPolicyFulfilled"
	})
	strategy := &placementv1.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	strategy.Spec = stagingThenCanary(name, time.Second).Spec
	create(t, hub, strategy)

	first := create(t, hub, namespacedRun(ns, "first", name, name, ""))
	awaitValue(t, m[1], ns, "test-cm", "value1")
	approveNamespaced(t, hub, ns, "first-before-canary")
	awaitNamespacedRun(t, hub, first)
	cm.Data["key"] = "value2"
	if err := hub.Update(t.Context(), cm); err != nil {
		t.Fatalf("change the ConfigMap: %v", err)
	}
	second := create(t, hub, namespacedRun(ns, "second", name, name, ""))
	approveNamespaced(t, hub, ns, "second-before-canary")
	awaitNamespacedRun(t, hub, second)
	if diff := cmp.Diff([3]string{"value2", "value2", "value2"}, values(t, m, ns)); diff != "" {
		t.Errorf("after the second run (-want +got):\n%s", diff)
	}
	back := create(t, hub, namespacedRun(ns, "back", name, name, "0"))
	approveNamespaced(t, hub, ns, "back-before-canary")
	awaitNamespacedRun(t, hub, back)
	if diff := cmp.Diff([3]string{"value1", "value1", "value1"}, values(t, m, ns)); diff != "" {
		t.Errorf("after rolling back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([3]string{"twin", "twin", "twin"}, values(t, m, twin)); diff != "" {
		t.Errorf("the cluster-scoped placement of the same name (-want +got):\n%s", diff)
	}

	if err := hub.Delete(t.Context(), placement); err != nil {
		t.Fatalf("delete the placement: %v", err)
	}
	framework.AwaitGone(t, hub, placement)
	for i := range m {
		framework.AwaitGone(t, m[i], configMap(ns, "test-cm", ""))
		awaitValue(t, m[i], twin, "test-cm", "twin")
	}
	if err := hub.Delete(t.Context(), shell); err != nil {
		t.Fatalf("delete the placement of the namespace: %v", err)
	}
	framework.AwaitGone(t, hub, shell)
	for i := range m {
		framework.AwaitGone(t, m[i], namespace(ns))
	}
}

// TestTwoPlacementsOfOneObject: a cluster-scoped and a namespaced placement select one ConfigMap. Who placed it keeps it, and
// the other is told by whom it is taken; when the first goes, the object is handed over and stays the same one.
func TestTwoPlacementsOfOneObject(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const ns = "contested"
	create(t, hub, namespace(ns))
	create(t, hub, configMap(ns, "test-cm", "value1"))
	shell := placeShell(t, hub, "contested-shell", ns)
	first := create(t, hub, placeConfigMap(ns, "first", placementv1.RollingUpdateRolloutStrategyType))
	for i := range m {
		awaitValue(t, m[i], ns, "test-cm", "value1")
	}
	before := configMap(ns, "test-cm", "")
	if err := m[0].Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	second := placeNamespace("contested-second", ns, placementv1.RollingUpdateRolloutStrategyType)
	create(t, hub, second)
	framework.Await(t, hub, second, "says who has the ConfigMap", func(p *placementv1.ClusterResourcePlacement) bool {
		for _, row := range p.Status.PlacementStatuses {
			for _, failed := range row.FailedPlacements {
				if failed.Kind == "ConfigMap" && strings.Contains(failed.Condition.Message, `is placed by ResourcePlacement "contested/first" already`) {
					return true
				}
			}
		}
		return false
	})
	for _, p := range []client.Object{first, shell} {
		if err := hub.Delete(t.Context(), p); err != nil {
			t.Fatalf("delete placement %s: %v", p.GetName(), err)
		}
		framework.AwaitGone(t, hub, p)
	}
	framework.Await(t, hub, second, "is available", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementAvailable") == "True/ResourceAvailable"
	})
	after := configMap(ns, "test-cm", "")
	if err := m[0].Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		t.Fatal(err)
	}
	if before.UID != after.UID {
		t.Errorf("the ConfigMap was made anew: UID %s, before %s", after.UID, before.UID)
	}
}

// TestNamespacedBadInput: what a user gets wrong is said in a condition of the placement or the run.
func TestNamespacedBadInput(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	const ns = "mistaken"
	create(t, hub, namespace(ns))
	placeShell(t, hub, "mistaken-shell", ns)
	wrong := placeConfigMap(ns, "wrong", placementv1.ExternalRolloutStrategyType)
	wrong.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: ns}}
	create(t, hub, wrong)
	framework.Await(t, hub, wrong, "says that the kind is cluster-scoped", func(p *placementv1.ResourcePlacement) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == "ResourcePlacementScheduled" && c.Reason == "InvalidResourceSelectors" {
				return strings.Contains(c.Message, "use a ClusterResourcePlacement")
			}
		}
		return false
	})
	right := create(t, hub, placeConfigMap(ns, "right", placementv1.ExternalRolloutStrategyType))
	strategy := &placementv1.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
	strategy.Spec.Stages = []placementv1.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}}}
	create(t, hub, strategy)
	run := create(t, hub, namespacedRun(ns, "unknown", right.Name, "one", "7"))
	framework.Await(t, hub, run, "says that there is no such snapshot", func(r *placementv1.StagedUpdateRun) bool {
		for _, c := range r.Status.Conditions {
			if c.Type == placementv1.ConditionInitialized && c.Status == "False" {
				return strings.Contains(c.Message, "no resource snapshot with index 7")
			}
		}
		return false
	})
}
