package v1beta1_test

import (
	"os"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
	"k8s.io/client-go/rest"
)

// hub is an API server with the hub's definitions, shared by the tests of this package.
var hub *rest.Config

func TestMain(m *testing.M) { os.Exit(apitest.RunWithRules(m, "rollouts.kruise.io", &hub)) }

func TestRollout(t *testing.T) {
	rollout := func(strategy string) string {
		return "{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {namespace: default}, " +
			"spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {" + strategy + "}}}"
	}
	const steps = "{enableExtraWorkloadForCanary: false, steps: [{replicas: 50%, traffic: 20%}, {replicas: 1, pause: {duration: 5}}]}"
	apitest.Run(t, hub, map[string]apitest.Case{
		"batches": {Create: rollout("canary: " + steps), Want: map[string]any{
			"spec.disabled": nil, "spec.strategy.paused": nil, "spec.strategy.canary.enableExtraWorkloadForCanary": false,
		}},
		"blue and green":    {Create: rollout("blueGreen: " + steps)},
		"neither":           {Create: rollout("paused: true"), Refused: "give either canary or blueGreen"},
		"both":              {Create: rollout("canary: " + steps + ", blueGreen: " + steps), Refused: "give either canary or blueGreen"},
		"a pause backwards": {Create: rollout("canary: {steps: [{replicas: 1, pause: {duration: -1}}]}"), Refused: "greater than or equal to 0"},
		"no percentage":     {Create: rollout("canary: {steps: [{replicas: half}]}"), Refused: "replicas must be a number, or a percentage"},
		"less than none":    {Create: rollout("canary: {steps: [{replicas: -1}]}"), Refused: "replicas must be 0 or more"},
		"more than any":     {Create: rollout("canary: {steps: [{replicas: 100000001}]}"), Refused: "replicas must be at most 100000000"},
	})
}
