package rollup

import (
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// unfilled are rows without a cluster, one for each that the policy asks for and that was not found, with the reason why one of
// those that are there was not chosen. There are as many at the most as reasons are known.
func (r *rollup) unfilled() []placementv1.PerClusterPlacementStatus {
	if r.Problem != nil || r.Policy == nil {
		return nil
	}
	status := r.Policy.PolicySnapshotStatus()
	answer := meta.FindStatusCondition(status.Conditions, placementv1.ConditionScheduled)
	if answer == nil || answer.Status != metav1.ConditionFalse || !r.answers(answer) {
		return nil
	}
	missing := r.wanted() - int(status.SelectedCount)
	var rows []placementv1.PerClusterPlacementStatus
	for i := range status.ClusterDecisions {
		d := &status.ClusterDecisions[i]
		if d.Selected || len(rows) >= missing {
			continue
		}
		message := placement.Cut(d.Reason, maxRowMessage)
		rows = append(rows, placementv1.PerClusterPlacementStatus{Conditions: []metav1.Condition{r.condition(
			placementv1.ConditionScheduled, metav1.ConditionFalse, placementv1.ReasonScheduleFailed, message, answer.LastTransitionTime)}})
	}
	return rows
}

// answers tells whether what the scheduler says is about the placement as it is.
func (r *rollup) answers(scheduled *metav1.Condition) bool {
	return scheduled.ObservedGeneration == r.Policy.GetGeneration() && r.Policy.PolicySnapshotStatus().ObservedCRPGeneration == r.generation
}

// wanted is how many clusters the policy asks for; 0 for one that takes what there is.
func (r *rollup) wanted() int {
	policy := r.Placement.PlacementSpec().Policy
	switch policy.Type() {
	case placementv1.PickNPlacementType:
		return int(ptr.Deref(policy.NumberOfClusters, 0))
	case placementv1.PickFixedPlacementType:
		return len(slices.Compact(slices.Sorted(slices.Values(policy.ClusterNames))))
	default:
		return 0
	}
}
