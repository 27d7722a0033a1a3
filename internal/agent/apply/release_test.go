package apply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// rolloutKind makes a member serve Rollouts.
func rolloutKind(t *testing.T, a *agent) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(framework.Root(), "config", "crd", "hub", "rollouts.kruise.io_rollouts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := a.member.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

func rolloutOf(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
		"strategy":    map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"replicas": "50%"}, map[string]any{"replicas": "100%"}}}},
	}}}
	o.SetGroupVersionKind(kruise.Rollouts)
	o.SetNamespace("default")
	o.SetName(name)
	return o
}

// says plays Kruise's controller, which writes the status of a Rollout.
func (a *agent) says(name, phase, reason, state string) {
	a.t.Helper()
	rollout := rolloutOf(name)
	framework.Await(a.t, a.member, rollout, "is in the member", func(*unstructured.Unstructured) bool { return true })
	rollout.Object["status"] = map[string]any{
		"observedGeneration": rollout.GetGeneration(), "phase": phase,
		"conditions": []any{map[string]any{
			"type": "Progressing", "status": "True", "reason": reason, "message": "",
			"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
		}},
		"canaryStatus": map[string]any{"currentStepIndex": int64(1), "currentStepState": state, "canaryReplicas": int64(0), "canaryReadyReplicas": int64(0), "podTemplateHash": ""},
	}
	if err := a.member.Status().Update(a.t.Context(), rollout); err != nil {
		a.t.Fatalf("write the status of Rollout %s: %v", name, err)
	}
}

// marks writes metadata of a Deployment as Kruise does.
func (a *agent) marks(name, patch string) {
	a.t.Helper()
	d := deploymentOf(name, 0)
	if err := a.member.Patch(a.t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":`+patch+`}`))); err != nil {
		a.t.Fatalf("mark Deployment %s: %v", name, err)
	}
}

// told waits until the Work says of an object, in a condition, a reason and a text.
func (a *agent) told(w *placementv1.Work, kind, conditionType, reason, text string) {
	a.t.Helper()
	framework.Await(a.t, a.hub, w, kind+": "+conditionType+" is "+reason+", "+text, func(w *placementv1.Work) bool {
		for i := range w.Status.ManifestConditions {
			m := &w.Status.ManifestConditions[i]
			c := meta.FindStatusCondition(m.Conditions, conditionType)
			if m.Identifier.Kind == kind && c != nil && c.ObservedGeneration == w.Generation && c.Reason == reason && strings.Contains(c.Message, text) {
				return true
			}
		}
		return false
	})
}

func imageOf(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

// deploymentWith is a Deployment with an image and, if it has a name, an environment variable.
func deploymentWith(name, image, env string, replicas int32) *appsv1.Deployment {
	d := deploymentOf(name, replicas)
	d.Spec.Template.Spec.Containers[0].Image = image
	if env != "" {
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: env, Value: "x"}}
	}
	return d
}

// A pod template goes into a member only while Kruise can take it in hand, whatever becomes of it before.
func TestReleaseInMember(t *testing.T) {
	a := startAgentIn(t, "release", framework.StartMemberAPIServer(t))
	w := a.create(a.work("release", "work", 1, deploymentWith("web", "web:1", "ONE", 4), rolloutOf("web")))
	live := deploymentOf("web", 0)
	framework.Await(t, a.member, live, "is made", func(d *appsv1.Deployment) bool { return imageOf(d) == "web:1" })

	t.Log("Kruise is not there: a hold, and all but the template is applied")
	a.change(w, "1", deploymentWith("web", "web:2", "TWO", 5), rolloutOf("web"))
	a.told(w, "Deployment", placementv1.ConditionApplied, placementv1.ReasonManifestRolloutMissing, "install Kruise Rollouts")
	unchanged := func(replicas int32) {
		t.Helper()
		if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		env := live.Spec.Template.Spec.Containers[0].Env
		if imageOf(live) != "web:1" || len(env) != 1 || env[0].Name != "ONE" || ptr.Deref(live.Spec.Replicas, 0) != replicas {
			t.Fatalf("the template is %s with %v, and there are %d replicas", imageOf(live), env, ptr.Deref(live.Spec.Replicas, 0))
		}
	}
	unchanged(5)

	t.Log("Kruise comes, and has not looked yet")
	rolloutKind(t, a)
	a.told(w, "Deployment", placementv1.ConditionApplied, placementv1.ReasonManifestWaitingForRollout, "has not seen its generation")
	unchanged(5)
	for _, state := range [][2]string{{"Initial", ""}, {"Progressing", "Initializing"}, {"Progressing", "Finalising"}, {"Progressing", "Cancelling"}, {"Terminating", ""}} {
		a.says("web", state[0], state[1], "")
		text := "phase " + state[0]
		if state[0] == "Terminating" {
			text = "being deleted"
		} else if state[1] != "" {
			text = "not marked the Deployment"
		}
		a.told(w, "Deployment", placementv1.ConditionApplied, placementv1.ReasonManifestWaitingForRollout, text)
		unchanged(5)
	}
	a.change(w, "2", deploymentWith("web", "web:2", "TWO", 6), rolloutOf("web"))
	framework.Await(t, a.member, live, "is scaled all the same", func(d *appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 0) == 6 })
	unchanged(6)

	t.Log("the Rollout guards it: the template is written, and what it does not say any more is gone")
	a.marks("web", `{"labels":{"rollouts.kruise.io/workload-type":"deployment"}}`)
	a.says("web", "Healthy", "", "Completed")
	framework.Await(t, a.member, live, "has the new template", func(d *appsv1.Deployment) bool { return imageOf(d) == "web:2" })
	if env := live.Spec.Template.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "TWO" {
		t.Errorf("the environment is %v", env)
	}
	if live.Labels[kruise.Guarded] != "deployment" {
		t.Errorf("Kruise's label is gone: %v", live.Labels)
	}

	t.Log("in release: Kruise's fields are left alone, and the Work says what it waits for")
	a.marks("web", `{"annotations":{"rollouts.kruise.io/in-progressing":"{}"}}`)
	paused := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true,"strategy":{"type":"Recreate","rollingUpdate":null}}}`))
	if err := a.member.Patch(t.Context(), live, paused); err != nil {
		t.Fatal(err)
	}
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 6, UpdatedReplicas: 3, ReadyReplicas: 6, AvailableReplicas: 6}
	if err := a.member.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	a.says("web", "Progressing", "InRolling", "StepPaused")
	a.told(w, "Rollout", placementv1.ConditionAvailable, placementv1.ReasonManifestPaused, "waiting for approval of step 1/2 of Rollout default/web")
	a.told(w, "Deployment", placementv1.ConditionAvailable, placementv1.ReasonManifestPaused, "waiting for approval of step 1/2 of Rollout default/web")
	generation := live.Generation
	poke := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"poke":"1"}}}`))
	if err := a.hub.Patch(t.Context(), w, poke); err != nil {
		t.Fatal(err)
	}

	t.Log("not wanted any more: both stay until the release ends")
	a.change(w, "3", settings("beside", "1"))
	framework.Await(t, a.hub, w, "says why they stay", func(w *placementv1.Work) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionApplied)
		return c != nil && strings.Contains(c.Message, "in the middle of releasing it")
	})
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.DeletionTimestamp != nil || live.Generation != generation {
		t.Fatalf("the Deployment was touched: generation %d, want %d, error %v", live.Generation, generation, err)
	}
	a.marks("web", `{"annotations":{"rollouts.kruise.io/in-progressing":null}}`)
	a.says("web", "Healthy", "", "Completed")
	framework.AwaitGone(t, a.member, live)
	framework.AwaitGone(t, a.member, rolloutOf("web"))
}

// A Rollout that somebody made in the member guards a placed Deployment as well as a placed one does; a disabled one guards nothing.
func TestReleaseByRolloutOfMember(t *testing.T) {
	a := startAgentIn(t, "release-own", framework.StartMemberAPIServer(t))
	rolloutKind(t, a)
	w := a.create(a.work("own", "work", 1, deploymentWith("web", "web:1", "", 4)))
	a.await(w, placementv1.ConditionApplied, applied)
	rollout := rolloutOf("web")
	if err := a.member.Create(t.Context(), rollout); err != nil {
		t.Fatal(err)
	}
	a.change(w, "1", deploymentWith("web", "web:2", "", 4))
	a.told(w, "Deployment", placementv1.ConditionApplied, placementv1.ReasonManifestWaitingForRollout, "Rollout web")
	live := deploymentOf("web", 0)
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil || imageOf(live) != "web:1" {
		t.Fatalf("the template is %s, error %v", imageOf(live), err)
	}
	if err := a.member.Patch(t.Context(), rollout, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"disabled":true}}`))); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, live, "has the new template", func(d *appsv1.Deployment) bool { return imageOf(d) == "web:2" })

	t.Log("a Deployment whose pods are all there is not available before its Rollout says so")
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 4, UpdatedReplicas: 4, ReadyReplicas: 4, AvailableReplicas: 4}
	if err := a.member.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionAvailable, available)
	a.says("web", "Progressing", "Finalising", "Completed")
	a.told(w, "Deployment", placementv1.ConditionAvailable, placementv1.ReasonManifestUpdatedByRollout, "has not ended its release")
	a.says("web", "Healthy", "Completed", "Completed")
	a.await(w, placementv1.ConditionAvailable, available)
}

func TestOwned(t *testing.T) {
	t.Parallel()
	live := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {managedFields: [{manager: other, operation: Apply, fieldsV1: {"f:spec": {"f:template": {"f:other": {}}}}}, {manager: us, operation: Apply, fieldsV1: {"f:spec": {"f:template": {"f:spec": {
		"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}, "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}, "f:args": {}}},
		"f:volumes": {'k:{"name":"tmp"}': {".": {}, "f:name": {}, "f:emptyDir": {}}}, "f:set": {'v:"a"': {}}, "f:gone": {}}}}}}]},
		spec: {template: {other: 1, spec: {restartPolicy: Always, set: [a, b], containers: [{name: side, image: s}, {name: web, image: w, imagePullPolicy: Always, args: [x, z], ports: [{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: TCP}]}], volumes: [{name: tmp, emptyDir: {}}]}}}}`)
	template, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "template")
	got, err := owned(live, "us", template, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, `{kind: T, spec: {containers: [{name: web, image: w, args: [x, z], ports: [{containerPort: 80, protocol: TCP}]}], volumes: [{name: tmp, emptyDir: {}}], set: [a]}}`)
	if diff := cmp.Diff(any(map[string]any{"spec": want.Object["spec"]}), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := owned(live, "nobody", template, "spec", "template"); err != nil || got != nil {
		t.Errorf("of nobody it is %v, error %v", got, err)
	}
}
