package updaterun

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failing makes a fixture of three clusters in one stage, all at once, which have an hour by a clock that stands still, and of
// which so many may fail.
func failing(t *testing.T, name string, mayFail int32) *fixture {
	t.Helper()
	all := map[string]string{"environment": "all"}
	f := newFixture(t, name, map[string]map[string]string{"member1": all, "member2": all, "member3": all})
	f.clock = clocktesting.NewFakePassiveClock(time.Now())
	f.create(&placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: placementv1.UpdateStrategySpec{Stages: []placementv1.StageConfig{{
		Name: "all", LabelSelector: environment("all"), MaxConcurrency: ptr.To(intstr.FromString("100%")),
		MaxFailures: ptr.To(intstr.FromInt32(mayFail)), ProgressDeadline: &metav1.Duration{Duration: time.Hour},
	}}}})
	return f
}

// awaitDeadline waits until some clusters are available, then lets two hours pass and another cluster say something, so that
// the hub looks: its real timer is the hour's.
func (f *fixture) awaitDeadline(failing string, others ...string) {
	f.t.Helper()
	for _, cluster := range others {
		framework.Await(f.t, f, f.binding(cluster), "is available", func(b *placementv1.ClusterResourceBinding) bool {
			return shown(b.Status.Conditions, placementv1.ConditionAvailable) == "True/AllWorkAreAvailable"
		})
	}
	framework.Await(f.t, f, f.binding(failing), "has answered", func(b *placementv1.ClusterResourceBinding) bool {
		return shown(b.Status.Conditions, placementv1.ConditionApplied) != ""
	})
	clock, ok := f.clock.(*clocktesting.FakePassiveClock)
	if !ok {
		f.t.Fatalf("the clock is a %T", f.clock)
	}
	clock.SetTime(clock.Now().Add(2 * time.Hour))
	poke := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"poked":"yes"}}}`))
	if err := f.Patch(f.t.Context(), f.binding(failing), poke); err != nil {
		f.t.Fatalf("poke the binding of %s: %v", failing, err)
	}
}

// ask asks a run something about a cluster.
func (f *fixture) ask(r *placementv1.ClusterStagedUpdateRun, action placementv1.ClusterActionType, cluster string) {
	f.t.Helper()
	before := r.DeepCopy()
	r.Spec.ClusterActions = append(r.Spec.ClusterActions, placementv1.ClusterAction{Cluster: f.cluster(cluster), Action: action, Reason: "known", RequestedBy: "alice"})
	if err := f.Patch(f.t.Context(), r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		f.t.Fatalf("ask run %s to %s %s: %v", r.Name, action, cluster, err)
	}
}

// awaitAnswer waits until the last thing that was asked is answered.
func (f *fixture) awaitAnswer(r *placementv1.ClusterStagedUpdateRun) placementv1.ClusterActionStatus {
	f.t.Helper()
	framework.Await(f.t, f, r, "answers", func(r *placementv1.ClusterStagedUpdateRun) bool {
		return len(r.Status.ClusterActions) == len(r.Spec.ClusterActions)
	})
	return r.Status.ClusterActions[len(r.Status.ClusterActions)-1]
}

// row is how a cluster's Succeeded is shown.
func (f *fixture) row(r *placementv1.ClusterStagedUpdateRun, cluster string) string {
	for _, c := range r.Status.StagesStatus[0].Clusters {
		if c.ClusterName == f.cluster(cluster) {
			return shown(c.Conditions, placementv1.ConditionSucceeded)
		}
	}
	return "missing"
}

// TestFailedClusterWithinMaxFailures has one cluster fail that may.
func TestFailedClusterWithinMaxFailures(t *testing.T) {
	f := failing(t, "mayfail", 1)
	f.hold("member1", "refuse")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.awaitDeadline("member1", "member2", "member3")
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := f.row(r, "member1"); got != "False/ClusterUpdatingFailed" {
		t.Errorf("the failed cluster is %s", got)
	}
	if got := r.Status.StagesStatus[0].ClusterCounts; got.Failed != 1 || got.Succeeded != 2 || got.Updating != 0 {
		t.Errorf("counts: %+v", got)
	}
	if got := message(r.Status.Conditions, placementv1.ConditionSucceeded); !strings.Contains(got, f.cluster("member1")) {
		t.Errorf("the run does not name what failed: %q", got)
	}
}

// TestEachFailedClusterIsTold has two clusters fail at the same time: there is an event of each.
func TestEachFailedClusterIsTold(t *testing.T) {
	f := failing(t, "told", 2)
	f.hold("member1", "refuse")
	f.hold("member2", "refuse")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	framework.Await(t, f, f.binding("member1"), "has answered", func(b *placementv1.ClusterResourceBinding) bool {
		return shown(b.Status.Conditions, placementv1.ConditionApplied) != ""
	})
	f.awaitDeadline("member2", "member3")
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	want := []string{f.cluster("member1"), f.cluster("member2")}
	gomega.NewWithT(t).Eventually(func() ([]string, error) {
		var list eventsv1.EventList
		err := f.List(t.Context(), &list)
		var told []string
		for _, e := range list.Items {
			if e.Regarding.UID == r.UID && e.Reason == placementv1.ReasonClusterUpdatingFailed && e.Related != nil &&
				strings.HasPrefix(e.Note, "Cluster "+e.Related.Name+" has failed: ") {
				told = append(told, e.Related.Name)
			}
		}
		return told, err
	}, framework.Patience).Should(gomega.ConsistOf(want))
}

// TestRetryOnlyFailedClusters is entry 38 of the pain points: only what failed is done again, on the very same snapshot,
// though the placement selects something else by now.
func TestRetryOnlyFailedClusters(t *testing.T) {
	f := failing(t, "retry", 0)
	f.hold("member1", "hold")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.awaitDeadline("member1", "member2", "member3")
	f.await(r, placementv1.ConditionSucceeded, "False/UpdateRunFailed")
	if got := message(r.Status.Conditions, placementv1.ConditionSucceeded); !strings.Contains(got, f.cluster("member1")) || !strings.Contains(got, "kubectl amc run retry "+r.Name) {
		t.Errorf("the run does not say what failed and what to do: %q", got)
	}
	f.change()
	others := []string{f.binding("member2").ResourceVersion, f.binding("member3").ResourceVersion}
	f.hold("member1", "")
	f.ask(r, placementv1.ClusterActionRetry, "member1")
	if got := f.awaitAnswer(r); got.Result != placementv1.ClusterActionAccepted || got.RequestedBy != "alice" || got.Reason != "known" {
		t.Errorf("the answer is %+v", got)
	}
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := f.snapshots("member1", "member2", "member3"); got != "0 0 0" {
		t.Errorf("the clusters are on the snapshots %s, want the run's own", got)
	}
	if now := []string{f.binding("member2").ResourceVersion, f.binding("member3").ResourceVersion}; now[0] != others[0] || now[1] != others[1] {
		t.Errorf("clusters that were done were written again")
	}
	f.ask(r, placementv1.ClusterActionRetry, "member2")
	if got := f.awaitAnswer(r); got.Result != placementv1.ClusterActionRefused || !strings.Contains(got.Message, "nothing to retry") {
		t.Errorf("retrying what is done is answered by %+v", got)
	}
}

// TestSkip gives up one cluster that has failed and one that was not started.
func TestSkip(t *testing.T) {
	f := failing(t, "skip", 0)
	f.hold("member1", "refuse")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateInitialize)
	f.await(r, placementv1.ConditionInitialized, "True/UpdateRunInitializedSuccessfully")
	f.ask(r, placementv1.ClusterActionSkip, "member3")
	f.setState(r, placementv1.UpdateRunStateRun)
	f.awaitDeadline("member1", "member2")
	f.await(r, placementv1.ConditionSucceeded, "False/UpdateRunFailed")
	f.ask(r, placementv1.ClusterActionSkip, "member1")
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := f.snapshots("member1", "member2", "member3"); got != "0 0 -" {
		t.Errorf("the clusters are on the snapshots %s", got)
	}
	for _, cluster := range []string{"member1", "member3"} {
		if got := f.row(r, cluster); got != "Unknown/ClusterUpdatingSkipped" {
			t.Errorf("%s is %s", cluster, got)
		}
	}
}

// TestCancel is entry 47 of the pain points: a cancelled run has ended, is not resumed, and another run is free to go.
func TestCancel(t *testing.T) {
	f := failing(t, "cancel", 0)
	f.hold("member1", "hold")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.await(r, placementv1.ConditionProgressing, "True/UpdateRunProgressing")
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"cancel": map[string]any{"reason": "wrong image", "requestedBy": "bob"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Patch(t.Context(), r, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatalf("cancel the run: %v", err)
	}
	f.await(r, placementv1.ConditionSucceeded, "False/UpdateRunCancelled")
	if by := r.Status.Cancelled; by == nil || by.RequestedBy != "bob" || by.Reason != "wrong image" || by.Time.IsZero() {
		t.Errorf("the run does not say who cancelled it: %+v", by)
	}
	resume := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"state":"Stop"}}`))
	if err := f.Patch(t.Context(), r, resume); err == nil || !strings.Contains(err.Error(), "the run was cancelled and cannot be resumed") {
		t.Errorf("a cancelled run's state was changed: %v", err)
	}
	f.hold("member1", "")
	f.change()
	next := f.run("next", "", placementv1.UpdateRunStateRun)
	f.await(next, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
}
