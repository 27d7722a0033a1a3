// Package kruise holds what the fleet knows of Kruise Rollouts (openkruise/rollouts, v0.6): which labels, annotations and fields are
// Kruise's own, and how to read a Rollout. It does no I/O; hub and agents share it, so that both mean the same.
package kruise

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rollouts is the kind by which Kruise releases a workload in batches of pods, in the version that is spoken here.
var Rollouts = schema.GroupVersionKind{Group: "rollouts.kruise.io", Version: "v1beta1", Kind: "Rollout"}

// Marks that Kruise puts on a workload.
const (
	// InProgress is the annotation by which Kruise's webhook marks a workload whose pod template has changed.
	InProgress = "rollouts.kruise.io/in-progressing"
	// Control is the annotation by which a BatchRelease says that it has a workload in its hands.
	Control = "batchrelease.rollouts.kruise.io/control-info"
	// Guarded is the label that Kruise puts on each workload of a Rollout. Its webhook looks at no workload without it.
	Guarded = "rollouts.kruise.io/workload-type"
	// Stable is the key in a Service's selector that keeps it on the stable pods during a release.
	Stable = "pod-template-hash"
	// Aside ends the name of the workload in an autoscaler that Kruise has put aside during a release.
	Aside = "-DisableByRollout"
)

// Domains are those of the labels and annotations that Kruise Rollouts reads and writes.
var Domains = []string{"rollouts.kruise.io", "batchrelease.rollouts.kruise.io"}

// notes are the labels and annotations in which Kruise's controllers and its webhook keep what they know of one cluster. A user
// sets none of them; on an object of the hub they come from a copy of a member's.
var notes = map[string]bool{
	InProgress: true, Control: true, Guarded: true,
	"rollouts.kruise.io/stable-revision":                                       true,
	"rollouts.kruise.io/deployment-strategy":                                   true,
	"rollouts.kruise.io/deployment-extra-status":                               true,
	"rollouts.kruise.io/controlled-by-advanced-deployment-controller":          true,
	"rollouts.kruise.io/hash":                                                  true,
	"rollouts.kruise.io/rolling-style":                                         true,
	"batchrelease.rollouts.kruise.io/canary-deployment":                        true,
	"batchrelease.rollouts.kruise.io/stable-revision":                          true,
	"rollouts.kruise.io/original-deployment-strategy":                          true,
	"rollouts.kruise.io/workload-stable-replicas-before-blue-green-deployment": true,
}

// IsNote tells whether a label or annotation is one in which Kruise keeps what is true in one cluster alone.
func IsNote(key string) bool { return notes[key] }

// Holds tells by the annotations of a workload whether Kruise is releasing it.
func Holds(annotations map[string]string) bool {
	return annotations[InProgress] != "" || annotations[Control] != ""
}

// IsRollout tells whether a kind is Kruise's Rollout.
func IsRollout(kind schema.GroupKind) bool { return kind == Rollouts.GroupKind() }

// Workload names the workload that a Rollout releases, which is in the Rollout's own namespace.
func Workload(rollout *unstructured.Unstructured) (kind schema.GroupKind, name string) {
	apiVersion, _, _ := unstructured.NestedString(rollout.Object, "spec", "workloadRef", "apiVersion")
	k, _, _ := unstructured.NestedString(rollout.Object, "spec", "workloadRef", "kind")
	name, _, _ = unstructured.NestedString(rollout.Object, "spec", "workloadRef", "name")
	group, _, versioned := strings.Cut(apiVersion, "/")
	if !versioned {
		group = ""
	}
	return schema.GroupKind{Group: group, Kind: k}, name
}

// Disabled tells whether a Rollout is switched off: then its workload is updated as if there were none.
func Disabled(rollout *unstructured.Unstructured) bool {
	off, _, _ := unstructured.NestedBool(rollout.Object, "spec", "disabled")
	return off
}

// Phase is how a Rollout's controller names what it is at; empty where it has said nothing.
func Phase(rollout *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(rollout.Object, "status", "phase")
	return phase
}

// PhaseProgressing is the phase of a Rollout that releases its workload.
const PhaseProgressing = "Progressing"

// Progressing is the reason of a Rollout's condition of that name: how far a release is.
func Progressing(rollout *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(rollout.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == PhaseProgressing {
			reason, _ := condition["reason"].(string)
			return reason
		}
	}
	return ""
}

// Observed tells whether a Rollout's controller has seen the Rollout as it is.
func Observed(rollout *unstructured.Unstructured) bool {
	seen, _, _ := unstructured.NestedInt64(rollout.Object, "status", "observedGeneration")
	return seen == rollout.GetGeneration()
}

// Paused tells whether somebody has paused a Rollout, and its controller has done so.
func Paused(rollout *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(rollout.Object, "spec", "strategy", "paused")
	return paused && Phase(rollout) == PhaseProgressing && Progressing(rollout) == "Paused"
}

// Approval returns for which step of how many a Rollout waits to be approved, counted from 1; ok is false where it does not.
func Approval(rollout *unstructured.Unstructured) (a AwaitedApproval, ok bool) {
	if Phase(rollout) != PhaseProgressing {
		return AwaitedApproval{}, false
	}
	for _, style := range []string{"canary", "blueGreen"} {
		status, has, _ := unstructured.NestedMap(rollout.Object, "status", style+"Status")
		if !has || status["currentStepState"] != "StepPaused" {
			continue
		}
		at, _, _ := unstructured.NestedInt64(status, "currentStepIndex")
		steps, _, _ := unstructured.NestedSlice(rollout.Object, "spec", "strategy", style, "steps")
		if waits(steps, at) {
			return AwaitedApproval{Step: int(at), Steps: len(steps), Namespace: rollout.GetNamespace(), Name: rollout.GetName()}, true
		}
	}
	return AwaitedApproval{}, false
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
