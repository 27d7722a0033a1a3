package kruise

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// What an agent says of a step is what the hub reads of it.
func TestApprovalIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		said := AwaitedApproval{
			Step: rapid.IntRange(1, 50).Draw(t, "step"), Steps: rapid.IntRange(1, 50).Draw(t, "steps"),
			Namespace: rapid.StringMatching(`[a-z]([a-z0-9-]{0,20}[a-z0-9])?`).Draw(t, "namespace"), Name: rapid.StringMatching(`[a-z]([a-z0-9.-]{0,20}[a-z0-9])?`).Draw(t, "name"),
		}
		if read, ok := ReadApproval("Manifest is not yet available: " + said.String()); !ok || read != said {
			t.Fatalf("%q is read as %+v, %t", said, read, ok)
		}
	})
	for _, text := range []string{"", "waiting for approval", "waiting for approval of step 1/2 of Rollout web (", "waiting for approval of step 99999/2 of Rollout a/b (", "Waiting for approval of step 1/2 of Rollout a/b ("} {
		if a, ok := ReadApproval(text); ok {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
	if in := (AwaitedApproval{Step: 1, Steps: 2, Namespace: "shop", Name: "web"}).In("member2"); !strings.HasPrefix(in, "approval of step 1/2 in member2 ") {
		t.Errorf("the hub says %q", in)
	}
}

// Kruise's notes are told from what users may set.
func TestIsNote(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		InProgress: true, Control: true, Guarded: true, "rollouts.kruise.io/hash": true, "rollouts.kruise.io/stable-revision": true,
		"rollouts.kruise.io/rollout-id": false, "rollouts.kruise.io/rollback-in-batch": false, "app": false, "": false,
	} {
		if IsNote(key) != want {
			t.Errorf("%q: %t", key, !want)
		}
	}
}

// A Rollout of any shape is read without harm.
func TestOddShapes(t *testing.T) {
	t.Parallel()
	for _, o := range []map[string]any{
		{}, {"spec": "x", "status": 7}, {"spec": map[string]any{"workloadRef": []any{}}, "status": map[string]any{"phase": 1, "conditions": []any{"x"}}},
		{"spec": map[string]any{"strategy": map[string]any{"canary": map[string]any{"steps": []any{"x"}}}}, "status": map[string]any{"phase": "Progressing",
			"canaryStatus": map[string]any{"currentStepState": "StepPaused", "currentStepIndex": int64(1)}}},
	} {
		u := &unstructured.Unstructured{Object: o}
		if _, waits := Approval(u); waits {
			t.Errorf("%v waits for an approval", o)
		}
		Workload(u)
		if Paused(u) || Disabled(u) || Progressing(u) != "" {
			t.Errorf("%v is read as more than it says", o)
		}
	}
}
