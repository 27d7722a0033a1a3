package override_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The snapshot of a deleted override that an unfinished run names stays until the run ends, and no longer.
func TestSnapshotOutlivesRun(t *testing.T) {
	f := newFixture(t, placementv1.ExternalRolloutStrategyType)
	o := f.overrideAll("kept", change(everywhere(), add, "/metadata/labels", `{"a":"b"}`))
	s := &placementv1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: o.Name + "-0"}}
	framework.Await(t, f, s, "is made", func(*placementv1.ClusterResourceOverrideSnapshot) bool { return true })
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	run.Spec.PlacementName, run.Spec.StagedUpdateStrategyName = f.Name, f.Name
	f.Make(run)
	t.Cleanup(func() { f.Erase(run) })
	run.Status.StagesStatus = []placementv1.StageUpdatingStatus{{StageName: "all", Clusters: []placementv1.ClusterUpdatingStatus{
		{ClusterName: "a", AppliedOverrides: placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{s.Name}}}}}}
	if err := f.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, f, o)
	framework.Await(t, f, s, "stays", func(s *placementv1.ClusterResourceOverrideSnapshot) bool { return s.DeletionTimestamp.IsZero() })
	run.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionSucceeded, Status: metav1.ConditionTrue,
		Reason: placementv1.ReasonUpdateRunSucceeded, LastTransitionTime: metav1.Now()}}
	if err := f.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, f, s)
}
