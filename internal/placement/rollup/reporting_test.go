package rollup_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"k8s.io/apimachinery/pkg/api/meta"
)

// TestReportOnly: a placement that only reports is complete when all clusters have reported; one whose bindings still apply, by
// the strategy that it had before, is not.
func TestReportOnly(t *testing.T) {
	report := &placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff}
	for name, tc := range map[string]struct {
		bindings *placementv1.ApplyStrategy
		want     string
	}{
		"all have reported": {report, ""},
		"all still apply":   {nil, placementv1.ReasonRolloutNotStartedYet},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(placementv1.RollingUpdateRolloutStrategyType)
			in.Placement.PlacementSpec().Strategy.ApplyStrategy = report
			in.Latest = &rollup.Revision{Index: 0}
			for _, cluster := range []string{"a", "b", "c"} {
				in.Policy.PolicySnapshotStatus().ClusterDecisions = append(in.Policy.PolicySnapshotStatus().ClusterDecisions,
					placementv1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "picked"})
				b := binding(cluster, "on0", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
					"WorkSynchronized=True/AllWorkSynced", "DiffReported=True/AllWorkHaveDiffReported")
				b.BindingSpec().ApplyStrategy = tc.bindings
				in.Bindings = append(in.Bindings, b)
			}
			in.Policy.PolicySnapshotStatus().SelectedCount = 3
			status := rollup.Status(in)
			c := meta.FindStatusCondition(status.Conditions, "ClusterResourcePlacementDiffReported")
			if done := c != nil && c.Status == "True"; done != (tc.want == "") {
				t.Errorf("DiffReported is %+v", c)
			}
			started := meta.FindStatusCondition(status.Conditions, "ClusterResourcePlacementRolloutStarted")
			if tc.want != "" && (started == nil || started.Reason != tc.want) {
				t.Errorf("RolloutStarted is %+v, want %s", started, tc.want)
			}
		})
	}
}
