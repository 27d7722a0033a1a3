package e2e

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// released is a Deployment of four pods, which tells its version in the environment.
func released(namespace, version string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](4), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web", Image: "registry.example/web:1", Env: []corev1.EnvVar{{Name: "VERSION", Value: version}},
				Resources: corev1.ResourceRequirements{Requests: small},
			}}}},
		},
	}
}

// halfThenAll is a Rollout that waits for a person after half of the pods.
func halfThenAll(namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
		"strategy": map[string]any{"canary": map[string]any{
			"enableExtraWorkloadForCanary": false, "steps": []any{map[string]any{"replicas": "50%"}, map[string]any{"replicas": "100%"}},
		}},
	}}}
	o.SetGroupVersionKind(kruise.Rollouts)
	o.SetNamespace(namespace)
	o.SetName("web")
	return o
}

// release is the story's stage: the fleet, the namespace, and how a run of its scope looks.
type release struct {
	t         *testing.T
	hub       client.WithWatch
	members   [3]client.WithWatch
	namespace string
	newRun    func(name string) placementv1.UpdateRunObject
}

func (r *release) rollout(member int, what string, done func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	r.t.Helper()
	rollout := halfThenAll(r.namespace)
	framework.Await(r.t, r.members[member], rollout, what, done)
	return rollout
}

// atRest waits until Kruise guards the Deployment in a member, or is done with it.
func (r *release) atRest(member int) {
	r.t.Helper()
	r.rollout(member, "is at rest", func(o *unstructured.Unstructured) bool { return kruise.Phase(o) == "Healthy" && kruise.Observed(o) })
}

// approve approves the step that waits in a member, once Kruise has asked.
func (r *release) approve(member int) {
	r.t.Helper()
	rollout := r.rollout(member, "asks for a person", func(o *unstructured.Unstructured) bool {
		message, _, _ := unstructured.NestedString(o.Object, "status", "message")
		_, waits := kruise.Approval(o)
		return waits && strings.Contains(message, "manually confirm")
	})
	ready := []byte(`{"status":{"currentStepState":"StepReady","canaryStatus":{"currentStepState":"StepReady"}}}`)
	if err := r.members[member].Status().Patch(r.t.Context(), rollout, client.RawPatch("application/merge-patch+json", ready)); err != nil {
		r.t.Fatalf("approve in member%d: %v", member+1, err)
	}
}

// pods waits until so many pods of a member's Deployment have its template, and all of them are available.
func (r *release) pods(member int, version string, updated int32) {
	r.t.Helper()
	framework.Await(r.t, r.members[member], released(r.namespace, ""), "has the version "+version, func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Spec.Containers[0].Env[0].Value == version && d.Status.ObservedGeneration == d.Generation &&
			d.Status.UpdatedReplicas == updated && d.Status.AvailableReplicas == 4
	})
}

// says waits until a condition of a run is status/reason, and its message has all of these texts.
func (r *release) says(run placementv1.UpdateRunObject, conditionType, want string, texts ...string) {
	r.t.Helper()
	framework.Await(r.t, r.hub, run, conditionType+" is "+want+" with "+strings.Join(texts, ", "), func(o placementv1.UpdateRunObject) bool {
		c := meta.FindStatusCondition(o.UpdateRunStatus().Conditions, conditionType)
		if c == nil || string(c.Status)+"/"+c.Reason != want {
			return false
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return false
			}
		}
		return true
	})
}

func (r *release) setState(run placementv1.UpdateRunObject, state placementv1.UpdateRunState) {
	r.t.Helper()
	patch := []byte(`{"spec":{"state":"` + string(state) + `"}}`)
	if err := r.hub.Patch(r.t.Context(), run, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		r.t.Fatalf("set run %s to %s: %v", run.GetName(), state, err)
	}
}

// play releases a second version: stages of clusters around batches of pods.
func (r *release) play() {
	t, hub := r.t, r.hub
	first := create(t, hub, r.newRun("first"))
	r.says(first, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	for i := range r.members {
		r.pods(i, "v1", 4)
		r.atRest(i)
	}
	before := released(r.namespace, "")
	if err := r.members[0].Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	next := released(r.namespace, "v2")
	if err := hub.Patch(t.Context(), next, client.Merge); err != nil {
		t.Fatalf("change the version: %v", err)
	}
	second := create(t, hub, r.newRun("second"))
	r.says(second, placementv1.ConditionProgressing, "True/UpdateRunProgressing", "waiting for approval of step 1/2 in member2", "kubectl kruise rollout approve rollout/web")
	r.pods(1, "v2", 2)
	after := released(r.namespace, "")
	if err := r.members[0].Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil || after.Generation != before.Generation {
		t.Errorf("member1 was touched before its stage: generation %d, was %d, error %v", after.Generation, before.Generation, err)
	}
	r.inRelease("member2")
	if err := hub.Delete(t.Context(), halfThenAll(r.namespace)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "member2") {
		t.Errorf("delete the Rollout in the middle of a release: %v, want it forbidden", err)
	}
	r.approve(1)
	r.says(second, placementv1.ConditionProgressing, "True/UpdateRunProgressing", "approval of step 1/2 in member1", "approval of step 1/2 in member3")
	r.pods(1, "v2", 4)
	r.inRelease("member1,member3")
	r.setState(second, placementv1.UpdateRunStateStop)
	r.says(second, placementv1.ConditionProgressing, "Unknown/UpdateRunStopping", "approval of step 1/2 in member1", "approval of step 1/2 in member3")
	r.approve(0)
	r.approve(2)
	r.says(second, placementv1.ConditionProgressing, "False/UpdateRunStopped")
	r.setState(second, placementv1.UpdateRunStateRun)
	r.says(second, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	for i := range r.members {
		r.pods(i, "v2", 4)
		r.atRest(i)
	}
	r.inRelease("")
}

// inRelease waits until the hub's Rollout says in which clusters it is in release.
func (r *release) inRelease(clusters string) {
	r.t.Helper()
	framework.Await(r.t, r.hub, halfThenAll(r.namespace), "is in release in "+clusters, func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()[placementv1.AnnotationInRelease] == clusters
	})
}

// inStages are member2 in the first stage, and the others at once in the second.
func inStages() placementv1.UpdateStrategySpec {
	spec := stagingThenCanary("", 0).Spec
	spec.Stages[0].AfterStageTasks, spec.Stages[1].BeforeStageTasks = nil, nil
	spec.Stages[1].MaxConcurrency = ptr.To(intstr.FromString("100%"))
	return spec
}

// TestReleaseInStages is both seeds at once: stages of clusters around batches of pods, by a cluster-scoped run.
func TestReleaseInStages(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	labelMembers(t, hub)
	const ns = "release"
	create(t, hub, namespace(ns))
	create(t, hub, released(ns, "v1"))
	create(t, hub, halfThenAll(ns))
	create(t, hub, placeNamespace(ns, ns, placementv1.ExternalRolloutStrategyType))
	create(t, hub, &placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: inStages()})
	(&release{t: t, hub: hub, members: m, namespace: ns, newRun: func(name string) placementv1.UpdateRunObject {
		return updateRun(ns+"-"+name, ns, ns, "", placementv1.UpdateRunStateRun)
	}}).play()
}

// TestReleaseInStagesNamespaced is the same by a ResourcePlacement and a StagedUpdateRun.
func TestReleaseInStagesNamespaced(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	labelMembers(t, hub)
	const ns = "release-ns"
	create(t, hub, namespace(ns))
	create(t, hub, released(ns, "v1"))
	create(t, hub, halfThenAll(ns))
	placeShell(t, hub, "release-ns-shell", ns)
	p := &placementv1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	p.Spec.ResourceSelectors = []placementv1.ResourceSelector{
		{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}, {Group: kruise.Rollouts.Group, Version: kruise.Rollouts.Version, Kind: kruise.Rollouts.Kind, Name: "web"},
	}
	p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickAllPlacementType}
	p.Spec.Strategy.Type = placementv1.ExternalRolloutStrategyType
	create(t, hub, p)
	framework.Await(t, hub, p, "is scheduled", func(p *placementv1.ResourcePlacement) bool {
		return condition(p.Status.Conditions, "ResourcePlacementScheduled") == "True/SchedulingPolicyFulfilled"
	})
	create(t, hub, &placementv1.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: inStages()})
	(&release{t: t, hub: hub, members: m, namespace: ns, newRun: func(name string) placementv1.UpdateRunObject {
		return namespacedRun(ns, name, "web", "web", "")
	}}).play()
}
