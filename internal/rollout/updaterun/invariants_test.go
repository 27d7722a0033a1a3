package updaterun

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// history watches every write of a sim for what must never happen (design, §5).
type history struct {
	*sim
	fail func(format string, args ...any)
	// finished are, by run and cluster, the clusters that were available at the run's snapshot since the run started them.
	finished map[string]bool
	// opened are, by run, stage and task type, the approvals that were given.
	opened map[string]bool
	// recorded are the rows, by run and cluster, that were recorded as done.
	recorded map[string]bool
	// accepted are the requests, by name and UID, that were accepted.
	accepted map[string]bool
	// started are the bindings, by run, cluster and UID, that a run moved to its snapshot.
	started map[string]bool
	// updated is, by run and stage, when the last cluster was recorded as done.
	updated map[string]time.Time
	// waited are the waits, by run and stage, that are over.
	waited map[string]bool
	// took are the runs that took the placement over, and overtaken, by name, those that had not started when a newer one did.
	took      map[string]bool
	overtaken map[string]string
	// clock is, by run, cluster and retry, how long the deadline's clock ran since the cluster was started.
	clock map[string]time.Duration
	// answers are, by run, what was answered to people.
	answers map[string][]placementv1.ClusterActionStatus
}

func watchHistory(s *sim, fail func(string, ...any)) *history {
	h := &history{sim: s, fail: fail, finished: map[string]bool{}, opened: map[string]bool{}, recorded: map[string]bool{}, accepted: map[string]bool{},
		started: map[string]bool{}, updated: map[string]time.Time{}, waited: map[string]bool{}, took: map[string]bool{}, overtaken: map[string]string{},
		clock: map[string]time.Duration{}, answers: map[string][]placementv1.ClusterActionStatus{}}
	s.watch = h.look
	return h
}

// observe remembers which clusters are available now. It is called whenever a member has answered.
func (h *history) observe() {
	for name, r := range h.runs {
		for cluster := range h.bindings {
			if h.movedBy(r, cluster) && availableNow(h.bindings[cluster]) {
				h.finished[name+"/"+cluster] = true
			}
		}
	}
}

// availableNow tells, without the engine's help, whether a cluster runs what its binding asks for now.
func availableNow(b *placementv1.ClusterResourceBinding) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionAvailable)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == b.Generation
}

func (h *history) movedBy(r *placementv1.ClusterStagedUpdateRun, cluster string) bool {
	b := h.bindings[cluster]
	return b != nil && b.Annotations[placementv1.AnnotationUpdateRunUID] == string(r.UID) && b.Spec.State == placementv1.BindingStateBound &&
		b.Spec.ResourceSnapshotName == testPlacement+"-"+r.Status.ResourceSnapshotIndexUsed+"-snapshot"
}

// underWay tells whether a run has started a cluster: it moved it, in the retry that is recorded, and it is not recorded as
// given up.
func (h *history) underWay(r *placementv1.ClusterStagedUpdateRun, row *placementv1.ClusterUpdatingStatus) bool {
	switch progressOf(row) {
	case placementv1.ClusterUpdatingStateFailed, placementv1.ClusterUpdatingStateSkipped:
		return false
	default:
		return h.movedBy(r, row.ClusterName) && h.bindings[row.ClusterName].Annotations[placementv1.AnnotationUpdateRetry] == retryOf(row) &&
			h.present(row.ClusterName)
	}
}

// inFlight tells whether a run has a cluster in flight: it is under way, and was not available since it was started.
func (h *history) inFlight(r *placementv1.ClusterStagedUpdateRun, row *placementv1.ClusterUpdatingStatus) bool {
	return h.underWay(r, row) && !h.finished[r.Name+"/"+row.ClusterName]
}

func (h *history) present(cluster string) bool {
	b, m := h.bindings[cluster], h.members[cluster]
	return b != nil && m != nil && !m.Leaving && b.DeletionTimestamp == nil && b.Spec.State != placementv1.BindingStateUnscheduled
}

// look checks what was just written.
func (h *history) look(what string) {
	h.observe()
	verb, object, _ := strings.Cut(what, " ")
	switch verb {
	case "start":
		for _, r := range h.runs {
			if r.UID == "" || string(r.UID) != h.bindings[object].Annotations[placementv1.AnnotationUpdateRunUID] {
				continue
			}
			h.checkStart(r, object)
		}
	case "delete":
		if h.bindings[object].Spec.State != placementv1.BindingStateUnscheduled {
			h.fail("S6: the binding of %s, which is scheduled, was deleted", object)
		}
	case "request":
		h.checkRequest(h.requests[object])
	case "status":
		h.checkStatus(h.runs[object])
	}
}

// checkStart checks the start of one cluster.
func (h *history) checkStart(r *placementv1.ClusterStagedUpdateRun, cluster string) {
	key := r.Name + "/" + cluster + "/" + string(h.bindings[cluster].UID) + "/" + h.bindings[cluster].Annotations[placementv1.AnnotationUpdateRetry]
	if row, _ := rowOf(&r.Status, cluster); row != nil && progressOf(row) != "" {
		h.fail("run %s started %s, which is recorded as %s", r.Name, cluster, progressOf(row))
	}
	if h.started[key] {
		h.fail("run %s started %s twice", r.Name, cluster)
	}
	h.started[key] = true
	if r.Spec.State != run {
		h.fail("S3: run %s in state %s started %s", r.Name, r.Spec.State, cluster)
	}
	if r.Status.StartedTime == nil || Finished(&r.Status) {
		h.fail("run %s started %s and does not hold the placement", r.Name, cluster)
	}
	for _, other := range h.runs {
		if other.Status.StartedTime != nil && other.Status.StartedTime.After(r.Status.StartedTime.Time) {
			h.fail("run %s started %s after %s had taken the placement over", r.Name, cluster, other.Name)
		}
	}
	for i := range r.Status.StagesStatus {
		stage, config := &r.Status.StagesStatus[i], &r.Status.StagedUpdateStrategySnapshot.Stages[i]
		mine := slices.ContainsFunc(stage.Clusters, func(c placementv1.ClusterUpdatingStatus) bool { return c.ClusterName == cluster })
		if len(config.BeforeStageTasks) > 0 && !h.opened[r.Name+"/"+stage.StageName+"/before"] {
			h.fail("S2: run %s started %s before stage %s was approved", r.Name, cluster, stage.StageName)
		}
		for _, task := range stage.BeforeStageTaskStatus {
			if !isTrue(task.Conditions, placementv1.ConditionApprovalRequestApproved) {
				h.fail("S2: run %s started %s before the approval of stage %s was recorded", r.Name, cluster, stage.StageName)
			}
		}
		if mine {
			inFlight := 0
			for j := range stage.Clusters {
				if h.inFlight(r, &stage.Clusters[j]) {
					inFlight++
				}
			}
			if failed, most := len(failedIn(stage)), maxFailures(config, len(stage.Clusters)); failed > most {
				h.fail("run %s started %s when %d clusters of stage %s had failed and %d may", r.Name, cluster, failed, stage.StageName, most)
			}
			if limit := concurrency(config.MaxConcurrency, len(stage.Clusters)); inFlight > limit {
				h.fail("S1: run %s has %d clusters of stage %s in flight, %d are allowed", r.Name, inFlight, stage.StageName, limit)
			}
			return
		}
		if !isTrue(stage.Conditions, placementv1.ConditionSucceeded) {
			h.fail("S2: run %s started %s before stage %s was recorded as done", r.Name, cluster, stage.StageName)
		}
	}
	h.fail("run %s started %s, which is not in its plan", r.Name, cluster)
}

func (h *history) checkRequest(r *placementv1.ClusterApprovalRequest) {
	key := r.Name + "/" + string(r.UID)
	isAccepted := isTrue(r.Status.Conditions, placementv1.ConditionApprovalAccepted)
	if h.accepted[key] && !isAccepted {
		h.fail("S4: the accepted request %s was taken back", r.Name)
	}
	h.accepted[key] = isAccepted
}

// checkTakeOver checks that no run takes the placement from one that is newer.
func (h *history) checkTakeOver(r *placementv1.ClusterStagedUpdateRun) {
	if r.Status.StartedTime == nil || h.took[r.Name] {
		return
	}
	h.took[r.Name] = true
	if by := h.overtaken[r.Name]; by != "" {
		h.fail("run %s took the placement from %s, which is newer", r.Name, by)
	}
	for name, other := range h.runs {
		if !h.took[name] && other.Spec.State != initialize && byAge(other, r) < 0 {
			h.overtaken[name] = r.Name
		}
	}
}

// checkStatus checks a run's status as it was written.
func (h *history) checkStatus(r *placementv1.ClusterStagedUpdateRun) {
	h.checkTakeOver(r)
	if size := sizeOf(&r.Status); size > maxStatusBytes {
		h.fail("the status of run %s has %d bytes", r.Name, size)
	}
	for cluster := range h.bindings {
		if row, _ := rowOf(&r.Status, cluster); row != nil &&
			conditionOf(r.Status.Conditions, placementv1.ConditionProgressing) == "False/"+placementv1.ReasonUpdateRunStopped && h.inFlight(r, row) {
			h.fail("run %s says that it is stopped, and %s is in flight", r.Name, cluster)
		}
	}
	h.checkAnswers(r)
	for i := range r.Status.StagesStatus {
		stage := &r.Status.StagesStatus[i]
		for j := range stage.Clusters {
			row := &stage.Clusters[j]
			key := r.Name + "/" + row.ClusterName
			succeeded := progressOf(row) == placementv1.ClusterUpdatingStateSucceeded
			if h.recorded[key] && !succeeded {
				h.fail("run %s took back that %s is done", r.Name, row.ClusterName)
			}
			if succeeded && !h.recorded[key] && !h.finished[key] {
				h.fail("S5: run %s took %s for done on what was said of an earlier revision", r.Name, row.ClusterName)
			}
			if succeeded && !h.recorded[key] {
				h.updated[r.Name+"/"+stage.StageName] = h.now
			}
			h.recorded[key] = succeeded
			h.checkDeadline(r, i, row)
		}
		config := &r.Status.StagedUpdateStrategySnapshot.Stages[i]
		if failed, most := len(failedIn(stage)), maxFailures(config, len(stage.Clusters)); failed > most && !Finished(&r.Status) {
			h.fail("run %s goes on with %d clusters of stage %s that have failed, %d may", r.Name, failed, stage.StageName, most)
		}
		for when, tasks := range map[string][]placementv1.StageTaskStatus{"before": stage.BeforeStageTaskStatus, "after": stage.AfterStageTaskStatus} {
			for _, task := range tasks {
				if isTrue(task.Conditions, placementv1.ConditionApprovalRequestApproved) && !h.opened[r.Name+"/"+stage.StageName+"/"+when] {
					h.fail("S4: run %s counted an approval that nobody gave for %s stage %s", r.Name, when, stage.StageName)
				}
			}
		}
		h.checkWait(r, i)
	}
}

// checkAnswers checks that each action is answered once, in the order in which they were asked for, and that no answer is
// taken back.
func (h *history) checkAnswers(r *placementv1.ClusterStagedUpdateRun) {
	answers, before := r.Status.ClusterActions, h.answers[r.Name]
	if got, want := len(answers), len(r.Spec.ClusterActions); got > want {
		h.fail("run %s has answered %d actions of %d", r.Name, got, want)
	}
	for i := range min(len(answers), len(r.Spec.ClusterActions)) {
		if a := r.Spec.ClusterActions[i]; answers[i].Cluster != a.Cluster || answers[i].Action != a.Action {
			h.fail("run %s was asked for %s of %s, and answered %s of %s", r.Name, a.Action, a.Cluster, answers[i].Action, answers[i].Cluster)
		}
	}
	if len(answers) < len(before) || !slices.Equal(answers[:len(before)], before) {
		h.fail("run %s took an answer back: %v became %v", r.Name, before, answers)
	}
	h.answers[r.Name] = slices.Clone(answers)
}

// approveAny approves a request, and remembers it if that approval counts.
func (h *history) approveAny(name string, generation int64) {
	r := h.requests[name]
	h.approve(name)
	if generation != r.Generation {
		for i := range r.Status.Conditions {
			if r.Status.Conditions[i].Type == placementv1.ConditionApproved {
				r.Status.Conditions[i].ObservedGeneration = generation
			}
		}
		return
	}
	when := "before"
	if strings.Contains(name, "-after-") {
		when = "after"
	}
	h.opened[r.Spec.TargetUpdateRun+"/"+r.Spec.TargetStage+"/"+when] = true
}

// randomFleet makes a fleet of a few clusters in a few stages.
func randomFleet(t *rapid.T, tb testing.TB) *sim {
	s := newSim(tb)
	stages := rapid.IntRange(1, 3).Draw(t, "stages")
	var configs []placementv1.StageConfig
	for i := range stages {
		c := environment(fmt.Sprintf("stage%d", i), atMost(rapid.SampledFrom([]string{"1", "2", "50%", "100%"}).Draw(t, "limit")))
		mayFail(rapid.SampledFrom([]string{"0", "0", "1", "50%"}).Draw(t, "failures"))(&c)
		if rapid.Bool().Draw(t, "has deadline") {
			within(time.Duration(rapid.IntRange(1, 120).Draw(t, "deadline")) * time.Second)(&c)
		}
		if rapid.Bool().Draw(t, "before") {
			approvalBefore(&c)
		}
		if rapid.Bool().Draw(t, "wait") {
			waitAfter(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)(&c)
		}
		if rapid.Bool().Draw(t, "after") {
			approvalAfter(&c)
		}
		configs = append(configs, c)
	}
	s.strategy("random", configs...)
	for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
		s.join(fmt.Sprintf("c%d", i), map[string]string{"environment": fmt.Sprintf("stage%d", rapid.IntRange(0, stages-1).Draw(t, "stage"))})
	}
	s.snapshots = 3
	return s
}

// action is something that happens from outside.
type action struct {
	kind    string
	cluster string
	run     string
	index   string
	delay   time.Duration
	crash   int  // after how many writes the hub crashes on it; -1: not
	fail    int  // after how many writes one fails; -1: none
	wait    bool // statuses wait that may
}

func randomAction(t *rapid.T, s *sim) action {
	return action{
		kind: rapid.SampledFrom([]string{"available", "available", "available", "refuse", "applying", "stop", "run", "run", "approve", "approve",
			"approve wrongly", "delete request", "tick", "tick", "leave", "leaving", "rejoin", "new run", "relabel", "nothing",
			"pause", "await approval", "skip", "retry", "retry", "retry failed", "cancel"}).Draw(t, "action"),
		cluster: rapid.SampledFrom(slices.Sorted(maps.Keys(s.bindings))).Draw(t, "cluster"),
		run:     rapid.SampledFrom(slices.Sorted(maps.Keys(s.runs))).Draw(t, "run"),
		index:   rapid.SampledFrom([]string{"", "0", "1"}).Draw(t, "index"),
		delay:   time.Duration(rapid.IntRange(100, 60_000).Draw(t, "delay")) * time.Millisecond,
		crash:   rapid.IntRange(-1, 4).Draw(t, "crash"),
		fail:    rapid.IntRange(-1, 4).Draw(t, "fail"),
		wait:    rapid.Bool().Draw(t, "wait"),
	}
}

// happen lets an action happen, as far as it makes sense.
func (h *history) happen(a action) {
	b := h.bindings[a.cluster]
	inFlight := b != nil && b.Spec.State == placementv1.BindingStateBound && b.Spec.ResourceSnapshotName != ""
	switch a.kind {
	case "available":
		if inFlight {
			h.available(a.cluster)
		}
	case "refuse":
		if inFlight {
			h.refuse(a.cluster)
		}
	case "applying":
		if inFlight {
			h.applying(a.cluster)
		}
	case "stop":
		if r := h.runs[a.run]; r.Spec.State == run {
			h.setState(a.run, stop)
		}
	case "run":
		if h.runs[a.run].Spec.Cancel == nil {
			h.setState(a.run, run)
		}
	case "pause":
		if inFlight {
			h.pause(a.cluster)
		}
	case "await approval":
		if inFlight {
			h.awaitsApproval(a.cluster)
		}
	case "skip":
		h.skip(a.run, a.cluster)
	case "retry":
		h.retry(a.run, a.cluster)
	case "retry failed":
		h.retryFailed(h.runs[a.run])
	case "cancel":
		if a.index == "0" { // seldom, as it ends the story
			h.cancel(a.run)
		}
	case "approve", "approve wrongly":
		for _, name := range slices.Sorted(maps.Keys(h.requests)) {
			if !isTrue(h.requests[name].Status.Conditions, placementv1.ConditionApproved) {
				h.approveAny(name, map[string]int64{"approve": 1}[a.kind])
				break
			}
		}
	case "delete request":
		for _, name := range slices.Sorted(maps.Keys(h.requests)) {
			if !isTrue(h.requests[name].Status.Conditions, placementv1.ConditionApprovalAccepted) {
				delete(h.requests, name)
				break
			}
		}
	case "tick":
		h.tick(a.delay)
	case "leave":
		h.leave(a.cluster)
	case "leaving":
		if m := h.members[a.cluster]; m != nil {
			m.Leaving = true
		}
	case "rejoin":
		if h.members[a.cluster] == nil || h.members[a.cluster].Leaving {
			h.join(a.cluster, map[string]string{"environment": "stage0"})
		}
	case "new run":
		h.create(fmt.Sprintf("run%d", len(h.runs)), "random", a.index, run)
	case "relabel":
		if m := h.members[a.cluster]; m != nil {
			m.Labels = map[string]string{"environment": "stage0"}
		}
	}
	h.observe()
}

// retryFailed has all clusters of a run retried that have failed, and those skipped that have left.
func (h *history) retryFailed(r *placementv1.ClusterStagedUpdateRun) {
	for i := range r.Status.StagesStatus {
		for _, name := range failedIn(&r.Status.StagesStatus[i]) {
			if h.present(name) {
				h.retry(r.Name, name)
			} else {
				h.skip(r.Name, name)
			}
		}
	}
}

// react lets the controller work; it crashes once on the way, or a write fails, if the action says so.
func (h *history) react(a action) {
	h.writesLeft, h.untilFailure = a.crash, a.fail
	h.settle()
	h.writesLeft, h.untilFailure = -1, -1
}

// finish lets every member do what it is asked, opens every gate and lets time pass until nothing is left to do.
func (h *history) finish() {
	for range 200 {
		for name, r := range h.runs {
			if (r.Status.StartedTime != nil || r.Spec.State == stop) && r.Spec.Cancel == nil {
				h.setState(name, run)
			}
			if isFalse(r.Status.Conditions, placementv1.ConditionSucceeded) && resumable(&r.Status) &&
				lastStarted(h.world().Runs).GetName() == name {
				h.retryFailed(r)
			}
		}
		for cluster, b := range h.bindings {
			switch {
			case b.DeletionTimestamp != nil:
				delete(h.bindings, cluster)
			case b.Spec.State == placementv1.BindingStateBound:
				h.available(cluster)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(h.requests)) {
			h.approveAny(name, 1)
		}
		h.tick(2 * time.Minute)
		h.observe()
		h.settle()
	}
}

// TestInvariants plays random stories, with crashes after any write and with statuses that wait, and looks for what must
// never happen.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := randomFleet(rt, t)
		h := watchHistory(s, func(format string, args ...any) {
			rt.Fatalf(format+"\n%s", append(args, tail(s.log.String(), 80))...)
		})
		h.create("run0", "random", "", run)
		for range rapid.IntRange(5, 60).Draw(rt, "actions") {
			a := randomAction(rt, s)
			fmt.Fprintf(&s.log, "%+v\n", a)
			h.unhurried = a.wait
			h.happen(a)
			if a.crash == 0 || a.crash == 2 { // something else happens before the hub has come back
				h.writesLeft = a.crash
				h.pass()
				h.writesLeft = -1
				continue
			}
			h.react(a)
		}
		s.log.WriteString("let everything happen\n")
		h.unhurried = false
		h.finish()
		active := 0
		for name, r := range h.runs {
			if r.Status.StartedTime == nil || Finished(&r.Status) {
				continue
			}
			active++
			rt.Errorf("run %s does not end:\n%s", name, tail(s.log.String(), 80))
		}
		last := lastStarted(s.world().Runs)
		if last != nil && active == 0 && last.UpdateRunSpec().Cancel == nil && !isTrue(last.UpdateRunStatus().Conditions, placementv1.ConditionSucceeded) {
			rt.Errorf("the last run, %s, has not succeeded:\n%s", last.GetName(), tail(s.log.String(), 80))
		}
	})
}

// TestCrashesLeaveNoTrace plays each random story twice, once with crashes, failing writes and a cache that is behind, and
// compares all that is stored after each action (S8).
func TestCrashesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		calm := randomFleet(rt, t)
		stormy := copySim(calm)
		fail := func(format string, args ...any) {
			rt.Fatalf(format+"\n%s", append(args, tail(stormy.log.String(), 60))...)
		}
		one, two := watchHistory(calm, fail), watchHistory(stormy, fail)
		two.blind = true
		one.create("run0", "random", "", run)
		two.create("run0", "random", "", run)
		for range rapid.IntRange(5, 50).Draw(rt, "actions") {
			a := randomAction(rt, calm)
			fmt.Fprintf(&stormy.log, "%+v\n", a)
			one.happen(a)
			two.happen(a)
			two.react(a)
			a.crash, a.fail = -1, -1
			one.react(a)
			if diff := cmp.Diff(stored(calm), stored(stormy)); diff != "" {
				rt.Fatalf("a crash made a difference (-without +with):\n%s\n%s", diff, tail(stormy.log.String(), 60))
			}
		}
	})
}

// TestWaitingLeavesNoTrace plays each random story twice, once with statuses that wait over several actions, and compares all
// that is stored, times included, whenever nothing waits any more.
func TestWaitingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		hasty := randomFleet(rt, t)
		unhurried := copySim(hasty)
		fail := func(format string, args ...any) {
			rt.Fatalf(format+"\n%s", append(args, tail(unhurried.log.String(), 60))...)
		}
		one, two := watchHistory(hasty, fail), watchHistory(unhurried, fail)
		one.create("run0", "random", "", run)
		two.create("run0", "random", "", run)
		for range rapid.IntRange(5, 50).Draw(rt, "actions") {
			a := randomAction(rt, hasty)
			a.crash, a.fail = -1, -1
			fmt.Fprintf(&unhurried.log, "%+v\n", a)
			for _, h := range []*history{one, two} {
				h.happen(a)
				h.unhurried = h == two && a.wait
				h.react(a)
			}
			if diff := cmp.Diff(stored(hasty), stored(unhurried)); diff != "" && !a.wait {
				rt.Fatalf("waiting made a difference (-without +with):\n%s\n%s", diff, tail(unhurried.log.String(), 60))
			}
		}
	})
}

func copySim(s *sim) *sim {
	c := newSim(s.t)
	c.uids, c.now, c.snapshots = s.uids, s.now, s.snapshots
	c.placement, c.policy = s.placement.DeepCopy(), s.policy.DeepCopy()
	for name, spec := range s.strategies {
		c.strategies[name] = spec.DeepCopy()
	}
	for name, m := range s.members {
		copied := *m
		c.members[name] = &copied
	}
	for name, b := range s.bindings {
		c.bindings[name] = b.DeepCopy()
	}
	return c
}

// stored is all that is stored about runs, bindings and requests, without UIDs.
func stored(s *sim) map[string]any {
	all := map[string]any{}
	for name, r := range s.runs {
		all["run "+name] = r.Status
	}
	for name, b := range s.bindings {
		all["binding "+name] = []any{b.Spec, b.Annotations[placementv1.AnnotationUpdateRun], b.Annotations[placementv1.AnnotationUpdateStarted],
			b.Generation, b.DeletionTimestamp}
	}
	for name, r := range s.requests {
		all["request "+name] = []any{r.Spec, r.Labels, r.Status}
	}
	return all
}

// TestFailedWriteEndsThePass has the write fail that ends an older run: the newer one must not take the placement over
// before that is recorded, as the older would take it back in the next pass.
func TestFailedWriteEndsThePass(t *testing.T) {
	t.Parallel()
	for failing := range 4 {
		s := seedFleet(t)
		h := watchHistory(s, t.Errorf)
		s.snapshots = 2
		s.create("first", "example", "0", run)
		s.create("second", "example", "1", run)
		h.react(action{crash: -1, fail: failing})
		if got := conditionOf(s.runs["second"].Status.Conditions, placementv1.ConditionProgressing); got != "True/UpdateRunProgressing" {
			t.Errorf("with write %d failing the newer run has Progressing=%s\n%s", failing, got, s.log.String())
		}
		if got := conditionOf(s.runs["first"].Status.Conditions, placementv1.ConditionSucceeded); got != "False/UpdateRunFailed" {
			t.Errorf("with write %d failing the older run has Succeeded=%s\n%s", failing, got, s.log.String())
		}
	}
}

// TestFinishedRunsAreLeftOut has a finished run and a parked one, which take no time but when somebody has changed them.
func TestFinishedRunsAreLeftOut(t *testing.T) {
	t.Parallel()
	s := seedFleet(t)
	s.strategy("all", placementv1.StageConfig{Name: "all"})
	s.create("unplaced", "all", "0", run) // fails to be planned
	s.create("parked", "example", "0", initialize)
	s.settle()
	if got := Decide(s.world()); len(got) != 0 {
		t.Errorf("there are %d results, of which the first is for %s; want none", len(got), got[0].Run.GetName())
	}
	s.setState("parked", stop)
	s.runs["unplaced"].Generation++
	if got := Decide(s.world()); len(got) != 2 {
		t.Errorf("after both runs were changed there are %d results, want 2", len(got))
	}
}

// TestMessagesAreClipped has a scheduler give a reason that is longer than the API lets a message be.
func TestMessagesAreClipped(t *testing.T) {
	t.Parallel()
	s := seedFleet(t)
	s.create("example-run", "example", "0", run)
	s.settle()
	s.unschedule("member2")
	s.bindings["member2"].Spec.ClusterDecision.Reason = strings.Repeat("ü€", 20_000)
	s.settle()
	rows := s.runs["example-run"].Status.StagesStatus[0].Clusters
	got := meta.FindStatusCondition(rows[0].Conditions, placementv1.ConditionSucceeded).Message
	if !utf8.ValidString(got) || len(got) > longestMessage || len(got) < longestMessage-4 || !strings.HasSuffix(got, "…") {
		t.Errorf("the message has %d bytes and ends in %q", len(got), got[max(0, len(got)-10):])
	}
}
