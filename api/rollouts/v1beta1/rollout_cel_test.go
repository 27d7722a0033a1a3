package v1beta1_test

import (
	"fmt"
	"strings"
	"testing"

	rolloutsv1beta1 "github.com/fleetwright/fleetwright/api/rollouts/v1beta1"
	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// rollout is a Rollout with a strategy.
func rollout(strategy string) string {
	return "apiVersion: rollouts.kruise.io/v1beta1\nkind: Rollout\nmetadata: {namespace: default}\n" +
		"spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {" + strategy + "}}"
}

func canary(steps string) string { return rollout("canary: {steps: [" + steps + "]}") }

func TestServed(t *testing.T) {
	want := map[string]apitest.Served{"rollouts": {Kind: "Rollout", Namespaced: true, Status: true}}
	if diff := cmp.Diff(want, apitest.Kinds(t, hub, "rollouts.kruise.io/v1beta1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRolloutRules(t *testing.T) {
	cases := map[string]apitest.Case{
		"the second seed's": {
			Create: rollout("canary: {enableExtraWorkloadForCanary: false, steps: [{replicas: 50%}, {replicas: 100%}]}"),
			Want: map[string]any{
				"metadata.generation": int64(1), "spec.disabled": nil, // nothing is added that a member would take for a difference
				"spec.strategy": map[string]any{"canary": map[string]any{
					"enableExtraWorkloadForCanary": false, "steps": []any{map[string]any{"replicas": "50%"}, map[string]any{"replicas": "100%"}},
				}},
			},
		},
		"what Kruise has more than we know is kept": {
			Create: canary("{replicas: 1, traffic: 5%, matches: [{headers: []}], pause: {duration: 60}}"),
			Want: map[string]any{"spec.strategy.canary.steps": []any{map[string]any{
				"replicas": int64(1), "traffic": "5%", "matches": []any{map[string]any{"headers": []any{}}}, "pause": map[string]any{"duration": int64(60)},
			}}},
		},
		"no strategy":         {Create: rollout("paused: true"), Refused: "give either canary or blueGreen"},
		"two strategies":      {Create: rollout("canary: {}, blueGreen: {}"), Refused: "give either canary or blueGreen"},
		"no workload":         {Create: "apiVersion: rollouts.kruise.io/v1beta1\nkind: Rollout\nmetadata: {namespace: default}\nspec: {strategy: {canary: {}}}", Refused: "spec.workloadRef: Required value"},
		"an unnamed workload": {Create: strings.Replace(canary(""), "name: web", `name: ""`, 1), Refused: "should be at least 1 chars long"},
		"a negative pause":    {Create: canary("{replicas: 1, pause: {duration: -1}}"), Refused: "should be greater than or equal to 0"},
		"50 steps":            {Create: canary(strings.Repeat("{replicas: 1}, ", 50))},
		"51 steps":            {Create: canary(strings.Repeat("{replicas: 1}, ", 51)), Refused: "must have at most 50 items"},
		"its status": {
			Create: canary("{replicas: 1}"),
			UpdateStatus: `status: {phase: Progressing, currentStepIndex: 1, currentStepState: StepPaused, canaryStatus: {observedRolloutID: "1"},
  conditions: [{type: Progressing, status: "True", reason: InRolling, message: m, lastUpdateTime: "2026-01-02T03:04:05Z"}]}`,
			Want: map[string]any{
				"status.canaryStatus.observedRolloutID": "1",
				"status.conditions": []any{map[string]any{
					"type": "Progressing", "status": "True", "reason": "InRolling", "message": "m", "lastUpdateTime": "2026-01-02T03:04:05Z",
				}},
			},
		},
	}
	for replicas, refused := range map[string]string{
		"0": "", "5": "", "100000000": "", "0%": "", "50%": "", "100%": "",
		"-1": "replicas must be 0 or more", "100000001": "replicas must be at most 100000000", "101%": "or a percentage from 0% to 100%", `"5"`: "or a percentage from 0% to 100%",
		"half": "or a percentage from 0% to 100%", "1000%": "may not be more than 4", "1.5": "replicas", "null": "replicas",
	} {
		for _, strategy := range []string{"canary", "blueGreen"} {
			cases[strategy+" of "+replicas] = apitest.Case{Create: rollout(strategy + ": {steps: [{replicas: " + replicas + "}]}"), Refused: refused}
		}
	}
	apitest.Run(t, hub, cases)
}

// TestNothingIsStoredThatCannotBeRead: one Rollout that Go cannot read keeps every client from reading them all.
func TestNothingIsStoredThatCannotBeRead(t *testing.T) {
	c := framework.Client(t, hub)
	for field, values := range map[string][]string{
		"currentStepIndex":   {"99999999999", "1.5", `"1"`},
		"observedGeneration": {"9223372036854775808", "1.5"},
		"phase":              {"1", "{}"},
		"conditions":         {"x", "{}", "[x]", "[{type: 1}]", "[{type: a}]", "[{type: a, status: [b]}]", `[{type: a, status: "True", reason: {}}]`},
	} {
		for _, value := range values {
			t.Run(field+" of "+value, func(t *testing.T) {
				object := apitest.Parse(t, canary("{replicas: 1}"))
				object.SetGenerateName("unreadable-")
				if err := c.Create(t.Context(), object); err != nil {
					t.Fatalf("create a Rollout: %v", err)
				}
				patch, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("status: {%s: %s}", field, value)))
				if err != nil {
					t.Fatalf("parse a status: %v", err)
				}
				if err := c.Status().Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err == nil {
					t.Errorf("it was stored: %s", patch)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), &rolloutsv1beta1.Rollout{}); err != nil {
					t.Errorf("it is not readable: %v", err)
				}
			})
		}
	}
}

// TestColumns compares with what the second seed prints of members' Rollouts: the hub's show the same columns.
func TestColumns(t *testing.T) {
	server := framework.StartAPIServer(t)
	c := framework.Client(t, server)
	object := apitest.Parse(t, canary("{replicas: 50%}, {replicas: 100%}"))
	object.SetName("rollouts-demo")
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("create a Rollout: %v", err)
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Healthy","currentStepIndex":2,"currentStepState":"Completed","message":"workload deployment is completed"}}`))
	if err := c.Status().Patch(t.Context(), object, status); err != nil {
		t.Fatalf("set its status: %v", err)
	}
	const want = `
NAME            STATUS    CANARY_STEP   CANARY_STATE   MESSAGE                            AGE
rollouts-demo   Healthy   2             Completed      workload deployment is completed   AGE`
	if diff := cmp.Diff(want, "\n"+apitest.Printed(t, server, "/apis/rollouts.kruise.io/v1beta1/rollouts", false)); diff != "" {
		t.Errorf("kubectl get (-want +got):\n%s", diff)
	}
}
