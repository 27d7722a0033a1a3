package updaterun

import (
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// oneByOne makes a strategy of two stages of a cluster each, with a wait after the first.
func (f *fixture) oneByOne(wait time.Duration) {
	f.create(&placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: placementv1.UpdateStrategySpec{Stages: []placementv1.StageConfig{
		{Name: "first", LabelSelector: environment("first"),
			AfterStageTasks: []placementv1.StageTask{{Type: placementv1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: wait}}}},
		{Name: "second", LabelSelector: environment("second")},
	}}})
}

// TestFleetChangesMidRun is entry 36 of the pain points: a cluster that joins while a run is on its way is left out of it, one
// that leaves is skipped, both are said, and the run is not aborted.
func TestFleetChangesMidRun(t *testing.T) {
	f := newFixture(t, "midrun", map[string]map[string]string{"member1": {"environment": "first"}, "member2": {"environment": "second"}})
	f.oneByOne(time.Second)
	f.hold("member1", "hold")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.awaitStage(r, 0, "True/StageUpdatingStarted")

	f.create(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster("member3"), Labels: map[string]string{"environment": "second"}}})
	f.bind("member3")
	if err := f.Delete(t.Context(), &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster("member2")}}); err != nil {
		t.Fatalf("delete a member: %v", err)
	}
	f.hold("member1", "")
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	var got []string
	for _, stage := range r.Status.StagesStatus {
		for _, c := range stage.Clusters {
			got = append(got, stage.StageName+" "+c.ClusterName+" "+message(c.Conditions, placementv1.ConditionSucceeded))
		}
	}
	want := []string{
		"first " + f.cluster("member1") + " Cluster update completed successfully",
		"second " + f.cluster("member2") + " Skipped: the cluster has left the fleet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if got := message(r.Status.Conditions, placementv1.ConditionSucceeded); got != "All stages are completed successfully; 1 skipped: "+f.cluster("member2")+
		"; 1 cluster chosen after the run was planned is not included: "+f.cluster("member3") {
		t.Errorf("the run says %q", got)
	}
	if got := f.snapshots("member1", "member2", "member3"); got != "0 - -" {
		t.Errorf("the clusters are on snapshots %s", got)
	}
}

// TestHealthOfTheOldRevision is entry 42 of the pain points: on an update, too, a stage waits for the health of the new
// revision, and then its wait, before the next one begins. What is said late of the old revision counts for nothing.
func TestHealthOfTheOldRevision(t *testing.T) {
	f := newFixture(t, "lagging", map[string]map[string]string{"member1": {"environment": "first"}, "member2": {"environment": "second"}})
	f.oneByOne(2 * time.Second)
	f.start()
	f.await(f.run("install", "", placementv1.UpdateRunStateRun), placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	old := f.binding("member1")
	if !meta.IsStatusConditionTrue(old.Status.Conditions, placementv1.ConditionAvailable) {
		t.Fatal("member1 is not available with the first revision")
	}

	f.hold("member1", "silent")
	f.change()
	r := f.run("update", "", placementv1.UpdateRunStateRun)
	f.awaitStage(r, 0, "True/StageUpdatingStarted")
	f.sayLate(old)
	f.mustWait(r, "when the health of the old revision is all that is known")
	f.sayLate(old)
	f.mustWait(r, "when the old revision is said once more to be healthy")

	f.hold("member1", "hold")
	f.mustWait(r, "while the new revision is being applied")
	healthy := metav1.Now().Truncate(time.Second)
	f.hold("member1", "")
	f.awaitStage(r, 0, "False/StageUpdatingWaiting")
	if got := f.snapshots("member1", "member2"); got != "1 0" {
		t.Errorf("while the first stage waits, the clusters are on snapshots %s", got)
	}
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := f.snapshots("member1", "member2"); got != "1 1" {
		t.Errorf("in the end the clusters are on snapshots %s", got)
	}
	second := meta.FindStatusCondition(r.Status.StagesStatus[1].Clusters[0].Conditions, placementv1.ConditionStarted)
	if second == nil || second.LastTransitionTime.Sub(healthy) < 2*time.Second {
		t.Errorf("member2 was started at %v, and member1 was healthy no earlier than %s: it was to stay so for 2 s", second, healthy)
	}
}

// sayLate has a status arrive late that was written of an older revision: it is new to the hub, and says that all was well.
func (f *fixture) sayLate(old *placementv1.ClusterResourceBinding) {
	f.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b := &placementv1.ClusterResourceBinding{}
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(old), b); err != nil {
			return err
		}
		b.Status = *old.Status.DeepCopy()
		for i := range b.Status.Conditions {
			b.Status.Conditions[i].Message += " as of " + b.ResourceVersion
		}
		return f.Status().Update(f.t.Context(), b)
	})
	if err != nil {
		f.t.Fatalf("write a late status of binding %s: %v", old.Name, err)
	}
}

// mustWait checks that a run takes its first cluster for one in flight after all that has happened: stopped, it says what it
// waits for. Then it lets the run go on.
func (f *fixture) mustWait(r *placementv1.ClusterStagedUpdateRun, when string) {
	f.t.Helper()
	f.setState(r, placementv1.UpdateRunStateStop)
	framework.Await(f.t, f, r, "is stopping or stopped", func(r *placementv1.ClusterStagedUpdateRun) bool {
		return strings.Contains(shown(r.Status.Conditions, placementv1.ConditionProgressing), "UpdateRunStop")
	})
	got := shown(r.Status.Conditions, placementv1.ConditionProgressing) + ": " + message(r.Status.Conditions, placementv1.ConditionProgressing)
	if want := "Unknown/UpdateRunStopping: The update run is stopping, waiting for " + f.cluster("member1") + " ("; !strings.HasPrefix(got, want) {
		f.t.Errorf("%s, the run says %q, want %q", when, got, want)
	}
	if got := f.snapshots("member1", "member2"); got != "1 0" {
		f.t.Errorf("%s, the clusters are on snapshots %s", when, got)
	}
	f.setState(r, placementv1.UpdateRunStateRun)
	f.awaitStage(r, 0, "True/StageUpdatingStarted")
}
