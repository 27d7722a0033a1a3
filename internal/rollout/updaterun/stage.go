package updaterun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/fleetwright/fleetwright/internal/rollout/verdict"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stage moves one stage as far as it goes now, and tells whether it is done. mayStart says that everything before the
// stage is recorded as done: only then was it confirmed which of its clusters have left (Awaited).
func (s *step) stage(i int, mayStart bool) (done bool) {
	config, stage := &s.status.StagedUpdateStrategySnapshot.Stages[i], &s.status.StagesStatus[i]
	if s.stopping {
		s.stopStage(config, stage)
		return false
	}
	s.begin(stage)
	gate := s.beforeGate(stage)
	if !gate.open {
		s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonStageUpdatingWaiting,
			messageStageBefore+gate.odd)
		s.progressing(metav1.ConditionFalse, placementv1.ReasonUpdateRunWaiting,
			fmt.Sprintf("The updateRun is waiting for before-stage tasks in stage %s to complete%s", stage.StageName, s.todo(config, stage, gate.odd)+s.midway()))
		s.note("stage %s waits for approval request %s%s", stage.StageName, gate.request, gate.odd)
		return false
	}
	limit := 0
	if mayStart && gate.recorded {
		limit = concurrency(config.MaxConcurrency, len(stage.Clusters))
	}
	tally := s.clusters(config, stage, mayStart, limit)
	if s.failure != "" {
		return false
	}
	if tally.tooMany(config, stage) {
		s.tooMany(config, stage, tally)
		return false
	}
	if !tally.finished() {
		s.moving(stage, tally)
		return false
	}
	return s.afterClusters(config, stage)
}

// begin records when the run came to a stage.
func (s *step) begin(stage *placementv1.StageUpdatingStatus) {
	if stage.StartTime == nil {
		now := s.now
		stage.StartTime = &now
	}
}

// moving says of a stage whose clusters are not done how far it is.
func (s *step) moving(stage *placementv1.StageUpdatingStatus, t tally) {
	if len(t.inFlight) == 0 && s.unrecorded {
		// What lets others be started was decided in this very pass, and is recorded first. A stage that waited does so no more.
		if c := meta.FindStatusCondition(stage.Conditions, placementv1.ConditionProgressing); c != nil && c.Reason == placementv1.ReasonStageUpdatingWaiting {
			s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted, messageStageStarted)
		}
		s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, messageProgress+": stage "+stage.StageName+" goes on")
		s.note("stage %s goes on when what was decided is recorded", stage.StageName)
		return
	}
	if len(t.inFlight) == 0 {
		// What lets the stage begin was decided in this very pass, and is recorded first.
		s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, messageProgress+": stage "+stage.StageName+" begins")
		s.note("stage %s begins when what comes before it is recorded", stage.StageName)
		return
	}
	s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted, messageStageStarted)
	if len(t.failing) > 0 {
		s.progressing(metav1.ConditionFalse, placementv1.ReasonUpdateRunStuck, "The updateRun is stuck waiting for "+s.failingIn(stage, t))
		s.note("stuck: %s cannot go on", some(t.failing))
		return
	}
	s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing,
		fmt.Sprintf("%s: %d of %s in stage %s done%s, waiting for %s%s", messageProgress, t.succeeded+t.skipped, clusters(len(stage.Clusters)), stage.StageName,
			failedToo(t.failed), some(s.withTrouble(t.inFlight)), s.midway()))
}

// failedToo says, in the middle of a message, which clusters have failed.
func failedToo(failed []string) string {
	if len(failed) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed (%s)", len(failed), some(failed))
}

// failingIn names the clusters of a stage that fail, and says of which kind their trouble is and where to look.
func (s *step) failingIn(stage *placementv1.StageUpdatingStatus, t tally) string {
	var troubles []string
	with := map[string][]string{}
	for _, name := range t.failing {
		trouble := t.trouble[name]
		if with[trouble] == nil {
			troubles = append(troubles, trouble)
		}
		with[trouble] = append(with[trouble], name)
	}
	if len(troubles) > 1 {
		for i, trouble := range troubles {
			troubles[i] = some(with[trouble]) + ": " + trouble
		}
	}
	return fmt.Sprintf("%s in stage %s to finish updating: %s; the errors themselves are in the status of %s %s, "+
		"and, for %s, of %s %s", some(t.failing), stage.StageName, strings.Join(troubles, "; "), s.w.Kinds.Placement, s.w.Key.Name,
		t.failing[0], s.w.Kinds.Binding, s.bindings[t.failing[0]].GetName())
}

// withTrouble adds to the names of clusters what is wrong with those that cannot be reached, and what is paused in those that
// wait for somebody.
func (s *step) withTrouble(names []string) []string {
	told := make([]string, 0, len(names))
	for _, name := range names {
		if len(told) < shownNames {
			name = s.withWait(name)
		}
		told = append(told, name)
	}
	return told
}

// withWait names a cluster in flight together with what it waits for: a person's approval first of all.
func (s *step) withWait(cluster string) string {
	if awaited := s.approvals(cluster); len(awaited) > 0 {
		text := awaited[0].In(cluster)
		if more := len(awaited) - 1; more > 0 {
			text += fmt.Sprintf(" and of %d more Rollouts there", more)
		}
		return text
	}
	if why := s.waitsFor(cluster); why != "" {
		return cluster + " (" + why + ")"
	}
	return cluster
}

// midway names, at the end of a message, clusters that wait for their turn and in which an earlier release is in the middle of its
// batches: they stay as they are until the run comes to them, and then are not waited for.
func (s *step) midway() string {
	var names []string
	forEachStage(s.status, func(stage *placementv1.StageUpdatingStatus) {
		for i := range stage.Clusters {
			row := &stage.Clusters[i]
			if progressOf(row) != "" || s.moved(row, s.bindings[row.ClusterName]) {
				continue
			}
			if awaited := s.approvals(row.ClusterName); len(awaited) > 0 {
				names = append(names, fmt.Sprintf("%s (step %d/%d of Rollout %s/%s)", row.ClusterName, awaited[0].Step, awaited[0].Steps, awaited[0].Namespace, awaited[0].Name))
			}
		}
	})
	if len(names) == 0 {
		return ""
	}
	return "; in the middle of an earlier release, and left so until their turn: " + some(names)
}

// approvals are the steps of Rollouts that wait in a cluster that answers, which waits for nothing else.
func (s *step) approvals(cluster string) []kruise.AwaitedApproval {
	b, c := s.bindings[cluster], s.w.Fleet.Cluster(cluster)
	if b == nil || b.GetDeletionTimestamp() != nil || (c != nil && c.Disconnected != "") || verdict.Paused(b) == "" {
		return nil
	}
	return verdict.Approvals(b)
}

// waitsFor is why a cluster in flight may take long; empty for one that is on its way.
func (s *step) waitsFor(cluster string) string {
	if c := s.w.Fleet.Cluster(cluster); c != nil && c.Disconnected != "" {
		return c.Disconnected
	}
	if b := s.bindings[cluster]; b != nil && b.GetDeletionTimestamp().IsZero() {
		return verdict.Paused(b)
	}
	return ""
}

// afterClusters goes through the gates after a stage whose clusters are done.
func (s *step) afterClusters(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus) (done bool) {
	if odd, open := s.afterGates(config, stage); !open {
		s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonStageUpdatingWaiting, messageStageAfter+odd)
		s.progressing(metav1.ConditionFalse, placementv1.ReasonUpdateRunWaiting,
			fmt.Sprintf("The updateRun is waiting for after-stage tasks in stage %s to complete%s", stage.StageName, s.todo(config, stage, odd)))
		s.note("stage %s: clusters are done, after-stage tasks are not%s", stage.StageName, odd)
		return false
	}
	reason, progressing, succeeded := placementv1.ReasonStageUpdatingSucceeded, messageStageUpdated, messageStageSucceeded
	if len(stage.Clusters) == 0 {
		reason, progressing, succeeded = placementv1.ReasonStageUpdatingSkippedNoClusters, messageStageSkipped, messageStageSkipped
		if len(config.BeforeStageTasks)+len(config.AfterStageTasks) > 0 {
			succeeded += "; its tasks are completed"
		}
	}
	if failed := failedIn(stage); len(failed) > 0 {
		progressing, succeeded = messageStageUpdatedBut, "Stage update completed"
		succeeded += fmt.Sprintf(" with %s failed, no more than its maxFailures %s allows: %s", clusters(len(failed)), config.MaxFailures.String(), some(failed))
	}
	s.finish(stage, reason, progressing, succeeded)
	s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, messageProgress+": stage "+stage.StageName+" is done")
	s.note("stage %s is done", stage.StageName)
	return true
}

// failedIn are the clusters of a stage that have failed.
func failedIn(stage *placementv1.StageUpdatingStatus) (names []string) {
	for i := range stage.Clusters {
		if progressOf(&stage.Clusters[i]) == placementv1.ClusterUpdatingStateFailed {
			names = append(names, stage.Clusters[i].ClusterName)
		}
	}
	return names
}

// again looks at the clusters that somebody had started again in a stage that is done, and at failed ones that left. The stage stays done, unless too many of
// its clusters fail now, and the run waits for them before it ends.
func (s *step) again(i int) {
	config, stage := &s.status.StagedUpdateStrategySnapshot.Stages[i], &s.status.StagesStatus[i]
	undone := func(row placementv1.ClusterUpdatingStatus) bool {
		p := progressOf(&row)
		return p == "" || p == placementv1.ClusterUpdatingStateStarted ||
			(p == placementv1.ClusterUpdatingStateFailed && s.left(row.ClusterName) != "")
	}
	if !slices.ContainsFunc(stage.Clusters, undone) {
		if counts := countsOf(stage); stage.ClusterCounts != nil && *counts != *stage.ClusterCounts {
			stage.ClusterCounts = counts // somebody skipped one that had failed
		}
		return
	}
	limit := concurrency(config.MaxConcurrency, len(stage.Clusters))
	if s.stopping {
		limit = 0
	}
	t := s.clusters(config, stage, true, limit)
	if s.failure == "" && t.tooMany(config, stage) {
		s.tooMany(config, stage, t)
		return
	}
	s.late.inFlight = append(s.late.inFlight, t.inFlight...)
	s.late.waiting += t.waiting
	if len(t.failing) > 0 {
		s.note("%s, started again in stage %s, cannot go on", some(t.failing), stage.StageName)
	}
}

// countsOf counts the clusters of a stage of which none is in flight.
func countsOf(stage *placementv1.StageUpdatingStatus) *placementv1.StageClusterCounts {
	var t tally
	for i := range stage.Clusters {
		switch progressOf(&stage.Clusters[i]) {
		case placementv1.ClusterUpdatingStateSucceeded:
			t.succeeded++
		case placementv1.ClusterUpdatingStateSkipped:
			t.skipped++
		case placementv1.ClusterUpdatingStateFailed:
			t.failed = append(t.failed, stage.Clusters[i].ClusterName)
		case placementv1.ClusterUpdatingStateStarted:
		}
	}
	return t.counts(len(stage.Clusters))
}

// waitForLate says, once all stages are done, that clusters are not that were started again.
func (s *step) waitForLate() {
	names := some(s.withTrouble(s.late.inFlight))
	switch {
	case len(s.late.inFlight) == 0 && s.stopping:
		s.progressing(metav1.ConditionFalse, placementv1.ReasonUpdateRunStopped, messageStopped)
	case s.stopping:
		s.progressing(metav1.ConditionUnknown, placementv1.ReasonUpdateRunStopping, "The update run is stopping, waiting for "+names+" to finish updating")
	case len(s.late.inFlight) == 0:
		s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, messageProgress+": clusters are started again")
	default:
		s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing,
			messageProgress+": all stages are done, waiting for clusters that were started again: "+names)
	}
}

// finish records a stage as done.
func (s *step) finish(stage *placementv1.StageUpdatingStatus, reason, progressing, succeeded string) {
	s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, reason, progressing)
	s.set(&stage.Conditions, placementv1.ConditionSucceeded, metav1.ConditionTrue, reason, succeeded)
	now := s.now
	stage.EndTime = &now
}

// stopStage lets what is in flight finish. Gates are looked at all the same: a wait runs on, and an approval counts.
func (s *step) stopStage(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus) {
	gate := s.beforeGate(stage)
	tally := s.clusters(config, stage, gate.open && stage.StartTime != nil, 0)
	if s.failure != "" {
		return
	}
	if tally.tooMany(config, stage) {
		s.tooMany(config, stage, tally)
		return
	}
	if tally.finished() && stage.StartTime != nil {
		s.afterGates(config, stage)
	}
	s.stopped(stage, tally, "finish updating")
}

// stopped says how far stopping is.
func (s *step) stopped(stage *placementv1.StageUpdatingStatus, t tally, todo string) {
	t.inFlight = append(t.inFlight, s.late.inFlight...)
	if len(t.inFlight) == 0 {
		s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonStageUpdatingStopped, messageStageStopped)
		s.progressing(metav1.ConditionFalse, placementv1.ReasonUpdateRunStopped, messageStopped)
		s.note("stopped in stage %s: nothing is in flight", stage.StageName)
		return
	}
	message := fmt.Sprintf("The update run is stopping, waiting for %s in stage %s to %s", some(s.withTrouble(t.inFlight)), stage.StageName, todo)
	if len(t.failing) > 0 {
		message = "The update run is stopping, waiting for " + s.failingIn(stage, t)
	}
	s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionUnknown, placementv1.ReasonStageUpdatingStopping, messageStageStopping)
	s.progressing(metav1.ConditionUnknown, placementv1.ReasonUpdateRunStopping, message)
	s.note("stopping: %s in flight", some(t.inFlight))
}

// deletionStage removes what is no longer scheduled, after all other stages, and tells whether that is done.
func (s *step) deletionStage(mayStart bool) (done bool) {
	stage := s.status.DeletionStageStatus
	tally := s.removals(stage, mayStart, mayStart && !s.stopping)
	switch {
	case tally.finished():
		s.begin(stage)
		s.finish(stage, placementv1.ReasonStageUpdatingSucceeded, "All clusters that are no longer scheduled are cleared", messageStageSucceeded)
		return true
	case s.stopping:
		s.stopped(stage, tally, "be cleared")
		return false
	}
	s.begin(stage)
	message := messageProgress + ": the clusters that are no longer scheduled are cleared next"
	if len(tally.inFlight) > 0 {
		s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted,
			"Clusters that are no longer scheduled are being cleared")
		message = messageProgress + ": waiting until what was placed is gone from " + some(s.withTrouble(tally.inFlight))
	}
	s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, message)
	return false
}

// roundUp is the first whole second that is not before t. A wait that began then, as the API stores it, never ends early.
func roundUp(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}
