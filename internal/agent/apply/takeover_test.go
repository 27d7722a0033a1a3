package apply

import (
	"encoding/json"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubectlApplies adds a value to a ConfigMap in the member as kubectl apply does: with a record of what it applied, under
// the name of kubectl.
func (a *agent) kubectlApplies(name, key, value string) {
	a.t.Helper()
	patch := map[string]any{"data": map[string]string{key: value}}
	record, err := json.Marshal(patch)
	if err != nil {
		a.t.Fatal(err)
	}
	patch["metadata"] = map[string]any{"annotations": map[string]string{annotationKubectlLastApplied: string(record)}}
	data, err := json.Marshal(patch)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := a.member.Patch(a.t.Context(), settings(name, ""), client.RawPatch("application/merge-patch+json", data), client.FieldOwner("kubectl-client-side-apply")); err != nil {
		a.t.Fatalf("apply to ConfigMap %s in the member: %v", name, err)
	}
}

// testAppliedByOthers is an object of ours to which somebody applies a field of their own: it is theirs, whatever the hub
// changes later.
func testAppliedByOthers(t *testing.T) {
	a := startAgent(t, "theirs")
	w := a.create(a.work("theirs", "work", 1, settings("theirs-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	a.kubectlApplies("theirs-a", "sre", "x")
	a.change(w, "1", settings("theirs-a", "2"))
	a.await(w, placementv1.ConditionAvailable, available)
	if got := a.live("theirs-a").Data; got["key"] != "2" || got["sre"] != "x" {
		t.Errorf("the object is %v; want the hub's key 2, and what somebody applied in the member", got)
	}
}

// testTakeOverLosesNothing is an object that kubectl applied with more than the hub has. Where the placement takes over what
// does not differ, that is no difference, and so stays, through later changes as well.
func testTakeOverLosesNothing(t *testing.T) {
	a := startAgent(t, "loses")
	cm := settings("loses-a", "ours")
	if err := a.member.Create(t.Context(), cm, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
	a.kubectlApplies("loses-a", "more", "theirs")
	strategy := placementv1.ApplyStrategy{WhenToTakeOver: placementv1.WhenToTakeOverTypeIfNoDiff}
	w := a.create(by(a.work("loses", "work", 1, settings("loses-a", "ours")), strategy))
	a.await(w, placementv1.ConditionAvailable, available)
	awaitOwner(t, a, "loses-a", w.Name)
	check := func(cm *corev1.ConfigMap, key string) {
		t.Helper()
		if cm.Data["key"] != key || cm.Data["more"] != "theirs" {
			t.Errorf("the object is %v; want the hub's key %s, and what kubectl applied", cm.Data, key)
		}
	}
	check(a.live("loses-a"), "ours")
	a.change(w, "1", settings("loses-a", "changed"))
	a.await(w, placementv1.ConditionAvailable, available)
	check(a.live("loses-a"), "changed")
}

// testDuplicateKeysContested is an object that cannot be applied on the server's side, under a strategy that takes nothing
// away from others. Theirs is what they own; beside that, what the hub says is merged.
func testDuplicateKeysContested(t *testing.T) {
	a := startAgent(t, "contest")
	with := func(replicas int32, image string) *appsv1.Deployment {
		d := deploymentOf("contest-a", replicas)
		d.Spec.Template.Spec.Containers[0].Image = image
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
		return d
	}
	read := func() *appsv1.Deployment {
		t.Helper()
		live := deploymentOf("contest-a", 0)
		if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		return live
	}
	w := a.create(by(a.work("contest", "work", 1, with(1, "web:1")), placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeServerSideApply}))
	a.await(w, placementv1.ConditionApplied, applied)
	edit := func(patch string) {
		t.Helper()
		if err := a.member.Patch(t.Context(), read(), client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	edit(`{"metadata":{"annotations":{"note":"theirs"}}}`)
	a.change(w, "1", with(1, "web:2"))
	a.await(w, placementv1.ConditionApplied, applied)
	if d := read(); d.Spec.Template.Spec.Containers[0].Image != "web:2" || d.Annotations["note"] != "theirs" {
		t.Errorf("image %s, annotations %v; want the hub's image beside somebody's annotation", d.Spec.Template.Spec.Containers[0].Image, d.Annotations)
	}
	edit(`{"spec":{"replicas":5}}`)
	a.await(w, placementv1.ConditionApplied, refusal)
	c := meta.FindStatusCondition(w.Status.ManifestConditions[0].Conditions, placementv1.ConditionApplied)
	if c.Reason != placementv1.ReasonManifestApplyFailed || !strings.Contains(c.Message, `"somebody"`) || !strings.Contains(c.Message, ".spec.replicas") {
		t.Errorf("told %s: %s", c.Reason, c.Message)
	}
	if got := *read().Spec.Replicas; got != 5 {
		t.Errorf("somebody's 5 replicas are %d", got)
	}
	a.switchTo(w, placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeServerSideApply, ServerSideApplyConfig: &placementv1.ServerSideApplyConfig{Force: true}})
	a.await(w, placementv1.ConditionApplied, applied)
	if got := *read().Spec.Replicas; got != 1 {
		t.Errorf("forced, but there are %d replicas", got)
	}
}
