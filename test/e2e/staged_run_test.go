package e2e

import (
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// labelMembers gives the three members the first seed's labels.
func labelMembers(t testing.TB, hub client.WithWatch) {
	t.Helper()
	for name, labels := range map[string]map[string]string{
		"member1": {"environment": "canary", "order": "2"},
		"member2": {"environment": "staging"},
		"member3": {"environment": "canary", "order": "1"},
	} {
		cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			t.Fatalf("read member %s: %v", name, err)
		}
		before := cluster.DeepCopy()
		for k, v := range labels {
			metav1.SetMetaDataLabel(&cluster.ObjectMeta, k, v)
		}
		if err := hub.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
			t.Fatalf("label member %s: %v", name, err)
		}
	}
}

// members returns clients for member1, member2 and member3.
func members(t testing.TB) [3]client.WithWatch {
	return [3]client.WithWatch{clientFor(t, fleet, "member1"), clientFor(t, fleet, "member2"), clientFor(t, fleet, "member3")}
}

// values are what the ConfigMap holds in the three members.
func values(t testing.TB, members [3]client.WithWatch, namespace string) [3]string {
	t.Helper()
	var got [3]string
	for i, m := range members {
		got[i] = valueOf(t, m, namespace, "test-cm")
	}
	return got
}

// TestSeedOneClusterScoped is the cluster-scoped half of the first seed: place, run, wait, approve, stop, go on, roll back.
func TestSeedOneClusterScoped(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	labelMembers(t, hub)
	const ns = "seed-one"
	create(t, hub, namespace(ns))
	cm := create(t, hub, configMap(ns, "test-cm", "value1"))
	placement := create(t, hub, placeNamespace("seed-one", ns, placementv1.ExternalRolloutStrategyType))
	framework.Await(t, hub, placement, "is scheduled", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementScheduled") == "True/SchedulingPolicyFulfilled"
	})
	create(t, hub, stagingThenCanary("seed-one", 2*time.Second))

	first := create(t, hub, updateRun("seed-one-first", placement.Name, "seed-one", "", placementv1.UpdateRunStateRun))
	awaitValue(t, m[1], ns, "test-cm", "value1")
	framework.Await(t, hub, first, "waits for approval", func(r *placementv1.ClusterStagedUpdateRun) bool {
		return len(r.Status.StagesStatus) == 2 && condition(r.Status.StagesStatus[1].Conditions, "Progressing") == "False/StageUpdatingWaiting"
	})
	if diff := cmp.Diff([3]string{"", "value1", ""}, values(t, m, ns)); diff != "" {
		t.Errorf("before the approval only the staging cluster is changed (-want +got):\n%s", diff)
	}
	approve(t, hub, "seed-one-first-before-canary")
	awaitRun(t, hub, first, "Succeeded", "True/UpdateRunSucceeded")
	if diff := cmp.Diff([3]string{"value1", "value1", "value1"}, values(t, m, ns)); diff != "" {
		t.Errorf("after the run (-want +got):\n%s", diff)
	}

	cm.Data["key"] = "value2"
	if err := hub.Update(t.Context(), cm); err != nil {
		t.Fatalf("change the ConfigMap: %v", err)
	}
	second := create(t, hub, updateRun("seed-one-second", placement.Name, "seed-one", "", placementv1.UpdateRunStateInitialize))
	awaitRun(t, hub, second, "Initialized", "True/UpdateRunInitializedSuccessfully")
	setState(t, hub, second, placementv1.UpdateRunStateRun)
	awaitValue(t, m[1], ns, "test-cm", "value2")
	setState(t, hub, second, placementv1.UpdateRunStateStop)
	awaitRun(t, hub, second, "Progressing", "False/UpdateRunStopped")
	setState(t, hub, second, placementv1.UpdateRunStateRun)
	approve(t, hub, "seed-one-second-before-canary")
	awaitRun(t, hub, second, "Succeeded", "True/UpdateRunSucceeded")

	back := create(t, hub, updateRun("seed-one-back", placement.Name, "seed-one", "0", placementv1.UpdateRunStateRun))
	approve(t, hub, "seed-one-back-before-canary")
	awaitRun(t, hub, back, "Succeeded", "True/UpdateRunSucceeded")
	if diff := cmp.Diff([3]string{"value1", "value1", "value1"}, values(t, m, ns)); diff != "" {
		t.Errorf("after rolling back (-want +got):\n%s", diff)
	}

	if err := hub.Delete(t.Context(), placement); err != nil {
		t.Fatalf("delete the placement: %v", err)
	}
	framework.AwaitGone(t, hub, placement)
	for i := range m {
		framework.AwaitGone(t, m[i], &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
}

// setState changes what a run is to do.
func setState(t testing.TB, hub client.Client, run *placementv1.ClusterStagedUpdateRun, state placementv1.UpdateRunState) {
	t.Helper()
	patch := []byte(`{"spec":{"state":"` + string(state) + `"}}`)
	if err := hub.Patch(t.Context(), run, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatalf("set run %s to %s: %v", run.Name, state, err)
	}
}
