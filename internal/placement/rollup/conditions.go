package rollup

import (
	"fmt"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/rolling"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// text is what is said of one condition of the chain, for the placement and, where nothing is known, for a cluster. %d is
// a number of clusters.
type text struct {
	trueReason, trueMessage       string
	falseReason, falseMessage     string
	unknownReason, unknownMessage string
	clusterUnknown                string
}

var texts = map[string]text{
	placementv1.ConditionRolloutStarted: {
		trueReason:     placementv1.ReasonRolloutStarted,
		trueMessage:    "All %d cluster(s) start rolling out the latest resource",
		falseReason:    placementv1.ReasonRolloutNotStartedYet,
		falseMessage:   "The rollout is being blocked by the rollout strategy in %d cluster(s)",
		unknownReason:  placementv1.ReasonRolloutStartedUnknown,
		unknownMessage: "There are still %d cluster(s) in the process of being given the latest resource",
	},
	placementv1.ConditionOverridden: {
		trueReason:     placementv1.ReasonNoOverrideSpecified,
		trueMessage:    "No override rules are configured for the selected resources",
		falseReason:    placementv1.ReasonOverriddenFailed,
		falseMessage:   "Failed to override resources in %d cluster(s)",
		unknownReason:  placementv1.ReasonOverriddenPending,
		unknownMessage: "There are still %d cluster(s) in the process of computing overrides",
		clusterUnknown: "The overrides for this cluster are being computed",
	},
	placementv1.ConditionWorkSynchronized: {
		trueReason:     placementv1.ReasonWorkSynchronized,
		trueMessage:    "Work(s) are successfully created or updated in %d target cluster(s)' namespaces",
		falseReason:    placementv1.ReasonWorkNotSynchronizedYet,
		falseMessage:   "There are %d cluster(s) which have not finished creating or updating work(s) yet",
		unknownReason:  placementv1.ReasonWorkSynchronizedUnknown,
		unknownMessage: "There are still %d cluster(s) in the process of creating or updating work(s)",
		clusterUnknown: "The Works of this cluster are being written",
	},
	placementv1.ConditionApplied: {
		trueReason:     placementv1.ReasonApplySucceeded,
		trueMessage:    "The selected resources are successfully applied to %d cluster(s)",
		falseReason:    placementv1.ReasonApplyFailed,
		falseMessage:   "Failed to apply resources to %d cluster(s), please check the `failedPlacements` status",
		unknownReason:  placementv1.ReasonApplyPending,
		unknownMessage: "There are still %d cluster(s) in the process of applying the selected resources",
		clusterUnknown: "The cluster has not answered yet",
	},
	placementv1.ConditionAvailable: {
		trueReason:     placementv1.ReasonResourceAvailable,
		trueMessage:    "The selected resources in %d cluster(s) are available now",
		falseReason:    placementv1.ReasonResourceNotAvailableYet,
		falseMessage:   "The selected resources in %d cluster(s) are still not available yet",
		unknownReason:  placementv1.ReasonResourceAvailableUnknown,
		unknownMessage: "There are still %d cluster(s) in the process of checking whether the selected resources are available",
		clusterUnknown: "It is not known yet whether the resources are available in this cluster",
	},
}

// conditions are the placement's own: Scheduled, and then the chain over all clusters up to the first that is not True.
func (r *rollup) conditions(observedIndex string) []metav1.Condition {
	scheduled := r.placementScheduled()
	if r.Problem == nil && scheduled.Status != metav1.ConditionUnknown {
		if nothing := r.foundNothing(observedIndex); nothing != "" {
			scheduled.Message += "; " + nothing
		}
	}
	conditions := []metav1.Condition{r.finish(scheduled)}
	known := scheduled.Status == metav1.ConditionTrue || scheduled.Reason == placementv1.ReasonSchedulingPolicyUnfulfilled
	if !known || len(r.clusters) == 0 {
		return conditions
	}
	for _, kind := range chain {
		c := r.over(kind, observedIndex)
		conditions = append(conditions, r.finish(c))
		if c.Status != metav1.ConditionTrue {
			break
		}
	}
	return conditions
}

// finish makes a condition that is still the same keep its transition time.
func (r *rollup) finish(c metav1.Condition) metav1.Condition {
	c.Type = r.Kinds.ConditionPrefix + c.Type
	c.Message = placement.Cut(c.Message, maxConditionMessage)
	c.ObservedGeneration = r.generation
	c.LastTransitionTime = metav1.NewTime(r.Now)
	before := meta.FindStatusCondition(r.Placement.PlacementStatus().Conditions, c.Type)
	if before != nil && before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	return c
}

func (r *rollup) placementScheduled() metav1.Condition {
	c := metav1.Condition{
		Type: placementv1.ConditionScheduled, Status: metav1.ConditionUnknown, Reason: placementv1.ReasonSchedulePending,
		Message: "Scheduling has not completed",
	}
	if r.Problem != nil {
		c.Status, c.Reason, c.Message = r.Problem.Status, r.Problem.Reason, r.Problem.Message
		return c
	}
	if r.Policy == nil {
		return c
	}
	status := r.Policy.PolicySnapshotStatus()
	answer := meta.FindStatusCondition(status.Conditions, placementv1.ConditionScheduled)
	switch {
	case answer == nil || !r.answers(answer):
	case answer.Status == metav1.ConditionUnknown:
		c.Message += ": " + answer.Message
	default:
		c.Status, c.Reason, c.Message = answer.Status, answer.Reason, answer.Message
	}
	return c
}

// over sums one condition up over all clusters: False as soon as it has failed in one, Unknown as long as it is not known
// of all.
func (r *rollup) over(kind, observedIndex string) metav1.Condition {
	var failed, unknown []string
	for _, c := range r.clusters {
		switch reported := meta.FindStatusCondition(c.conditions, kind); {
		case reported == nil || reported.Status == metav1.ConditionUnknown || reported.Reason == placementv1.ReasonApplyInProgress:
			unknown = append(unknown, c.name)
		case reported.Status == metav1.ConditionFalse:
			failed = append(failed, c.name)
		}
	}
	t := texts[kind]
	c := metav1.Condition{Type: kind}
	switch {
	case len(failed) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, t.falseReason, count(t.falseMessage, len(failed))+": "+names(failed)
	case len(unknown) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, t.unknownReason, count(t.unknownMessage, len(unknown))+": "+names(unknown)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, t.trueReason, count(t.trueMessage, len(r.clusters))
	}
	switch kind {
	case placementv1.ConditionRolloutStarted:
		r.tellRollout(&c, observedIndex, unknown)
	case placementv1.ConditionAvailable:
		if observedIndex != "" && r.Selected.Count == 0 && c.Status == metav1.ConditionTrue {
			c.Message += "; but resource snapshot " + observedIndex + " is empty: the selectors found nothing on the hub when it was made"
		}
	}
	return c
}

// tellRollout makes RolloutStarted say who moves the clusters, and where they are when they are not all in one place.
func (r *rollup) tellRollout(c *metav1.Condition, observedIndex string, unknown []string) {
	byIndex := r.byIndex()
	switch {
	case !r.external:
		if c.Status != metav1.ConditionTrue && len(byIndex) > 1 {
			c.Message += "; " + whereabouts(byIndex)
		}
		if kept := r.kept(); len(kept) > 0 {
			c.Message += fmt.Sprintf("; %d cluster(s) that are no longer chosen keep what they have until others are available in their place: %s", len(kept), names(kept))
		}
		if r.Latest == nil {
			c.Message += "; there is no resource snapshot so far"
		}
	case len(unknown) > 0:
		c.Reason = placementv1.ReasonRolloutControlledByExternalController
		if len(byIndex) == 0 {
			c.Message = fmt.Sprintf("No cluster has been given a resource snapshot yet: %d cluster(s) wait for a %s of this placement",
				len(r.clusters), r.Kinds.UpdateRun)
			return
		}
		c.Message = fmt.Sprintf("%d of %d cluster(s) wait for a %s to give them a resource snapshot: %s; of the others, %s",
			len(unknown), len(r.clusters), r.Kinds.UpdateRun, names(unknown), whereabouts(byIndex))
	case observedIndex != "":
		c.Message = fmt.Sprintf("All %d cluster(s) start rolling out resource snapshot %s", len(r.clusters), observedIndex)
	default:
		c.Message = fmt.Sprintf("All %d cluster(s) have a resource snapshot, but not the same one: %s", len(r.clusters), whereabouts(byIndex))
	}
}

// kept are the clusters that are not chosen any more and whose removal has to wait.
func (r *rollup) kept() []string {
	var kept []string
	for _, b := range r.Bindings {
		if r.held[b.GetName()].Action == rolling.Remove {
			kept = append(kept, b.BindingSpec().TargetCluster)
		}
	}
	return kept
}

// whereabouts tells how many clusters are on which snapshot, the newest first.
func whereabouts(byIndex []placementv1.ResourceIndexCount) string {
	const shown = 5
	var parts []string
	for i := len(byIndex) - 1; i >= 0; i-- {
		if len(parts) == shown {
			parts = append(parts, fmt.Sprintf("and %d older ones", i+1))
			break
		}
		parts = append(parts, fmt.Sprintf("%d on resource snapshot %s", byIndex[i].Clusters, byIndex[i].ResourceIndex))
	}
	return strings.Join(parts, ", ")
}

// names lists clusters, the first of them.
func names(clusters []string) string {
	const shown = 5
	if len(clusters) <= shown {
		return strings.Join(clusters, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(clusters[:shown], ", "), len(clusters)-shown)
}

// count puts a number into a message that has a place for one.
func count(message string, n int) string { return strings.Replace(message, "%d", strconv.Itoa(n), 1) }
