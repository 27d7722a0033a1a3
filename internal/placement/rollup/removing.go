package rollup

import (
	"fmt"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Removing is the status of a deleted placement that waits for clusters to remove what was placed there. trouble says why
// a cluster may take long. All that was said of the placement before is not true any more, and is gone.
func Removing(kinds *placement.Kinds, p placementv1.PlacementObject, clusters []string, trouble func(string) string, now time.Time) placementv1.PlacementStatus {
	const shown = 5
	does := "remove"
	if p.PlacementSpec().Strategy.DeleteStrategy.Abandons() {
		does = "let go of"
	}
	var waiting []string
	for i, cluster := range clusters {
		if i == shown {
			waiting = append(waiting, fmt.Sprintf("and %d more", len(clusters)-shown))
			break
		}
		if why := trouble(cluster); why != "" {
			cluster += " (" + why + ")"
		}
		waiting = append(waiting, cluster)
	}
	r := &rollup{Input: Input{Kinds: kinds, Placement: p, Now: now}, generation: p.GetGeneration()}
	c := r.finish(metav1.Condition{
		Type: placementv1.ConditionRemoved, Status: metav1.ConditionFalse, Reason: placementv1.ReasonRemovalInProgress,
		Message: fmt.Sprintf("Waiting for %d cluster(s) to %s what was placed there: %s", len(clusters), does, strings.Join(waiting, ", ")),
	})
	return placementv1.PlacementStatus{
		ClusterSummary: &placementv1.ClusterSummary{
			Selected: int32(len(clusters)), //nolint:gosec // a fleet has fewer than 2^31 clusters
			Omitted:  int32(len(clusters)), //nolint:gosec // see above
		},
		Conditions: []metav1.Condition{c},
	}
}
