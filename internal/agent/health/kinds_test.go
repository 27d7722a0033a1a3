package health

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return object
}

const (
	isAvailable = placementv1.ReasonManifestAvailable
	isNotYet    = placementv1.ReasonManifestNotAvailableYet
	hasFailed   = placementv1.ReasonManifestAvailabilityFailed
	isUnknown   = placementv1.ReasonManifestNotTrackable
)

// TestKinds are the answers of kinds for which the public API says nothing or little: not yet, available, failed, and that
// nothing tells.
func TestKinds(t *testing.T) {
	t.Parallel()
	const (
		pod        = "{apiVersion: v1, kind: Pod, status: "
		replicaSet = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 2}, status: "
		job        = "{apiVersion: batch/v1, kind: Job, spec: {completions: 2}, status: "
		ingress    = "{apiVersion: networking.k8s.io/v1, kind: Ingress, status: "
		autoscaler = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: "
		claim      = "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: disk}, status: "
		definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: "
		custom     = "{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 2}, status: "
		able       = `{type: AbleToScale, status: "True"}`
	)
	for name, tc := range map[string]struct{ object, want, says string }{
		"Pod, ready":           {pod + `{phase: Running, conditions: [{type: Ready, status: "True"}]}}`, isAvailable, ""},
		"Pod, has done":        {pod + `{phase: Succeeded, conditions: [{type: Ready, status: "False"}]}}`, isAvailable, ""},
		"Pod, not ready":       {pod + `{phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "no web"}]}}`, isNotYet, "(ContainersNotReady): no web"},
		"Pod, says nothing":    {pod + `{phase: Running}}`, isNotYet, "not ready"},
		"Pod, waits":           {pod + `{phase: Pending}}`, isNotYet, "not ready"},
		"Pod, has no node":     {pod + `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]}}`, isNotYet, "no node (Unschedulable): 0/3 nodes"},
		"Pod, nobody saw it":   {"{apiVersion: v1, kind: Pod}", isNotYet, "nobody"},
		"Pod, node is lost":    {pod + `{phase: Unknown}}`, isNotYet, `"Unknown"`},
		"Pod, failed":          {pod + `{phase: Failed, reason: Evicted, message: no memory}}`, hasFailed, "(Evicted): no memory"},
		"Pod, crashes":         {pod + `{phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, hasFailed, "web"},
		"Pod, crashes early":   {pod + `{phase: Pending, initContainerStatuses: [{name: init, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, hasFailed, "init"},
		"Pod, pulls its image": {pod + `{phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}}`, isNotYet, ""},

		"ReplicaSet, complete":       {replicaSet + `{observedGeneration: 1, replicas: 2, availableReplicas: 2}}`, isAvailable, ""},
		"ReplicaSet, too few":        {replicaSet + `{observedGeneration: 1, replicas: 2, availableReplicas: 1}}`, isNotYet, "1 of 2"},
		"ReplicaSet, too many":       {replicaSet + `{observedGeneration: 1, replicas: 3, availableReplicas: 2}}`, isNotYet, "has 3 replicas"},
		"ReplicaSet, nobody saw it":  {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 0}}", isNotYet, "generation 1"},
		"ReplicaSet, of none":        {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}", isAvailable, ""},
		"ReplicaSet, may not":        {replicaSet + `{observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}}`, isNotYet, "(FailedCreate): quota"},
		"ReplicaSet, might not once": {replicaSet + `{observedGeneration: 1, replicas: 2, availableReplicas: 2, conditions: [{type: ReplicaFailure, status: "False"}]}}`, isAvailable, ""},

		"Job, done":          {job + `{succeeded: 2, startTime: "2026-01-01T10:00:00Z", conditions: [{type: Complete, status: "True"}]}}`, isAvailable, ""},
		"Job, runs":          {job + `{active: 1, startTime: "2026-01-01T10:00:00Z"}}`, isAvailable, ""},
		"Job, has not begun": {job + `{}}`, isNotYet, "not started"},
		"Job, failed":        {job + `{failed: 7, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, hasFailed, "7/2"},
		"Job, held":          {"{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}", isUnknown, "suspended"},
		"CronJob":            {"{apiVersion: batch/v1, kind: CronJob, status: {active: []}}", isAvailable, ""},

		"Ingress, with an address": {ingress + `{loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, isAvailable, ""},
		"Ingress, with a name":     {ingress + `{loadBalancer: {ingress: [{}, {hostname: lb.example.com}]}}}`, isAvailable, ""},
		"Ingress, without":         {ingress + `{loadBalancer: {ingress: [{}]}}}`, isUnknown, "no address"},
		"Ingress, says nothing":    {"{apiVersion: networking.k8s.io/v1, kind: Ingress}", isUnknown, "no address"},

		"autoscaler, scales":        {autoscaler + `{conditions: [` + able + `, {type: ScalingActive, status: "True"}, {type: ScalingLimited, status: "True"}]}}`, isAvailable, ""},
		"autoscaler, has no metric": {autoscaler + `{conditions: [` + able + `, {type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: no metrics}]}}`, isUnknown, "ScalingActive is False (FailedGetResourceMetric): no metrics"},
		"autoscaler, has no target": {autoscaler + `{conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale}]}}`, isUnknown, "(FailedGetScale)"},
		"autoscaler, half said":     {autoscaler + `{conditions: [` + able + `]}}`, isUnknown, ""},
		"autoscaler, of old":        {"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, status: {currentReplicas: 1, observedGeneration: 1}}", isUnknown, ""},

		"claim, bound": {claim + `{phase: Bound}}`, isAvailable, ""},
		"claim, waits": {claim + `{phase: Pending}}`, isUnknown, "not bound"},
		"claim, new":   {"{apiVersion: v1, kind: PersistentVolumeClaim}", isUnknown, "not bound"},
		"claim, lost":  {claim + `{phase: Lost}}`, hasFailed, `"disk"`},

		"definition, names taken": {definition + `{conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: taken}, {type: Established, status: "False"}]}}`, hasFailed, "(PluralConflict): taken"},
		"definition, new":         {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}", isNotYet, "NamesAccepted"},

		"custom resource, ready":           {custom + `{observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`, isAvailable, ""},
		"custom resource, ready before":    {custom + `{observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`, isNotYet, "latest observed generation is 1"},
		"custom resource, not ready":       {custom + `{conditions: [{type: Ready, status: "False", message: starting}]}}`, isNotYet, "starting"},
		"custom resource, does not know":   {custom + `{conditions: [{type: Ready, status: Unknown, message: asking}]}}`, isNotYet, "asking"},
		"custom resource, reconciles":      {custom + `{conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True", message: at it}]}}`, isNotYet, "at it"},
		"custom resource, stalled":         {custom + `{conditions: [{type: Stalled, status: "True", message: no quota}]}}`, hasFailed, "no quota"},
		"custom resource, seen":            {custom + `{observedGeneration: 2}}`, isAvailable, ""},
		"custom resource, of its own kind": {custom + `{conditions: [{type: Green, status: "True"}]}}`, isUnknown, ""},
		"custom resource, says nothing":    {"{apiVersion: example.com/v1, kind: Widget}", isUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Judge(parse(t, tc.object))
			if got.Reason != tc.want || got.Available != (tc.want == isAvailable || tc.want == isUnknown) || !strings.Contains(got.Message, tc.says) {
				t.Errorf("got %+v, want reason %s and %q", got, tc.want, tc.says)
			}
		})
	}
}

// TestMalformed: whatever a status is made of, judging it does not panic and does not call the object available. What would
// make it available is there as well, but for what is malformed.
func TestMalformed(t *testing.T) {
	t.Parallel()
	const head = "metadata: {name: x, generation: 1}, "
	for name, text := range map[string]string{
		"Pod, containers are texts":           `{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [web]}}`,
		"Pod, a state is a text":              `{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, state: up}]}}`,
		"Pod, a name is a number":             `{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: 1, state: {waiting: {reason: x}}}]}}`,
		"Pod, conditions are a map":           `{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: {Ready: "True"}}}`,
		"Pod, status is a text":               `{apiVersion: v1, kind: Pod, status: Running}`,
		"ReplicaSet, replicas are a text":     `{apiVersion: apps/v1, kind: ReplicaSet, ` + head + `status: {observedGeneration: 1, replicas: "1", availableReplicas: 1}}`,
		"Deployment, replicas are a text":     `{apiVersion: apps/v1, kind: Deployment, ` + head + `status: {observedGeneration: 1, updatedReplicas: "1", availableReplicas: 1}}`,
		"Deployment, spec is a list":          `{apiVersion: apps/v1, kind: Deployment, ` + head + `spec: [], status: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}}`,
		"StatefulSet, revision is a number":   `{apiVersion: apps/v1, kind: StatefulSet, ` + head + `status: {observedGeneration: 1, availableReplicas: 1, updateRevision: 1}}`,
		"DaemonSet, status is a list":         `{apiVersion: apps/v1, kind: DaemonSet, ` + head + `status: []}`,
		"Job, startTime is a number":          `{apiVersion: batch/v1, kind: Job, status: {active: 1, startTime: 5}}`,
		"Job, active is a text":               `{apiVersion: batch/v1, kind: Job, status: {active: many, startTime: "2026-01-01T10:00:00Z"}}`,
		"Job, conditions are texts":           `{apiVersion: batch/v1, kind: Job, status: {startTime: "2026-01-01T10:00:00Z", conditions: [Complete]}}`,
		"CronJob, status is a text":           `{apiVersion: batch/v1, kind: CronJob, status: active}`,
		"Service, addresses are a text":       `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: 1.2.3.4}}}`,
		"Ingress, addresses are a text":       `{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: 1.2.3.4}}}`,
		"autoscaler, conditions are a map":    `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: {AbleToScale: "True"}}}`,
		"autoscaler, a condition says yes":    `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: AbleToScale, status: "yes"}]}}`,
		"claim, phase is a map":               `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: {}}}`,
		"PodDisruptionBudget, a text":         `{apiVersion: policy/v1, kind: PodDisruptionBudget, ` + head + `status: {observedGeneration: "1"}}`,
		"definition, a condition is a text":   `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [Established]}}`,
		"custom resource, status is a text":   `{apiVersion: example.com/v1, kind: Widget, status: Running}`,
		"custom resource, conditions":         `{apiVersion: example.com/v1, kind: Widget, status: {conditions: Ready}}`,
		"custom resource, a condition":        `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [Ready]}}`,
		"custom resource, true is no text":    `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: true}]}}`,
		"custom resource, true is small":      `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "true"}]}}`,
		"custom resource, stalled in numbers": `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Stalled, status: "1"}]}}`,
		"custom resource, no status at all":   `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready}]}}`,
		"custom resource, generation":         `{apiVersion: example.com/v1, kind: Widget, ` + head + `status: {observedGeneration: "1"}}`,
		"custom resource, half a generation":  `{apiVersion: example.com/v1, kind: Widget, ` + head + `status: {observedGeneration: 1.5}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Judge(parse(t, text)); got.Available || got.Reason != hasFailed || got.Message == "" {
				t.Errorf("got %+v, want it to say that this cannot be told", got)
			}
		})
	}
}

// TestNothingPanics puts every kind of value where each kind that has a rule keeps its status.
func TestNothingPanics(t *testing.T) {
	t.Parallel()
	values := []any{nil, "", "True", int64(1), 1.5, true, []any{}, []any{nil, "x", int64(1)}, map[string]any{}, map[string]any{"type": int64(1)}}
	kinds := []schema.GroupKind{{Group: "example.com", Kind: "Widget"}}
	for kind := range rules {
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		for _, field := range []string{"", "conditions", "observedGeneration", "phase", "replicas", "containerStatuses", "loadBalancer", "startTime"} {
			for _, value := range values {
				o := &unstructured.Unstructured{Object: map[string]any{"status": value}}
				if field != "" {
					o.Object["status"] = map[string]any{field: value}
				}
				o.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: "v1", Kind: kind.Kind})
				if got := Judge(o); got.Reason == "" || got.Message == "" {
					t.Errorf("%s with %q of %v: %+v", kind, field, value, got)
				}
			}
		}
	}
}
