package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report says on the policy snapshot what was decided, if it does not say so already.
func (c *Controller) report(ctx context.Context, policy placementv1.PolicySnapshotObject, result schedule.Result, waiting, obstructions []string) error {
	if len(obstructions) > 0 {
		waiting = slices.Concat(obstructions, waiting)
	} else if len(waiting) > 0 && isScheduled(policy) {
		return nil // what it says was true and will be again when the binding in the way is gone
	}
	return c.answer(ctx, policy, func(status *placementv1.SchedulingPolicySnapshotStatus) metav1.Condition {
		status.ClusterDecisions = result.Listed()
		status.SelectedCount = int32(len(result.Selected)) //nolint:gosec // a fleet has fewer than 2^31 clusters
		return condition(result, waiting)
	})
}

// refuse says on the policy snapshot that the policy cannot be used. What was chosen stays as it is.
func (c *Controller) refuse(ctx context.Context, policy placementv1.PolicySnapshotObject, mistake *schedule.PolicyError) error {
	return c.answer(ctx, policy, func(*placementv1.SchedulingPolicySnapshotStatus) metav1.Condition {
		return metav1.Condition{
			Status: metav1.ConditionFalse, Reason: placementv1.ReasonSchedulingPolicyUnfulfilled,
			Message: "the policy cannot be used: " + mistake.Error() + "; correct it. Until then the clusters stay as they are",
		}
	})
}

// answer writes an answer into the policy snapshot's status, if it does not say so already.
func (c *Controller) answer(ctx context.Context, policy placementv1.PolicySnapshotObject, fill func(*placementv1.SchedulingPolicySnapshotStatus) metav1.Condition) error {
	status := policy.PolicySnapshotStatus()
	before := status.DeepCopy()
	status.ObservedCRPGeneration = placementGeneration(policy)
	scheduled := fill(status)
	scheduled.Type, scheduled.ObservedGeneration = placementv1.ConditionScheduled, policy.GetGeneration()
	scheduled.LastTransitionTime = metav1.NewTime(c.Clock.Now())
	meta.SetStatusCondition(&status.Conditions, scheduled)
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	if err := c.Client.Status().Update(ctx, policy); err != nil {
		return fmt.Errorf("write the decisions into policy snapshot %s: %w", policy.GetName(), err)
	}
	c.tracker.Wrote(policy)
	return nil
}

func condition(result schedule.Result, waiting []string) metav1.Condition {
	switch {
	case len(waiting) > 0:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: placementv1.ReasonSchedulePending, Message: waitingMessage(waiting)}
	case result.Fulfilled():
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: placementv1.ReasonSchedulingPolicyFulfilled, Message: result.Message()}
	default:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: placementv1.ReasonSchedulingPolicyUnfulfilled, Message: result.Message()}
	}
}

// waitingMessage names the first of what is waited for, and how many there are.
func waitingMessage(waiting []string) string {
	const shown = 3
	if len(waiting) <= shown {
		return "waiting: " + strings.Join(waiting, "; ")
	}
	return fmt.Sprintf("waiting: %s; and %d more", strings.Join(waiting[:shown], "; "), len(waiting)-shown)
}

// isScheduled tells whether the snapshot says that its placement, as it is, has its clusters.
func isScheduled(policy placementv1.PolicySnapshotObject) bool {
	status := policy.PolicySnapshotStatus()
	c := meta.FindStatusCondition(status.Conditions, placementv1.ConditionScheduled)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == policy.GetGeneration() &&
		status.ObservedCRPGeneration == placementGeneration(policy)
}

// saysSo tells whether the snapshot says already that its placement has these clusters.
func saysSo(policy placementv1.PolicySnapshotObject, result *schedule.Result) bool {
	if !isScheduled(policy) || int(policy.PolicySnapshotStatus().SelectedCount) != len(result.Selected) {
		return false
	}
	listed := policy.PolicySnapshotStatus().ClusterDecisions
	for i := range min(len(result.Selected), len(listed)) {
		if !equality.Semantic.DeepEqual(listed[i], result.Selected[i]) {
			return false
		}
	}
	return len(listed) >= min(len(result.Selected), schedule.MaxDecisions)
}

// placementGeneration is the generation of the placement that the snapshot was last seen to match.
func placementGeneration(policy placementv1.PolicySnapshotObject) int64 {
	generation, err := strconv.ParseInt(policy.GetAnnotations()[placementv1.AnnotationPlacementGeneration], 10, 64)
	if err != nil {
		return 0 // not annotated yet: the annotation brings the next pass
	}
	return generation
}
