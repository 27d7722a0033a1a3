package rollup_test

import (
	"fmt"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

// What was asked for and not found has a row each, without a cluster, as far as reasons are known.
func TestUnfilled(t *testing.T) {
	t.Parallel()
	pickN := &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](4)}
	tests := map[string]struct {
		policy *placementv1.PlacementPolicy
		change func(*rollup.Input)
		want   []string
	}{
		"PickN": {policy: pickN, want: []string{"/ScheduleFailed: full", "/ScheduleFailed: far"}},
		"PickFixed": {
			policy: &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType, ClusterNames: []string{"a", "b", "b"}},
			want:   []string{"/ScheduleFailed: full"},
		},
		"PickAll": {},
		"fulfilled": {policy: pickN, change: func(in *rollup.Input) {
			in.Policy.PolicySnapshotStatus().Conditions[0].Status = "True"
		}},
		"said of another generation": {policy: pickN, change: func(in *rollup.Input) { in.Policy.PolicySnapshotStatus().ObservedCRPGeneration = 2 }},
		"said of no policy":          {policy: pickN, change: func(in *rollup.Input) { in.Policy = nil }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(external)
			in.Placement.PlacementSpec().Policy = tc.policy
			in.Bindings = []placementv1.BindingObject{binding("a", "on1", "done")}
			status := in.Policy.PolicySnapshotStatus()
			status.SelectedCount = 1
			status.ClusterDecisions = []placementv1.ClusterDecision{{ClusterName: "a", Selected: true, Reason: "picked"},
				{ClusterName: "c", Reason: "full"}, {ClusterName: "d", Reason: "far"}}
			status.Conditions[0].Status, status.Conditions[0].Reason = "False", placementv1.ReasonSchedulingPolicyUnfulfilled
			if tc.change != nil {
				tc.change(&in)
			}
			got := rollup.Status(in)
			var rows []string
			for _, row := range got.PlacementStatuses {
				if c := row.Conditions[0]; c.Status == "False" {
					rows = append(rows, fmt.Sprint(row.ClusterName, "/", c.Reason, ": ", c.Message))
				}
			}
			if diff := cmp.Diff(tc.want, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if len(got.PlacementStatuses) != 1+len(tc.want) || got.PlacementStatuses[0].ClusterName != "a" || got.ClusterSummary.Omitted != 0 {
				t.Errorf("%d rows, summary %+v", len(got.PlacementStatuses), got.ClusterSummary)
			}
		})
	}
}
