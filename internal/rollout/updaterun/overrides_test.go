package updaterun

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byEnvironment is an override for the clusters of an environment, which asks for their zone.
func byEnvironment(environment string) placementv1.OverrideSnapshotObject {
	s := &placementv1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: environment + "-0",
		Labels: map[string]string{placementv1.LabelParentOverride: environment, placementv1.LabelIsLatestSnapshot: "true"}}}
	s.Spec.OverrideSpec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "web"}}
	s.Spec.OverrideSpec.Policy = &placementv1.OverridePolicy{OverrideRules: []placementv1.OverrideRule{{
		ClusterSelector: &placementv1.OverrideClusterSelector{ClusterSelectorTerms: []placementv1.OverrideClusterSelectorTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": environment}}}}},
		JSONPatchOverrides: []placementv1.JSONPatchOverride{{Operator: "add", Path: "/metadata/labels/${MEMBER-CLUSTER-LABEL-KEY-zone}"}},
	}}}
	return s
}

func TestOverridesAreFrozen(t *testing.T) {
	t.Parallel()
	snapshots := []placementv1.OverrideSnapshotObject{byEnvironment("prod")}
	in := PlanInput{
		Fleet: schedule.NewFleet([]schedule.Cluster{
			{Name: "a", Labels: map[string]string{"environment": "prod"}}, {Name: "b", Labels: map[string]string{"environment": "test"}}}),
		Overrides: override.Match(snapshots, placement.Key{Name: "web"}, []placementv1.ResourceIdentifier{{Version: "v1", Kind: "Namespace", Name: "web"}}),
	}
	status := &placementv1.UpdateRunStatus{StagesStatus: []placementv1.StageUpdatingStatus{
		{Clusters: []placementv1.ClusterUpdatingStatus{{ClusterName: "a"}, {ClusterName: "gone"}}}, {Clusters: []placementv1.ClusterUpdatingStatus{{ClusterName: "b"}}}}}
	in.freezeOverrides(status)
	want := []placementv1.ClusterUpdatingStatus{
		{ClusterName: "a", AppliedOverrides: placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{"prod-0"}}}, {ClusterName: "gone"}}
	if diff := cmp.Diff(want, status.StagesStatus[0].Clusters); diff != "" {
		t.Errorf("first stage (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]placementv1.ClusterUpdatingStatus{{ClusterName: "b"}}, status.StagesStatus[1].Clusters); diff != "" {
		t.Errorf("second stage (-want +got):\n%s", diff)
	}
}

// A cluster that lacked a label is overridden again, with the overrides of the plan, as soon as its labels change; and not
// before, nor again and again.
func TestOverriddenAgain(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"environment": "prod"}
	w := &World{Overrides: override.Know([]placementv1.OverrideSnapshotObject{byEnvironment("prod")})}
	b := &placementv1.ClusterResourceBinding{}
	row := &placementv1.ClusterUpdatingStatus{ClusterName: "a", AppliedOverrides: placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{"prod-0"}}}
	pass := func() []placementv1.BindingObject {
		w.Fleet = schedule.NewFleet([]schedule.Cluster{{Name: "a", Labels: labels}})
		s := &step{w: w}
		s.overrideAgain(row, b)
		return s.result.Start
	}
	given, _ := (&step{w: &World{Overrides: w.Overrides, Fleet: schedule.NewFleet([]schedule.Cluster{{Name: "a", Labels: labels}})}}).overridesOf(row)
	given.Give(b)
	if got := pass(); len(got) > 0 {
		t.Errorf("nothing changed, and it is overridden again: %v", got)
	}
	labels = map[string]string{"environment": "prod", "other": "x"}
	if got := pass(); len(got) > 0 {
		t.Errorf("a label changed that nobody asks for, and it is overridden again: %v", got)
	}
	labels = map[string]string{"environment": "prod", "zone": "z"}
	got := pass()
	if len(got) != 1 {
		t.Fatalf("the label is there, and %d bindings are written", len(got))
	}
	if diff := cmp.Diff(map[string]string{"environment": "prod", "zone": "z"}, override.AppliedTo(got[0]).Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// A cluster whose overrides are planned and not known is not started without the labels that they ask for; one whose overrides
// are gone is, and is told so.
func TestUnknownOverridesAreWaitedFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		known  override.Known
		starts int
		labels map[string]string
	}{
		"not known": {starts: 0},
		"known": {override.Know([]placementv1.OverrideSnapshotObject{byEnvironment("prod")}), 1,
			map[string]string{"environment": "prod"}},
		"gone": {override.Know(nil, placement.Key{Name: "prod-0"}), 1, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			row := placementv1.ClusterUpdatingStatus{ClusterName: "a", AppliedOverrides: placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{"prod-0"}}}
			stage := &placementv1.StageUpdatingStatus{Clusters: []placementv1.ClusterUpdatingStatus{row}}
			s := &step{
				w:      &World{Overrides: tc.known, Fleet: schedule.NewFleet([]schedule.Cluster{{Name: "a", Labels: map[string]string{"environment": "prod"}}})},
				run:    &placementv1.ClusterStagedUpdateRun{},
				status: &placementv1.UpdateRunStatus{}, target: "app-0-snapshot", bindings: map[string]placementv1.BindingObject{"a": b},
			}
			progress := s.clusters(&placementv1.StageConfig{}, stage, true, 1)
			if len(s.result.Start) != tc.starts || len(progress.inFlight) != tc.starts || progress.waiting != 1-tc.starts {
				t.Fatalf("%d are started, %+v", len(s.result.Start), progress)
			}
			if started := progressOf(&stage.Clusters[0]); (started != "") != (tc.starts > 0) {
				t.Errorf("the row says %q", started)
			}
			for _, started := range s.result.Start {
				if diff := cmp.Diff(tc.labels, started.BindingSpec().OverrideLabels); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
			}
		})
	}
}
