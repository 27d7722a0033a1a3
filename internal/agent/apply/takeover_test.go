package apply

import (
	"encoding/json"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	corev1 "k8s.io/api/core/v1"
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
