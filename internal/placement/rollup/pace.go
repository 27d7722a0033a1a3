package rollup

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
)

// MayWait tells whether a status says nothing new but how far clusters are that go their way. That changes with every one of
// them, and nobody has to do anything about it. That all are done, that one more or one fewer fails, and whatever concerns
// the choice of clusters and objects does not wait.
func MayWait(prefix string, before, after *placementv1.PlacementStatus) bool {
	if before.ClusterSummary == nil || after.ClusterSummary == nil || Available(prefix, after) ||
		before.ClusterSummary.Selected != after.ClusterSummary.Selected || before.ClusterSummary.Failed != after.ClusterSummary.Failed {
		return false
	}
	scheduled := prefix + placementv1.ConditionScheduled
	return equality.Semantic.DeepEqual(meta.FindStatusCondition(before.Conditions, scheduled), meta.FindStatusCondition(after.Conditions, scheduled))
}
