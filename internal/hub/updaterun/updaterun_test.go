package updaterun

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestSeedRun is the journey of the first seed, with a member that refuses on the way, a stop, and the way back.
func TestSeedRun(t *testing.T) {
	f := newFixture(t, "seed", seedClusters())
	f.start()
	first := f.run("first", "", placementv1.UpdateRunStateRun)
	f.await(first, placementv1.ConditionInitialized, "Unknown/UpdateRunInitializationPending")
	if got := message(first.Status.Conditions, placementv1.ConditionInitialized); !strings.Contains(got, fmt.Sprintf("ClusterStagedUpdateStrategy %q does not exist", f.name)) {
		t.Errorf("what it waits for: %s", got)
	}
	f.strategy(2 * time.Second)
	f.awaitStage(first, 1, "False/StageUpdatingWaiting")
	if got := f.snapshots("member1", "member2", "member3"); got != "- 0 -" {
		t.Errorf("before the approval: %s", got)
	}
	checkRequest(t, f, first)
	f.approve(first.Name + "-before-canary")
	f.await(first, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := f.snapshots("member1", "member2", "member3"); got != "0 0 0" {
		t.Errorf("after the first run: %s", got)
	}

	f.change()
	second := f.run("second", "", placementv1.UpdateRunStateInitialize)
	f.await(second, placementv1.ConditionInitialized, "True/UpdateRunInitializedSuccessfully")
	if got := message(second.Status.Conditions, placementv1.ConditionInitialized); got != "ClusterStagedUpdateRun initialized successfully" {
		t.Errorf("Initialized: %s", got)
	}
	f.setState(second, placementv1.UpdateRunStateRun)
	f.hold("member3", "refuse")
	f.approve(second.Name + "-before-canary")
	f.await(second, placementv1.ConditionProgressing, "False/UpdateRunStuck")
	if got := message(second.Status.Conditions, placementv1.ConditionProgressing); !strings.Contains(got, f.cluster("member3")) {
		t.Errorf("stuck on: %s", got)
	}
	f.setState(second, placementv1.UpdateRunStateStop)
	f.awaitStage(second, 1, "Unknown/StageUpdatingStopping")
	if got := shown(second.Status.Conditions, placementv1.ConditionProgressing) + message(second.Status.Conditions, placementv1.ConditionProgressing); !strings.HasPrefix(got, "Unknown/UpdateRunStopping") || !strings.Contains(got, f.cluster("member3")) {
		t.Errorf("while stopping: %s", got)
	}
	f.hold("member3", "")
	f.await(second, placementv1.ConditionProgressing, "False/UpdateRunStopped")
	if got := f.snapshots("member1", "member2", "member3"); got != "0 1 1" {
		t.Errorf("stopped: %s", got)
	}
	f.setState(second, placementv1.UpdateRunStateRun)
	f.await(second, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	checkSeedStatus(t, f, second)

	back := f.run("back", "0", placementv1.UpdateRunStateRun)
	f.approve(back.Name + "-before-canary")
	f.await(back, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := f.snapshots("member1", "member2", "member3"); got != "0 0 0" {
		t.Errorf("after rolling back: %s", got)
	}
	checkEvents(t, f, second)
	for _, r := range []*placementv1.ClusterStagedUpdateRun{first, second, back} {
		if err := f.Delete(t.Context(), r); err != nil {
			t.Fatalf("delete run %s: %v", r.Name, err)
		}
		framework.AwaitGone(t, f, r)
		framework.AwaitGone(t, f, &placementv1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: r.Name + "-before-canary"}})
	}
}

// checkRequest checks that an approval request says whose it is.
func checkRequest(t *testing.T, f *fixture, r *placementv1.ClusterStagedUpdateRun) {
	t.Helper()
	request := &placementv1.ClusterApprovalRequest{}
	if err := f.Get(t.Context(), client.ObjectKey{Name: r.Name + "-before-canary"}, request); err != nil {
		t.Fatalf("read the approval request: %v", err)
	}
	wantLabels := map[string]string{
		"kubernetes-fleet.io/targetUpdateRun": r.Name, "kubernetes-fleet.io/targetUpdatingStage": "canary",
		"kubernetes-fleet.io/taskType": "beforeStage", "kubernetes-fleet.io/isLatestUpdateRunApproval": "true",
	}
	wantOwners := []metav1.OwnerReference{{APIVersion: "placement.kubernetes-fleet.io/v1", Kind: "ClusterStagedUpdateRun", Name: r.Name, UID: r.UID}}
	if diff := cmp.Diff(wantLabels, request.Labels) + cmp.Diff(wantOwners, request.OwnerReferences); diff != "" {
		t.Errorf("the approval request (-want +got):\n%s", diff)
	}
}

// checkSeedStatus compares a finished run with what the seed prints.
func checkSeedStatus(t *testing.T, f *fixture, r *placementv1.ClusterStagedUpdateRun) {
	t.Helper()
	var got []string
	add := func(what string, conditions []metav1.Condition) {
		for _, c := range conditions {
			if c.ObservedGeneration != r.Generation {
				t.Errorf("%s %s is of generation %d, the run of %d", what, c.Type, c.ObservedGeneration, r.Generation)
			}
			got = append(got, fmt.Sprintf("%s %s=%s/%s: %s", what, c.Type, c.Status, c.Reason, c.Message))
		}
	}
	add("run", r.Status.Conditions)
	for _, stage := range r.Status.StagesStatus {
		add(stage.StageName, stage.Conditions)
		for _, task := range slices.Concat(stage.BeforeStageTaskStatus, stage.AfterStageTaskStatus) {
			add(stage.StageName+" "+string(task.Type)+" "+task.ApprovalRequestName, task.Conditions)
		}
		for _, c := range stage.Clusters {
			add(stage.StageName+" "+c.ClusterName, c.Conditions)
		}
		if stage.StartTime == nil || stage.EndTime == nil {
			t.Errorf("stage %s has no start or end time", stage.StageName)
		}
	}
	want := []string{
		"run Initialized=True/UpdateRunInitializedSuccessfully: ClusterStagedUpdateRun initialized successfully",
		"run Progressing=False/UpdateRunSucceeded: All stages are completed",
		"run Succeeded=True/UpdateRunSucceeded: All stages are completed successfully",
		"staging Progressing=False/StageUpdatingSucceeded: All clusters in the stage are updated and after-stage tasks are completed",
		"staging Succeeded=True/StageUpdatingSucceeded: Stage update completed successfully",
		"staging TimedWait  WaitTimeElapsed=True/StageTaskWaitTimeElapsed: Wait time elapsed",
		"staging SEED-member2 Started=True/ClusterUpdatingStarted: Cluster update started",
		"staging SEED-member2 Succeeded=True/ClusterUpdatingSucceeded: Cluster update completed successfully",
		"canary Progressing=False/StageUpdatingSucceeded: All clusters in the stage are updated and after-stage tasks are completed",
		"canary Succeeded=True/StageUpdatingSucceeded: Stage update completed successfully",
		"canary Approval SEED-second-before-canary ApprovalRequestCreated=True/StageTaskApprovalRequestCreated: ClusterApprovalRequest is created",
		"canary Approval SEED-second-before-canary ApprovalRequestApproved=True/StageTaskApprovalRequestApproved: ClusterApprovalRequest is approved",
		"canary SEED-member3 Started=True/ClusterUpdatingStarted: Cluster update started",
		"canary SEED-member3 Succeeded=True/ClusterUpdatingSucceeded: Cluster update completed successfully",
		"canary SEED-member1 Started=True/ClusterUpdatingStarted: Cluster update started",
		"canary SEED-member1 Succeeded=True/ClusterUpdatingSucceeded: Cluster update completed successfully",
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "SEED", f.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the run's status (-want +got):\n%s", diff)
	}
}

// checkEvents looks for the events of a run that was stuck and stopped.
func checkEvents(t *testing.T, f *fixture, r *placementv1.ClusterStagedUpdateRun) {
	t.Helper()
	gomega.NewWithT(t).Eventually(func() []string { return eventsOf(t, f, r) }, framework.Patience).Should(gomega.ContainElements("Normal UpdateRunInitializedSuccessfully", "Normal UpdateRunProgressing",
		"Normal StageUpdatingSucceeded", "Normal UpdateRunWaiting", "Normal StageTaskApprovalRequestApproved", "Warning UpdateRunStuck",
		"Normal UpdateRunStopped", "Normal UpdateRunSucceeded"))
}

// TestLaterRunTakesOver rolls back while a run waits for approval, and while another is stopped.
func TestLaterRunTakesOver(t *testing.T) {
	f := newFixture(t, "takeover", seedClusters())
	f.strategy(time.Second)
	f.start()
	waiting := f.run("waiting", "", placementv1.UpdateRunStateRun)
	f.awaitStage(waiting, 1, "False/StageUpdatingWaiting")
	f.change()
	stopped := f.run("stopped", "", placementv1.UpdateRunStateRun)
	f.await(waiting, placementv1.ConditionSucceeded, "False/UpdateRunFailed")
	if got := message(waiting.Status.Conditions, placementv1.ConditionSucceeded); !strings.Contains(got, fmt.Sprintf("update run %q", stopped.Name)) {
		t.Errorf("the failure does not name the later run: %s", got)
	}
	request := &placementv1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: waiting.Name + "-before-canary"}}
	framework.Await(t, f, request, "is closed", func(r *placementv1.ClusterApprovalRequest) bool {
		return shown(r.Status.Conditions, placementv1.ConditionApprovalAccepted) == "False/ApprovalRequestClosed"
	})
	f.setState(stopped, placementv1.UpdateRunStateStop)
	f.await(stopped, placementv1.ConditionProgressing, "False/UpdateRunStopped")

	refused := f.run("refused", "7", placementv1.UpdateRunStateRun)
	f.await(refused, placementv1.ConditionInitialized, "False/UpdateRunInitializedFailed")
	if got := message(refused.Status.Conditions, placementv1.ConditionInitialized); !strings.Contains(got, "no resource snapshot with index 7") {
		t.Errorf("unknown snapshot: %s", got)
	}
	back := f.run("back", "0", placementv1.UpdateRunStateRun)
	f.await(stopped, placementv1.ConditionSucceeded, "False/UpdateRunFailed")
	f.approve(back.Name + "-before-canary")
	f.await(back, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	if got := f.snapshots("member1", "member2", "member3"); got != "0 0 0" {
		t.Errorf("in the end: %s", got)
	}
}

// TestRestart stops the hub at several points of a run and starts it again.
func TestRestart(t *testing.T) {
	f := newFixture(t, "restart", seedClusters())
	f.strategy(time.Second)
	f.hold("member2", "hold")
	stop := f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.awaitStage(r, 0, "True/StageUpdatingStarted")
	stop()
	f.hold("member2", "") // while nobody looks
	stop = f.start()
	f.awaitStage(r, 1, "False/StageUpdatingWaiting")
	stop()
	f.approve(r.Name + "-before-canary")
	f.hold("member3", "hold")
	stop = f.start()
	f.awaitStage(r, 1, "True/StageUpdatingStarted")
	stop()
	f.setState(r, placementv1.UpdateRunStateStop)
	f.hold("member3", "")
	f.start()
	f.await(r, placementv1.ConditionProgressing, "False/UpdateRunStopped")
	if got := f.snapshots("member1", "member2", "member3"); got != "- 0 0" {
		t.Errorf("stopped: %s", got)
	}
	f.setState(r, placementv1.UpdateRunStateRun)
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
}

// TestClustersComeAndGo has one cluster leave in flight, one be unscheduled before its turn, and one cleared at the end.
func TestClustersComeAndGo(t *testing.T) {
	clusters := map[string]map[string]string{"a": nil, "b": nil, "c": nil, "d": nil}
	f := newFixture(t, "leaving", clusters)
	f.create(&placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: placementv1.UpdateStrategySpec{
		Stages: []placementv1.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}}}}})
	unschedule := func(cluster string) {
		b := f.binding(cluster)
		b.Spec.State = placementv1.BindingStateUnscheduled
		b.Spec.ClusterDecision.Reason = "not chosen any more"
		if err := f.Update(t.Context(), b); err != nil {
			t.Fatalf("unschedule %s: %v", cluster, err)
		}
	}
	unschedule("d")
	f.schedule(3)
	// The other tests' members are in the fleet, too, and must not matter.
	f.hold("a", "hold")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.awaitStage(r, 0, "True/StageUpdatingStarted")
	unschedule("b")
	if err := f.Delete(t.Context(), &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster("a")}}); err != nil {
		t.Fatalf("delete a member: %v", err)
	}
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	var got []string
	for _, c := range slices.Concat(r.Status.StagesStatus[0].Clusters, r.Status.DeletionStageStatus.Clusters) {
		got = append(got, fmt.Sprintf("%s %s %s", c.ClusterName, shown(c.Conditions, placementv1.ConditionSucceeded), message(c.Conditions, placementv1.ConditionSucceeded)))
	}
	want := []string{
		f.cluster("a") + " Unknown/ClusterUpdatingSkipped Skipped: the cluster has left the fleet",
		f.cluster("b") + " Unknown/ClusterUpdatingSkipped Skipped: the cluster is no longer scheduled: not chosen any more",
		f.cluster("c") + " True/ClusterUpdatingSucceeded Cluster update completed successfully",
		f.cluster("d") + " True/ClusterUpdatingSucceeded Removal completed successfully",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// TestInitializationFails has mistakes that only a person can put right.
func TestInitializationFails(t *testing.T) {
	f := newFixture(t, "mistakes", seedClusters())
	f.start()
	cases := map[string]struct {
		stages []placementv1.StageConfig
		want   string
	}{
		"overlap": {
			stages: []placementv1.StageConfig{{Name: "one", LabelSelector: environment("canary")}, {Name: "two", LabelSelector: &metav1.LabelSelector{}}},
			want:   `is in the stages "one" and "two"`,
		},
		"gap": {stages: []placementv1.StageConfig{{Name: "one", LabelSelector: environment("canary")}}, want: "total 1, showing up to 10: " + f.cluster("member2")},
		"unsortable": {
			stages: []placementv1.StageConfig{{Name: "one", LabelSelector: &metav1.LabelSelector{}, SortingLabelKey: ptr.To("environment")}},
			want:   fmt.Sprintf(`label environment="canary" of cluster %q is not an integer`, f.cluster("member1")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f.create(&placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-" + name}, Spec: placementv1.UpdateStrategySpec{Stages: tc.stages}})
			r := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-" + name}, Spec: placementv1.UpdateRunSpec{
				PlacementName: f.name, StagedUpdateStrategyName: f.name + "-" + name, State: placementv1.UpdateRunStateRun}}
			f.create(r)
			f.await(r, placementv1.ConditionInitialized, "False/UpdateRunInitializedFailed")
			if got := message(r.Status.Conditions, placementv1.ConditionInitialized); !strings.Contains(got, tc.want) {
				t.Errorf("message: %s", got)
			}
		})
	}
	if got := f.snapshots("member1", "member2", "member3"); got != "- - -" {
		t.Errorf("something moved: %s", got)
	}
}

// TestPlanningIsNotRepeatedOnEveryEvent has something that a placement selects that cannot be read. Events alone do not have
// it looked for again; an edit of the placement does, which may leave it out, and so does time.
func TestPlanningIsNotRepeatedOnEveryEvent(t *testing.T) {
	f := newFixture(t, "unread", seedClusters())
	f.strategy(time.Second)
	now := clocktesting.NewFakePassiveClock(time.Now())
	f.clock = now
	f.unread = true
	asked := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.asked
	}
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.await(r, placementv1.ConditionInitialized, "Unknown/UpdateRunInitializationPending")
	// Each relabelling is followed by a planned run, so that it is known to have been looked at.
	for i := range 3 {
		before := asked()
		b := f.binding("member1")
		b.Labels["touched"] = strconv.Itoa(i)
		if err := f.Update(t.Context(), b); err != nil {
			t.Fatalf("touch a binding: %v", err)
		}
		other := f.run(fmt.Sprintf("parked%d", i), "9", placementv1.UpdateRunStateInitialize)
		f.await(other, placementv1.ConditionInitialized, "False/UpdateRunInitializedFailed")
		if got := asked(); got != before || before != 1 {
			t.Errorf("what is selected was looked for %d times, want once", got)
		}
	}
	f.placement.Spec.ResourceSelectors[0].Name = "other"
	if err := f.Update(t.Context(), f.placement); err != nil {
		t.Fatalf("edit the placement: %v", err)
	}
	f.schedule(3)
	g := gomega.NewWithT(t)
	g.Eventually(asked, framework.Patience).Should(gomega.Equal(2))
	f.mu.Lock()
	f.unread = false
	f.mu.Unlock()
	now.SetTime(now.Now().Add(unreadRetry))
	f.await(r, placementv1.ConditionInitialized, "True/UpdateRunInitializedSuccessfully")
}

// tenClusters are ten clusters in three stages, half of a stage at a time.
func tenClusters(t *testing.T, name string) *fixture {
	labels := map[string]map[string]string{}
	for i := range 10 {
		labels[fmt.Sprintf("c%d", i)] = map[string]string{"environment": []string{"one", "two", "three"}[i%3]}
	}
	f := newFixture(t, name, labels)
	var stages []placementv1.StageConfig
	for _, stage := range []string{"one", "two", "three"} {
		stages = append(stages, placementv1.StageConfig{Name: stage, LabelSelector: environment(stage), MaxConcurrency: ptr.To(intstr.FromString("50%"))})
	}
	f.create(&placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: placementv1.UpdateStrategySpec{Stages: stages}})
	return f
}

// TestWrites counts what a run over ten clusters in three stages writes, and what it tells. The clock stands still, so that
// no write is there because time has passed.
func TestWrites(t *testing.T) {
	f := tenClusters(t, "writes")
	f.clock = clocktesting.NewFakePassiveClock(time.Now())
	var writes framework.Writes
	f.wrap = writes.Count
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	want := map[string]int{
		"update *v1.ClusterResourceBinding": 10, // each cluster is started
		"patch *v1.ClusterStagedUpdateRun":  1,  // the finalizer
		"status *v1.ClusterStagedUpdateRun": 4,  // it takes over, and each stage is done
	}
	if diff := cmp.Diff(want, writes.Take()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	for _, c := range r.Status.StagesStatus[2].Clusters {
		if shown(c.Conditions, placementv1.ConditionStarted) != "True/ClusterUpdatingStarted" || shown(c.Conditions, placementv1.ConditionSucceeded) != "True/ClusterUpdatingSucceeded" {
			t.Errorf("cluster %s: %v", c.ClusterName, c.Conditions)
		}
	}
	wantEvents := []string{"Normal StageUpdatingSucceeded", "Normal StageUpdatingSucceeded", "Normal UpdateRunProgressing", "Normal UpdateRunSucceeded"}
	gomega.NewWithT(t).Eventually(func() []string { return eventsOf(t, f, r) }, framework.Patience).Should(gomega.ConsistOf(wantEvents))
}

// eventsOf are type and reason of a run's events.
func eventsOf(t *testing.T, f *fixture, r *placementv1.ClusterStagedUpdateRun) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := f.List(t.Context(), &list); err != nil {
		return []string{err.Error()}
	}
	var seen []string
	for _, e := range list.Items {
		if e.Regarding.UID == r.UID {
			seen = append(seen, e.Type+" "+e.Reason)
		}
	}
	return seen
}

// TestProgressIsNotHeldBack has a cluster of two done, and the other on its way for long: the status says so all the same.
func TestProgressIsNotHeldBack(t *testing.T) {
	f := newFixture(t, "progress", map[string]map[string]string{"a": nil, "b": nil})
	f.create(&placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: placementv1.UpdateStrategySpec{
		Stages: []placementv1.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}}}}})
	f.hold("b", "hold")
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	framework.Await(t, f, r, "has one cluster done and one started", func(r *placementv1.ClusterStagedUpdateRun) bool {
		if len(r.Status.StagesStatus) == 0 {
			return false
		}
		rows := r.Status.StagesStatus[0].Clusters
		return shown(rows[0].Conditions, placementv1.ConditionSucceeded) == "True/ClusterUpdatingSucceeded" &&
			shown(rows[1].Conditions, placementv1.ConditionStarted) == "True/ClusterUpdatingStarted"
	})
}

// TestLostWrites has every third write fail, either before it happened or, as when a hub is killed, after it. The run ends
// as without, and no cluster is moved twice.
func TestLostWrites(t *testing.T) {
	f := tenClusters(t, "lost")
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	fails := func() error {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(3) == 0 {
			return errors.New("injected: the connection broke")
		}
		return nil
	}
	f.wrap = func(c client.Client) client.Client { return countWrites(c, fails, fails) }
	moves := watchMoves(t, f)
	f.start()
	r := f.run("run", "", placementv1.UpdateRunStateRun)
	f.await(r, placementv1.ConditionSucceeded, "True/UpdateRunSucceeded")
	for _, stage := range r.Status.StagesStatus {
		if diff := cmp.Diff(stage.ClusterCounts.Total, stage.ClusterCounts.Succeeded); diff != "" {
			t.Errorf("stage %s: %s", stage.StageName, diff)
		}
	}
	moves.check(t)
}

// countWrites calls before and after each write; an error of theirs is the write's.
func countWrites(c client.Client, before, after func() error) client.Client {
	wrap := func(write func() error) error {
		if before != nil {
			if err := before(); err != nil {
				return err
			}
		}
		if err := write(); err != nil || after == nil {
			return err
		}
		return after()
	}
	return interceptor.NewClient(withoutWatch{c}, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return wrap(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return wrap(func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return wrap(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return wrap(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return wrap(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
}

// moveHistory is what was seen of bindings: how often each was moved, and the most in flight in a stage.
type moveHistory struct {
	mu    sync.Mutex
	moves map[string]int
	last  map[string]string
	most  int
	now   map[string]bool
	ended bool // what came after was not seen
}

func watchMoves(t *testing.T, f *fixture) *moveHistory {
	t.Helper()
	h := &moveHistory{moves: map[string]int{}, last: map[string]string{}, now: map[string]bool{}}
	w, err := f.Watch(t.Context(), &placementv1.ClusterResourceBindingList{}, client.MatchingLabels{placementv1.LabelParentPlacement: f.name})
	if err != nil {
		t.Fatalf("watch bindings: %v", err)
	}
	t.Cleanup(w.Stop)
	go func() {
		for event := range w.ResultChan() {
			if b, ok := event.Object.(*placementv1.ClusterResourceBinding); ok {
				h.see(b)
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = true
	}()
	return h
}

func (h *moveHistory) see(b *placementv1.ClusterResourceBinding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	moved := b.Spec.ResourceSnapshotName + b.Annotations[placementv1.AnnotationUpdateStarted] + b.Annotations[placementv1.AnnotationUpdateRunUID]
	if b.Spec.State == placementv1.BindingStateBound && h.last[b.Name] != moved {
		h.last[b.Name] = moved
		h.moves[b.Name]++
	}
	available := b.Status.Conditions
	h.now[b.Name] = b.Spec.State == placementv1.BindingStateBound && shown(available, placementv1.ConditionAvailable) == ""
	inFlight := 0
	for _, yes := range h.now {
		if yes {
			inFlight++
		}
	}
	h.most = max(h.most, inFlight)
}

func (h *moveHistory) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		t.Error("the watch on bindings ended before the test did")
	}
	for binding, times := range h.moves {
		if times != 1 {
			t.Errorf("binding %s was moved %d times", binding, times)
		}
	}
	if h.most != 2 && h.most != 1 {
		t.Errorf("%d clusters were in flight at once; half of four is two", h.most)
	}
}

// withoutWatch lets a client that cannot watch be intercepted; the controller watches through its manager.
type withoutWatch struct{ client.Client }

// Watch is part of client.WithWatch.
func (withoutWatch) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("this client does not watch")
}
