package health

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What Kruise Rollouts puts on a workload whose update it has taken in hand.
const (
	kruiseInProgress = "rollouts.kruise.io/in-progressing"
	kruiseControl    = "batchrelease.rollouts.kruise.io/control-info"
)

// rolledOut tells whether a Kruise Rollout updates a workload. It holds the workload's own controller back then, and nobody
// else is to change that.
func rolledOut(annotations map[string]string) bool {
	_, begun := annotations[kruiseInProgress]
	_, controlled := annotations[kruiseControl]
	return begun || controlled
}

// byRollout is of a workload that a Kruise Rollout updates: whether that waits for somebody, the Rollout tells.
func byRollout(updated, replicas int32) Verdict {
	v := notYet("a Kruise Rollout updates it, and %d of %d replicas are updated", updated, replicas)
	v.Reason = placementv1.ReasonManifestUpdatedByRollout
	return v
}

// rollout judges a Kruise Rollout: it is available where it has nothing to do.
func rollout(u *unstructured.Unstructured) (Verdict, error) {
	phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
	if err != nil {
		return Verdict{}, fmt.Errorf("read its phase: %w", err)
	}
	if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); phase != "" && seen != u.GetGeneration() {
		return notYet("its controller has not seen generation %d", u.GetGeneration()), nil
	}
	switch phase {
	case "", "Initial": // placed ahead of what it is for, as is wise, it has nothing to tell of
		v := notTrackable()
		v.Message += ": the Rollout has not found its workload yet"
		return v, nil
	case "Healthy", "Disabled":
		return available(), nil
	case "Progressing":
		return progressing(u), nil
	default:
		return notYet("its phase is %s", phase), nil
	}
}

// progressing judges a Rollout that is on its way.
func progressing(u *unstructured.Unstructured) Verdict {
	message, _, _ := unstructured.NestedString(u.Object, "status", "message")
	if stopped, _, _ := unstructured.NestedBool(u.Object, "spec", "strategy", "paused"); stopped && progressingReason(u) == "Paused" {
		return paused("it is paused, until somebody sets its spec.strategy.paused to false")
	}
	for _, style := range []string{"canary", "blueGreen"} {
		status, has, _ := unstructured.NestedMap(u.Object, "status", style+"Status")
		if !has || status["currentStepState"] != "StepPaused" {
			continue
		}
		at, _, _ := unstructured.NestedInt64(status, "currentStepIndex")
		steps, _, _ := unstructured.NestedSlice(u.Object, "spec", "strategy", style, "steps")
		if waits(steps, at) {
			return paused("its step %d of %d is done and waits for somebody to approve it: kubectl kruise rollout approve rollout/%s -n %s",
				at, len(steps), u.GetName(), u.GetNamespace())
		}
	}
	return notYet("the Rollout is on its way: %s", message)
}

// waits tells whether the pause after a step, counted from 1, ends when somebody says so and not by itself.
func waits(steps []any, at int64) bool {
	if at < 1 || at > int64(len(steps)) {
		return false
	}
	step, ok := steps[at-1].(map[string]any)
	if !ok {
		return false
	}
	_, timed, _ := unstructured.NestedFieldNoCopy(step, "pause", "duration")
	return !timed
}

func progressingReason(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Progressing" {
			reason, _ := condition["reason"].(string)
			return reason
		}
	}
	return ""
}
