package rollup_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"github.com/google/go-cmp/cmp"
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

// TestReportOnlyOfWhoTookPart is entry 34 of the pain points: a cluster that was never part of a run has nothing placed, and is
// not said to differ; of one that was, what somebody edited is listed with its path, the old value and the new one.
func TestReportOnlyOfWhoTookPart(t *testing.T) {
	report := &placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff}
	reported := []string{"on0", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified", "WorkSynchronized=True/AllWorkSynced", "DiffReported=True/AllWorkHaveDiffReported"}
	in := input(external)
	in.Placement.PlacementSpec().Strategy.ApplyStrategy = report
	edited, same := binding("a", reported...), binding("b", reported...)
	edited.BindingStatus().DiffedPlacements = []placementv1.DiffedResourcePlacement{{
		ResourceIdentifier: placementv1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "settings"},
		ObservedDiffs:      []placementv1.PatchDetail{{Path: "/metadata/labels/tier", ValueInMember: "gold", ValueInHub: "free"}},
	}}
	in.Bindings = []placementv1.BindingObject{edited, same, binding("new", "scheduled")}
	for _, b := range in.Bindings[:2] {
		b.BindingSpec().ApplyStrategy = report
	}
	status := rollup.Status(in)
	got := map[string][]placementv1.PatchDetail{}
	for _, row := range status.PlacementStatuses {
		got[row.ClusterName] = nil
		for _, d := range row.DiffedPlacements {
			got[row.ClusterName] = append(got[row.ClusterName], d.ObservedDiffs...)
		}
		started := meta.FindStatusCondition(row.Conditions, placementv1.ConditionRolloutStarted)
		if never := row.ClusterName == "new"; started == nil || (started.Reason == placementv1.ReasonRolloutControlledByExternalController) != never ||
			(meta.FindStatusCondition(row.Conditions, placementv1.ConditionDiffReported) == nil) != never {
			t.Errorf("%s: %+v", row.ClusterName, row.Conditions)
		}
	}
	want := map[string][]placementv1.PatchDetail{"a": {{Path: "/metadata/labels/tier", ValueInMember: "gold", ValueInHub: "free"}}, "b": nil, "new": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
}
