package e2e

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rowOf is a cluster's row in a placement's status; an empty one where there is none.
func rowOf(p *placementv1.ClusterResourcePlacement, cluster string) placementv1.PerClusterPlacementStatus {
	for i := range p.Status.PlacementStatuses {
		if row := p.Status.PlacementStatuses[i]; row.ClusterName == cluster {
			return row
		}
	}
	return placementv1.PerClusterPlacementStatus{}
}

// setApplyStrategy changes how a placement's objects are brought into the members.
func setApplyStrategy(t testing.TB, hub client.Client, p *placementv1.ClusterResourcePlacement, strategy placementv1.ApplyStrategy) {
	t.Helper()
	before := p.DeepCopy()
	p.Spec.Strategy.ApplyStrategy = &strategy
	if err := hub.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatalf("change the apply strategy: %v", err)
	}
}

// TestReportDiff goes from a placement that only reports to one that applies, and back.
func TestReportDiff(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const ns = "report-diff"
	create(t, hub, namespace(ns))
	create(t, hub, configMap(ns, "test-cm", "hub"))
	create(t, m[0], namespace(ns))
	create(t, m[0], configMap(ns, "test-cm", "member"))
	p := placeNamespace(ns, ns, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.Strategy.ApplyStrategy = &placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff}
	placement := create(t, hub, p)
	framework.Await(t, hub, placement, "has reported", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementDiffReported") == "True/DiffReportingCompleted"
	})
	if placement.Generation != 1 || condition(placement.Status.Conditions, "ClusterResourcePlacementApplied") != "" {
		t.Errorf("generation %d, Applied is %q", placement.Generation, condition(placement.Status.Conditions, "ClusterResourcePlacementApplied"))
	}
	row := rowOf(placement, "member1")
	var got []placementv1.PatchDetail
	for _, d := range row.DiffedPlacements {
		if d.Kind == "ConfigMap" {
			got = d.ObservedDiffs
		}
	}
	if diff := cmp.Diff([]placementv1.PatchDetail{{Path: "/data/key", ValueInMember: "member", ValueInHub: "hub"}}, got); diff != "" {
		t.Errorf("what differs in member1 (-want +got):\n%s", diff)
	}
	if got := len(rowOf(placement, "member2").DiffedPlacements); got != 2 {
		t.Errorf("%d objects differ in member2, where there is neither the namespace nor what is in it", got)
	}
	if got := values(t, m, ns); got != [3]string{"member", "", ""} {
		t.Errorf("report-only, but the members have %q", got)
	}

	setApplyStrategy(t, hub, placement, placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeClientSideApply})
	for i := range m {
		awaitValue(t, m[i], ns, "test-cm", "hub")
	}
	framework.Await(t, hub, placement, "is available", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementAvailable") == "True/ResourceAvailable" &&
			condition(p.Status.Conditions, "ClusterResourcePlacementDiffReported") == ""
	})
	setApplyStrategy(t, hub, placement, placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff})
	framework.Await(t, hub, placement, "reports again", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementDiffReported") == "True/DiffReportingCompleted"
	})
	drift := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"drifted"}}`))
	if err := m[1].Patch(t.Context(), configMap(ns, "test-cm", ""), drift); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, hub, placement, "reports what changed in member2", func(p *placementv1.ClusterResourcePlacement) bool {
		diffed := rowOf(p, "member2").DiffedPlacements
		return len(diffed) == 1 && cmp.Equal(diffed[0].ObservedDiffs, []placementv1.PatchDetail{{Path: "/data/key", ValueInMember: "drifted", ValueInHub: "hub"}})
	})
	if got := valueOf(t, m[1], ns, "test-cm"); got != "drifted" {
		t.Errorf("report-only, but the member has %q", got)
	}
	if err := hub.Delete(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, hub, placement)
	framework.AwaitGone(t, m[1], &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
}
