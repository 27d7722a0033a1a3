package aggregate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// parse reads a status as the API has it, with whole numbers.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return whole(fields).(map[string]any) //nolint:forcetypeassert // a map stays one
}

func whole(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	}
	return value
}

type there struct {
	cluster, status string
	observed        bool
}

func TestStatus(t *testing.T) {
	t.Parallel()
	const started = `startTime: "2026-01-01T00:00:00Z"`
	complete := func(at string) string {
		return `{` + started + `, succeeded: 1, completionTime: "` + at + `", conditions: [{type: Complete, status: "True", lastTransitionTime: "` + at + `"}]}`
	}
	tests := map[string]struct {
		group, kind  string
		before, want string
		items        []there
	}{
		"sums": {group: "apps", kind: "Deployment", want: `{replicas: 5, readyReplicas: 4, updatedReplicas: 5, availableReplicas: 4, unavailableReplicas: 1, observedGeneration: 7}`, items: []there{
			{"a", `{replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2, observedGeneration: 90}`, true},
			{"b", `{replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2, unavailableReplicas: 1, observedGeneration: 3}`, true},
		}},
		"not observed everywhere": {group: "apps", kind: "Deployment", before: `{observedGeneration: 6, replicas: 9}`, want: `{replicas: 2, observedGeneration: 6}`, items: []there{
			{"a", `{replicas: 2}`, true}, {"b", "", false},
		}},
		"a cluster that is not heard of counts for nothing": {group: "apps", kind: "StatefulSet", before: `{observedGeneration: 7, replicas: 4, readyReplicas: 4}`, want: `{replicas: 2, readyReplicas: 2, observedGeneration: 7}`, items: []there{
			{"a", `{replicas: 2, readyReplicas: 2}`, true}, {"b", "", false},
		}},
		"required counters":              {group: "apps", kind: "DaemonSet", want: `{currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0}`},
		"an observed generation of more": {group: "apps", kind: "Deployment", before: `{observedGeneration: 99}`, want: `{observedGeneration: 7}`},
		"addresses, each once, in order": {kind: "Service", want: `{loadBalancer: {ingress: [{hostname: a.example}, {ip: 10.0.0.1}]}}`, items: []there{
			{"b", `{loadBalancer: {ingress: [{ip: 10.0.0.1}]}}`, true}, {"a", `{loadBalancer: {ingress: [{ip: 10.0.0.1}, {hostname: a.example}]}}`, true},
		}},
		"no address":                {kind: "Service", want: `{loadBalancer: {}}`, items: []there{{"a", `{loadBalancer: {}}`, true}}},
		"a lost claim":              {kind: "PersistentVolumeClaim", want: `{phase: Lost}`, items: []there{{"a", `{phase: Bound}`, true}, {"b", `{phase: Lost}`, true}, {"c", `{phase: Pending}`, true}}},
		"a claim that is not bound": {kind: "PersistentVolumeClaim", want: `{phase: Pending}`, items: []there{{"a", `{phase: Bound}`, true}, {"b", `{phase: Pending}`, true}}},
		"a bound claim":             {kind: "PersistentVolumeClaim", want: `{phase: Bound}`, items: []there{{"a", `{phase: Bound}`, true}, {"b", `{phase: Bound}`, true}}},
		"a claim not heard of":      {kind: "PersistentVolumeClaim", want: `{phase: Pending}`, items: []there{{"a", `{phase: Bound}`, true}, {"b", "", false}}},
		"a job that runs": {group: "batch", kind: "Job", want: `{` + started + `, active: 1, succeeded: 1}`, items: []there{
			{"a", complete("2026-01-01T00:01:00Z"), true}, {"b", `{startTime: "2026-01-01T00:00:30Z", active: 1}`, true},
		}},
		"a job of which a cluster is not heard of": {group: "batch", kind: "Job", before: `{` + started + `, active: 2, succeeded: 3, failed: 1}`, want: `{` + started + `, active: 1, succeeded: 3, failed: 1}`, items: []there{
			{"a", `{startTime: "2026-01-01T00:00:30Z", active: 1, succeeded: 1}`, true}, {"b", "", false},
		}},
		"a job that is complete": {group: "batch", kind: "Job", want: `{` + started + `, succeeded: 2, completionTime: "2026-01-01T00:02:00Z", conditions: [
{type: SuccessCriteriaMet, status: "True", reason: Completed, message: Job completed in all clusters, lastProbeTime: "2026-01-01T00:02:00Z", lastTransitionTime: "2026-01-01T00:02:00Z"},
{type: Complete, status: "True", reason: Completed, message: Job completed in all clusters, lastProbeTime: "2026-01-01T00:02:00Z", lastTransitionTime: "2026-01-01T00:02:00Z"}]}`,
			items: []there{{"a", complete("2026-01-01T00:02:00Z"), true}, {"b", complete("2026-01-01T00:01:00Z"), true}}},
		"a job that has failed in one": {group: "batch", kind: "Job", want: `{` + started + `, succeeded: 1, failed: 2, conditions: [
{type: FailureTarget, status: "True", reason: JobFailed, message: "Job failed in clusters b", lastProbeTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"},
{type: Failed, status: "True", reason: JobFailed, message: "Job failed in clusters b", lastProbeTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"}]}`,
			items: []there{
				{"a", complete("2026-01-01T00:01:00Z"), true},
				{"b", `{` + started + `, failed: 2, conditions: [{type: Failed, status: "True", lastTransitionTime: "2026-01-01T00:03:00Z"}]}`, true},
			}},
		"a job that has ended stays so": {group: "batch", kind: "Job", before: complete("2026-01-01T00:01:00Z"), want: complete("2026-01-01T00:01:00Z"), items: []there{{"a", `{active: 1}`, true}}},
		"a rollout that waits": {group: "rollouts.kruise.io", kind: "Rollout", want: `{phase: Progressing, message: "1 of 3 clusters are at rest, 1 more have no such workload; b: step 1 StepPaused", observedGeneration: 7}`, items: []there{
			{"a", `{phase: Healthy}`, true}, {"d", `{phase: Initial}`, true}, {"b", `{phase: Progressing, currentStepIndex: 1, currentStepState: StepPaused}`, true}, {"c", `{}`, true},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var items []Item
			for _, i := range tc.items {
				items = append(items, Item{Cluster: i.cluster, Status: parse(t, i.status), Observed: i.observed})
			}
			before := parse(t, tc.before)
			got := Status(schema.GroupKind{Group: tc.group, Kind: tc.kind}, 7, before, items)
			if diff := cmp.Diff(parse(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, tc.before), before); diff != "" {
				t.Errorf("what was before has changed (-want +got):\n%s", diff)
			}
		})
	}
	if Knows(schema.GroupKind{Kind: "ConfigMap"}) {
		t.Error("a kind that has no status has a rule")
	}
}
