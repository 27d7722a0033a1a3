package health

import (
	"fmt"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A Kruise Rollout waits for somebody where it is paused, and after a step whose pause has no end.
func TestRollout(t *testing.T) {
	t.Parallel()
	const (
		yes    = placementv1.ReasonManifestAvailable
		notYet = placementv1.ReasonManifestNotAvailableYet
		paused = placementv1.ReasonManifestPaused
		moves  = placementv1.ReasonManifestUpdatedByRollout
	)
	canary := func(phase, reason, state string, step int, more string) string {
		return fmt.Sprintf(`{spec: {strategy: {canary: {steps: [{replicas: 50%%, pause: {}}, {replicas: 75%%, pause: {duration: 10}}, {replicas: 100%%}]}%s}},
			status: {observedGeneration: 3, phase: %s, message: "Rollout is in step(1/3)", conditions: [{type: Succeeded, reason: x}, {type: Progressing, reason: %s}],
			canaryStatus: {currentStepIndex: %d, currentStepState: %s}}}`, more, phase, reason, step, state)
	}
	for name, tc := range map[string]struct{ object, want, message string }{
		"nobody has seen it":              {`{}`, placementv1.ReasonManifestNotTrackable, "has not found its workload"},
		"it is there before its workload": {`{status: {observedGeneration: 3, phase: Initial}}`, placementv1.ReasonManifestNotTrackable, "has not found its workload"},
		"its controller is behind":        {`{status: {observedGeneration: 2, phase: Healthy}}`, notYet, "has not seen generation 3"},
		"it has nothing to do":            {`{status: {observedGeneration: 3, phase: Healthy}}`, yes, ""},
		"it is disabled":                  {`{status: {observedGeneration: 3, phase: Disabled}}`, yes, ""},
		"it is being deleted":             {`{status: {observedGeneration: 3, phase: Terminating}}`, notYet, "its phase is Terminating"},
		"it updates pods":                 {canary("Progressing", "InRolling", "StepUpgrade", 1, ""), moves, "on its way: Rollout is in step(1/3)"},
		"a step waits for somebody":       {canary("Progressing", "InRolling", "StepPaused", 1, ""), paused, "waiting for approval of step 1/3 of Rollout demo/web (kubectl kruise rollout approve rollout/web -n demo)"},
		"a step waits for a while":        {canary("Progressing", "InRolling", "StepPaused", 2, ""), moves, "on its way"},
		"a step that does not exist":      {canary("Progressing", "InRolling", "StepPaused", 4, ""), moves, "on its way"},
		"it is paused":                    {canary("Progressing", "Paused", "StepUpgrade", 1, ", paused: true"), paused, "until somebody sets its spec.strategy.paused to false"},
		"it is about to be paused":        {canary("Progressing", "InRolling", "StepUpgrade", 1, ", paused: true"), moves, "on its way"},
		"it is about to go on":            {canary("Progressing", "Paused", "StepUpgrade", 1, ""), moves, "on its way"},
		"it was cancelled at a step":      {canary("Healthy", "Completed", "StepPaused", 1, ""), yes, ""},
		"blue and green": {`{spec: {strategy: {blueGreen: {steps: [{replicas: 100%, pause: {}}]}}}, status: {observedGeneration: 3, phase: Progressing,
			blueGreenStatus: {currentStepIndex: 1, currentStepState: StepPaused}}}`, paused, "waiting for approval of step 1/1"},
		"a status of another shape": {`{status: {phase: 7}}`, placementv1.ReasonManifestAvailabilityFailed, "phase"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := yaml.YAMLToJSON([]byte("{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, " + tc.object[1:]))
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(raw); err != nil {
				t.Fatal(err)
			}
			object.SetName("web")
			object.SetNamespace("demo")
			object.SetGeneration(3)
			got := Judge(object)
			if got.Reason != tc.want || got.Available != (tc.want == yes || tc.want == placementv1.ReasonManifestNotTrackable) || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %+v, want reason %s and message %q", got, tc.want, tc.message)
			}
		})
	}
}

// A Deployment that a Rollout releases is not available, whoever made the Rollout, and has not failed.
func TestJudgeReleased(t *testing.T) {
	t.Parallel()
	const (
		done    = `{spec: {replicas: 4}, status: {replicas: 4, updatedReplicas: 4, availableReplicas: 4}}`
		halfway = `{metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {replicas: 4, paused: true}, status: {replicas: 4, updatedReplicas: 2, availableReplicas: 4}}`
		written = `{metadata: {generation: 2, annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {replicas: 4, paused: true}, status: {observedGeneration: 1, replicas: 4, updatedReplicas: 4, availableReplicas: 4}}`
		paused  = `{metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {replicas: 4, paused: true}, status: {replicas: 4, updatedReplicas: 0, availableReplicas: 4}}`
		missing = `{metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {replicas: 4, paused: true}, status: {replicas: 4, updatedReplicas: 2, availableReplicas: 3}}`
		late    = `{spec: {replicas: 4}, status: {replicas: 4, updatedReplicas: 2, availableReplicas: 4, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`
		steps   = `spec: {strategy: {canary: {steps: [{replicas: 50%}, {replicas: 100%}]}}}`
		healthy = `{status: {phase: Healthy}}`
		rolling = `{` + steps + `, status: {phase: Progressing, conditions: [{type: Progressing, reason: InRolling}], canaryStatus: {currentStepIndex: 1, currentStepState: StepUpgrade}}}`
		waiting = `{` + steps + `, status: {phase: Progressing, conditions: [{type: Progressing, reason: InRolling}], canaryStatus: {currentStepIndex: 1, currentStepState: StepPaused}}}`
		ending  = `{` + steps + `, status: {phase: Progressing, conditions: [{type: Progressing, reason: Finalising}], canaryStatus: {currentStepIndex: 2, currentStepState: Completed}}}`
	)
	for name, tc := range map[string]struct{ deployment, rollout, want, message string }{
		"nothing is released":                           {done, healthy, placementv1.ReasonManifestAvailable, ""},
		"all pods are there, the release has not ended": {done, ending, placementv1.ReasonManifestUpdatedByRollout, "has not ended its release"},
		"the Rollout has noticed, the Deployment not":   {done, rolling, placementv1.ReasonManifestUpdatedByRollout, "has not ended its release"},
		"the template was just written":                 {written, healthy, placementv1.ReasonManifestNotAvailableYet, "has not seen generation 2"},
		"marked, and the Rollout has not noticed":       {paused, healthy, placementv1.ReasonManifestUpdatedByRollout, "0 of 4"},
		"a batch is under way":                          {halfway, rolling, placementv1.ReasonManifestUpdatedByRollout, "2 of 4"},
		"a step waits for a person":                     {halfway, waiting, placementv1.ReasonManifestPaused, "waiting for approval of step 1/2 of Rollout demo/web"},
		"a step waits, and a pod is missing":            {missing, waiting, placementv1.ReasonManifestNotAvailableYet, "not all of its replicas"},
		"its own deadline has passed":                   {late, rolling, placementv1.ReasonManifestNotAvailableYet, "Rollout web releases it"},
		"its deadline has passed, and nobody releases":  {late, healthy, placementv1.ReasonManifestAvailabilityFailed, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(kind, text string) *unstructured.Unstructured {
				raw, err := yaml.YAMLToJSON([]byte("{" + kind + ", " + text[1:]))
				if err != nil {
					t.Fatal(err)
				}
				o := &unstructured.Unstructured{}
				if err := o.UnmarshalJSON(raw); err != nil {
					t.Fatal(err)
				}
				o.SetName("web")
				o.SetNamespace("demo")
				return o
			}
			got := JudgeReleased(read("apiVersion: apps/v1, kind: Deployment", tc.deployment),
				[]*unstructured.Unstructured{read("apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout", tc.rollout)})
			if got.Reason != tc.want || !strings.Contains(got.Message, tc.message) || got.Available != (tc.want == placementv1.ReasonManifestAvailable) {
				t.Errorf("got %+v, want reason %s and message %q", got, tc.want, tc.message)
			}
		})
	}
}
