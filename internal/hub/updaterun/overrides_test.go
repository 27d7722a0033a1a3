package updaterun

import (
	"fmt"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/test/framework"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// record makes the snapshot of an override as it is, as the hub does.
func (f *fixture) record(o *placementv1.ClusterResourceOverride, index int) {
	f.t.Helper()
	s, ok := o.NewSnapshot().(*placementv1.ClusterResourceOverrideSnapshot)
	if !ok {
		f.t.Fatal("another kind of snapshot")
	}
	s.Name = override.SnapshotName(o.Name, index)
	s.Labels = map[string]string{placementv1.LabelParentOverride: o.Name, placementv1.LabelIsLatestSnapshot: "true"}
	f.create(s)
	f.t.Cleanup(func() {
		if err := f.Delete(framework.CleanupContext(f.t), s); client.IgnoreNotFound(err) != nil {
			f.t.Error(err)
		}
	})
}

// planned are the overrides of the clusters of a stage, in the run's status.
func planned(r *placementv1.ClusterStagedUpdateRun, stage int) string {
	var all []string
	for i := range r.Status.StagesStatus[stage].Clusters {
		all = append(all, fmt.Sprint(r.Status.StagesStatus[stage].Clusters[i].ClusterResourceOverrideSnapshots))
	}
	return fmt.Sprint(all)
}

// A run gives its clusters the overrides as they were when it was planned, whatever becomes of them on the way; what is edited
// meanwhile comes with the next run. An override of which there is no snapshot yet is waited for.
func TestOverridesTravelWithRuns(t *testing.T) {
	f := newFixture(t, "over", seedClusters())
	f.start()
	f.strategy(time.Second)
	o := &placementv1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: f.name}}
	o.Spec.Placement = &placementv1.PlacementRef{Name: f.name}
	o.Spec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "test"}}
	o.Spec.Policy = &placementv1.OverridePolicy{OverrideRules: []placementv1.OverrideRule{{
		ClusterSelector: &placementv1.OverrideClusterSelector{ClusterSelectorTerms: []placementv1.OverrideClusterSelectorTerm{{LabelSelector: environment("canary")}}},
		JSONPatchOverrides: []placementv1.JSONPatchOverride{
			{Operator: placementv1.JSONPatchOverrideOpAdd, Path: "/metadata/labels", Value: &apiextensionsv1.JSON{Raw: []byte(`{"v":"1"}`)}}},
	}}}
	f.create(o)
	t.Cleanup(func() {
		if err := f.Delete(framework.CleanupContext(t), o); err != nil {
			t.Error(err)
		}
	})
	first := f.run("first", "", placementv1.UpdateRunStateRun)
	f.await(first, placementv1.ConditionInitialized, "Unknown/UpdateRunInitializationPending")
	f.record(o, 0)
	f.awaitStage(first, 1, "False/StageUpdatingWaiting")
	list := "[" + o.Name + "-0]"
	if got, want := planned(first, 0)+planned(first, 1), "[[]]["+list+" "+list+"]"; got != want {
		t.Errorf("planned %s, want %s", got, want)
	}
	o.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Value.Raw = []byte(`{"v":"2"}`)
	if err := f.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	f.record(o, 1)
	f.approve(first.Name + "-before-canary")
	f.await(first, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := fmt.Sprint(f.binding("member2").Spec.ClusterResourceOverrideSnapshots, f.binding("member1").Spec.ClusterResourceOverrideSnapshots); got != "[] "+list {
		t.Errorf("after the first run: %s", got)
	}
	if got := fmt.Sprint(f.binding("member1").Spec.OverrideLabels); got != "map[environment:canary]" {
		t.Errorf("labels that the override asks for: %s", got)
	}
	second := f.run("second", "", placementv1.UpdateRunStateRun)
	f.approve(second.Name + "-before-canary")
	f.await(second, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got, want := fmt.Sprint(f.binding("member1").Spec.ClusterResourceOverrideSnapshots), "["+o.Name+"-1]"; got != want {
		t.Errorf("after the second run: %s, want %s", got, want)
	}
}
