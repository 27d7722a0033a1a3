package e2e

import (
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create creates an object, and deletes it when the test ends, waiting until it is gone, so that the next test finds a
// clean fleet. What a test deletes itself is not missed.
func create[T client.Object](t testing.TB, c client.WithWatch, object T) T {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
	t.Cleanup(func() {
		ctx := framework.CleanupContext(t)
		left := object.DeepCopyObject().(T)
		if err := client.IgnoreNotFound(c.Delete(ctx, left)); err != nil {
			t.Errorf("delete %T %s: %v", object, object.GetName(), err)
			return
		}
		if err := framework.AwaitE(ctx, c, left, func(exists bool) bool { return !exists }); err != nil {
			t.Errorf("wait until %T %s is gone: %v\nlast seen: %+v", object, object.GetName(), err, left)
		}
	})
	return object
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"key": value}}
}

// placeNamespace is a placement of a namespace and what is in it.
func placeNamespace(name, namespace string, strategy placementv1.RolloutStrategyType) *placementv1.ClusterResourcePlacement {
	return &placementv1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1.PlacementSpec{
			ResourceSelectors: []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: namespace}},
			Policy:            &placementv1.PlacementPolicy{PlacementType: placementv1.PickAllPlacementType},
			Strategy:          placementv1.RolloutStrategy{Type: strategy},
		},
	}
}

// stagingThenCanary is the first seed's strategy.
func stagingThenCanary(name string, wait time.Duration) *placementv1.ClusterStagedUpdateStrategy {
	environment := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"environment": value}}
	}
	return &placementv1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1.UpdateStrategySpec{Stages: []placementv1.StageConfig{
			{
				Name: "staging", LabelSelector: environment("staging"), MaxConcurrency: ptr.To(intstr.FromInt32(1)),
				AfterStageTasks: []placementv1.StageTask{{Type: placementv1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: wait}}},
			},
			{
				Name: "canary", LabelSelector: environment("canary"), SortingLabelKey: ptr.To("order"), MaxConcurrency: ptr.To(intstr.FromString("50%")),
				BeforeStageTasks: []placementv1.StageTask{{Type: placementv1.StageTaskTypeApproval}},
			},
		}},
	}
}

func updateRun(name, placement, strategy, index string, state placementv1.UpdateRunState) *placementv1.ClusterStagedUpdateRun {
	return &placementv1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1.UpdateRunSpec{
			PlacementName: placement, StagedUpdateStrategyName: strategy, ResourceSnapshotIndex: index, State: state,
		},
	}
}

// condition returns status/reason of a condition, and "" where it is absent.
func condition(conditions []metav1.Condition, conditionType string) string {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

// awaitRun waits until the condition of a run is status/reason.
func awaitRun(t testing.TB, hub client.WithWatch, run *placementv1.ClusterStagedUpdateRun, conditionType, want string) {
	t.Helper()
	framework.Await(t, hub, run, conditionType+" is "+want, func(r *placementv1.ClusterStagedUpdateRun) bool {
		return condition(r.Status.Conditions, conditionType) == want
	})
}

// approve approves a request as the first seed does: by a merge patch of its status.
func approve(t testing.TB, hub client.WithWatch, name string) {
	t.Helper()
	request := &placementv1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	framework.Await(t, hub, request, "exists", func(*placementv1.ClusterApprovalRequest) bool { return true })
	patch := `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"testPassed","message":"lgtm","observedGeneration":1,"lastTransitionTime":"` +
		metav1.Now().UTC().Format(time.RFC3339) + `"}]}}`
	if err := hub.Status().Patch(t.Context(), request, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatalf("approve %s: %v", name, err)
	}
}

// awaitValue waits until the ConfigMap has the value in a member.
func awaitValue(t testing.TB, member client.WithWatch, namespace, name, value string) {
	t.Helper()
	cm := configMap(namespace, name, "")
	framework.Await(t, member, cm, "has the value "+value, func(c *corev1.ConfigMap) bool { return c.Data["key"] == value })
}

// valueOf reads the ConfigMap's value in a member; "" where there is none.
func valueOf(t testing.TB, member client.Client, namespace, name string) string {
	t.Helper()
	cm := configMap(namespace, name, "")
	if err := client.IgnoreNotFound(member.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)); err != nil {
		t.Fatalf("read ConfigMap %s/%s: %v", namespace, name, err)
	}
	return cm.Data["key"]
}
