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
		"it updates pods":                 {canary("Progressing", "InRolling", "StepUpgrade", 1, ""), notYet, "on its way: Rollout is in step(1/3)"},
		"a step waits for somebody":       {canary("Progressing", "InRolling", "StepPaused", 1, ""), paused, "its step 1 of 3 is done and waits for somebody to approve it: kubectl kruise rollout approve rollout/web -n demo"},
		"a step waits for a while":        {canary("Progressing", "InRolling", "StepPaused", 2, ""), notYet, "on its way"},
		"a step that does not exist":      {canary("Progressing", "InRolling", "StepPaused", 4, ""), notYet, "on its way"},
		"it is paused":                    {canary("Progressing", "Paused", "StepUpgrade", 1, ", paused: true"), paused, "until somebody sets its spec.strategy.paused to false"},
		"it is about to be paused":        {canary("Progressing", "InRolling", "StepUpgrade", 1, ", paused: true"), notYet, "on its way"},
		"it is about to go on":            {canary("Progressing", "Paused", "StepUpgrade", 1, ""), notYet, "on its way"},
		"it was cancelled at a step":      {canary("Healthy", "Completed", "StepPaused", 1, ""), yes, ""},
		"blue and green": {`{spec: {strategy: {blueGreen: {steps: [{replicas: 100%, pause: {}}]}}}, status: {observedGeneration: 3, phase: Progressing,
			blueGreenStatus: {currentStepIndex: 1, currentStepState: StepPaused}}}`, paused, "its step 1 of 1 is done"},
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
