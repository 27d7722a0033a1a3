package rollup_test

import (
	"strconv"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later = start.Add(time.Hour)
)

// input is a placement that was scheduled to nothing yet.
func input(strategy placementv1.RolloutStrategyType) rollup.Input {
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 3}}
	p.Spec.Strategy.Type = strategy
	policy := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Generation: 1}}
	policy.Status.ObservedCRPGeneration = 3
	policy.Status.Conditions = []metav1.Condition{{
		Type: placementv1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: placementv1.ReasonSchedulingPolicyFulfilled,
		Message: "found all", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(start),
	}}
	return rollup.Input{Kinds: placement.ClusterKinds(), Placement: p, Policy: policy, Now: later, Selected: rollup.Selected{Count: 1}}
}

// binding makes a binding of a cluster from words: "scheduled", "unscheduled", "deleting" or an index such as "on1", and
// then conditions as type, status and reason, such as "Applied=False/ApplyInProgress"; "done" stands for all of them.
func binding(cluster string, words ...string) placementv1.BindingObject {
	b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster, Generation: 2, CreationTimestamp: metav1.NewTime(start)}}
	b.Spec.TargetCluster = cluster
	b.Spec.State = placementv1.BindingStateBound
	b.Spec.ClusterDecision = placementv1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "picked"}
	for _, word := range words {
		switch {
		case word == "scheduled":
			b.Spec.State = placementv1.BindingStateScheduled
		case word == "unscheduled":
			b.Spec.State = placementv1.BindingStateUnscheduled
		case word == "deleting":
			now := metav1.NewTime(start)
			b.DeletionTimestamp = &now
		case word == "stale":
			b.Generation++
		case word == "done":
			for _, c := range []string{"RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
				"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied", "Available=True/AllWorkAreAvailable"} {
				b.Status.Conditions = append(b.Status.Conditions, bindingCondition(c))
			}
		case strings.HasPrefix(word, "on"):
			index, err := strconv.Atoi(word[2:])
			if err != nil {
				panic(err)
			}
			b.Spec.ResourceSnapshotName = placement.ResourceSnapshotName("web", index)
		case strings.HasPrefix(word, "failed:"):
			b.Status.FailedPlacements = append(b.Status.FailedPlacements, failure(strings.TrimPrefix(word, "failed:")))
		default:
			b.Status.Conditions = append(b.Status.Conditions, bindingCondition(word))
		}
	}
	return b
}

func bindingCondition(word string) metav1.Condition {
	kind, rest, _ := strings.Cut(word, "=")
	status, reason, _ := strings.Cut(rest, "/")
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "the binding's own word",
		ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(start.Add(time.Minute)),
	}
}

func failure(message string) placementv1.FailedResourcePlacement {
	return placementv1.FailedResourcePlacement{
		ResourceIdentifier: placementv1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "config"},
		Condition: metav1.Condition{
			Type: placementv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: placementv1.ReasonManifestApplyFailed,
			Message: message, LastTransitionTime: metav1.NewTime(start),
		},
	}
}

// synced are the conditions up to Works that are written.
var synced = []string{"RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified", "WorkSynchronized=True/AllWorkSynced"}

// summarize writes conditions as lines.
func summarize(conditions []metav1.Condition) []string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, strings.TrimPrefix(c.Type, placementv1.ClusterPlacementConditionPrefix)+"="+string(c.Status)+"/"+c.Reason+": "+c.Message)
	}
	return lines
}

// rows writes rows as lines, without messages.
func rows(status placementv1.PlacementStatus) []string {
	var lines []string
	for _, row := range status.PlacementStatuses {
		line := row.ClusterName + "@" + row.ObservedResourceIndex
		for _, c := range row.Conditions {
			line += " " + c.Type + "=" + string(c.Status) + "/" + c.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

// threeSelectors gives a placement selectors by name, by label, and by another name.
func threeSelectors(p placementv1.PlacementObject) placementv1.PlacementObject {
	p.PlacementSpec().ResourceSelectors = []placementv1.ResourceSelector{
		{Version: "v1", Kind: "Namespace", Name: "one"},
		{Group: "apps.example.com", Version: "v1", Kind: "Widget", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		{Version: "v1", Kind: "Namespace", Name: "two"},
	}
	return p
}

func selectors(p placementv1.PlacementObject) []placement.Selector {
	parsed, err := placement.ParseSelectors(p, placement.Rules{})
	if err != nil {
		panic(err)
	}
	return parsed
}
