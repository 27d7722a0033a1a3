package e2e

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fullQuota lets no more pods into a namespace than web has: a change of web, which takes one more for a moment, is never ready.
func fullQuota(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}
}

// setImage changes web on the hub.
func setImage(t testing.TB, hub client.Client, namespace, image string) {
	t.Helper()
	patch := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"` + image + `"}]`
	if err := hub.Patch(t.Context(), web(namespace), client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
		t.Fatalf("set the image of %s/web to %s: %v", namespace, image, err)
	}
}

// awaitImage waits until a member runs web with an image, all of it.
func awaitImage(t testing.TB, member client.WithWatch, namespace, image string) *appsv1.Deployment {
	t.Helper()
	d := web(namespace)
	framework.Await(t, member, d, "runs "+image, func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Spec.Containers[0].Image == image && d.Status.ObservedGeneration == d.Generation &&
			d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
	})
	return d
}

// imageOf is the image of web in a member.
func imageOf(t testing.TB, member client.Client, namespace string) string {
	t.Helper()
	d := web(namespace)
	if err := member.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatalf("read Deployment %s/web: %v", namespace, err)
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// rowCondition is a condition in a cluster's row.
func rowCondition(p *placementv1.ClusterResourcePlacement, cluster, conditionType string) metav1.Condition {
	row := rowOf(p, cluster)
	if c := meta.FindStatusCondition(row.Conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// TestRollingUpdate has a member that never gets a change ready. It takes up a place in the budget and no more: the others go
// on while there are places left, and wait when there are none, and say for what. Switched to External, everything stays as it
// runs, for an update run to change.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const name = "rolling"
	create(t, hub, namespace(name))
	create(t, hub, web(name))
	p := placeNamespace(name, name, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.Strategy.RollingUpdate = &placementv1.RollingUpdateConfig{MaxUnavailable: ptr.To(intstr.FromString("150%"))}
	if err := hub.Create(t.Context(), p); err == nil || !strings.Contains(err.Error(), "maxUnavailable must be a number of clusters, such as 2, or a whole percentage from 0% to 100%") {
		t.Errorf("a budget of 150%%: %v", err)
	}
	p.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(2))
	placement := create(t, hub, p)
	awaitAvailable(t, hub, placement)
	history := recordBindings(t, hub, client.MatchingLabels{placementv1.LabelParentPlacement: name})

	quota := create(t, m[0], fullQuota(name))
	setImage(t, hub, name, "web:2")
	awaitImage(t, m[1], name, "web:2")
	awaitImage(t, m[2], name, "web:2")
	framework.Await(t, hub, placement, "says that member1 is not ready, and the others are", func(p *placementv1.ClusterResourcePlacement) bool {
		return rowCondition(p, "member1", "Available").Status == "False" &&
			rowCondition(p, "member2", "Available").Status == "True" && rowCondition(p, "member3", "Available").Status == "True"
	})
	history.check(t, 2)

	change(t, hub, placement, `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":1}}}}`)
	setImage(t, hub, name, "web:3")
	framework.Await(t, hub, placement, "says what member2 and member3 wait for", func(p *placementv1.ClusterResourcePlacement) bool {
		for _, cluster := range []string{"member2", "member3"} {
			c := rowCondition(p, cluster, "RolloutStarted")
			if c.Reason != placementv1.ReasonRolloutNotStartedYet || !strings.Contains(c.Message, "at most 1 of 3 clusters may be unavailable at once") || !strings.Contains(c.Message, "member1") {
				return false
			}
		}
		return true
	})
	for i := range 2 {
		if got := imageOf(t, m[i+1], name); got != "web:2" {
			t.Errorf("there is no room in the budget, but member%d has %s", i+2, got)
		}
	}
	if err := m[0].Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	var before [3]*appsv1.Deployment
	for i := range m {
		before[i] = awaitImage(t, m[i], name, "web:3")
	}
	awaitAvailable(t, hub, placement)
	history.check(t, 2)
	checkSwitchToExternal(t, hub, m, placement, before)
}

// checkSwitchToExternal switches the placement of a namespace of its own name to External. Nothing changes in the members
// before a run does it, and there is no way back.
func checkSwitchToExternal(t *testing.T, hub client.WithWatch, m [3]client.WithWatch, placement *placementv1.ClusterResourcePlacement, before [3]*appsv1.Deployment) {
	t.Helper()
	name := placement.Name
	change(t, hub, placement, `{"spec":{"strategy":{"type":"External"}}}`)
	setImage(t, hub, name, "web:4")
	create(t, hub, everywhere(name, nil))
	run := create(t, hub, updateRun(name, name, name, "", placementv1.UpdateRunStateInitialize))
	awaitRun(t, hub, run, placementv1.ConditionInitialized, "True/UpdateRunInitializedSuccessfully")
	for i := range m {
		got := web(name)
		if err := m[i].Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatalf("after the switch to External: %v", err)
		}
		if got.UID != before[i].UID || got.Generation != before[i].Generation {
			t.Errorf("the strategy is External and no run has begun, but member%d went from generation %d to %d", i+1, before[i].Generation, got.Generation)
		}
	}
	change(t, hub, run, `{"spec":{"state":"Run"}}`)
	awaitRun(t, hub, run, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	for i := range m {
		awaitImage(t, m[i], name, "web:4")
	}
	back := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"strategy":{"type":"RollingUpdate"}}}`))
	if err := hub.Patch(t.Context(), placement, back); err == nil || !strings.Contains(err.Error(), "cannot change rollout strategy type from 'External' to other types") {
		t.Errorf("switch back to RollingUpdate: %v", err)
	}
}
