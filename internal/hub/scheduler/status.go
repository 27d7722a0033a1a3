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
	status := policy.PolicySnapshotStatus()
	before := status.DeepCopy()
	status.ObservedCRPGeneration = placementGeneration(policy)
	status.ClusterDecisions = result.Listed()
	status.SelectedCount = int32(len(result.Selected)) //nolint:gosec // a fleet has fewer than 2^31 clusters
	meta.SetStatusCondition(&status.Conditions, c.scheduled(policy.GetGeneration(), result, waiting))
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	if err := c.Client.Status().Update(ctx, policy); err != nil {
		return fmt.Errorf("write the decisions into policy snapshot %s: %w", policy.GetName(), err)
	}
	c.tracker.Wrote(policy)
	return nil
}

func (c *Controller) scheduled(generation int64, result schedule.Result, waiting []string) metav1.Condition {
	condition := metav1.Condition{
		Type:               placementv1.ConditionScheduled,
		Status:             metav1.ConditionTrue,
		Reason:             placementv1.ReasonSchedulingPolicyFulfilled,
		Message:            result.Message(),
		ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(c.Clock.Now()),
	}
	if len(waiting) > 0 {
		condition.Status = metav1.ConditionUnknown
		condition.Reason = placementv1.ReasonSchedulePending
		condition.Message = waitingMessage(waiting)
	}
	return condition
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

// placementGeneration is the generation of the placement that the snapshot was last seen to match.
func placementGeneration(policy placementv1.PolicySnapshotObject) int64 {
	generation, err := strconv.ParseInt(policy.GetAnnotations()[placementv1.AnnotationPlacementGeneration], 10, 64)
	if err != nil {
		return 0 // not annotated yet: the annotation brings the next pass
	}
	return generation
}

// policyIndex is the snapshot's index; -1 for one without.
func policyIndex(policy placementv1.PolicySnapshotObject) int {
	index, err := strconv.Atoi(policy.GetLabels()[placementv1.LabelPolicyIndex])
	if err != nil {
		return -1
	}
	return index
}
