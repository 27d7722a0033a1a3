package updaterun

import (
	"fmt"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
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
			fmt.Sprintf("The updateRun is waiting for before-stage tasks in stage %s to complete%s", stage.StageName, s.todo(config, stage, gate.odd)))
		s.note("stage %s waits for approval request %s%s", stage.StageName, gate.request, gate.odd)
		return false
	}
	limit := 0
	if mayStart && gate.recorded {
		limit = concurrency(config.MaxConcurrency, len(stage.Clusters))
	}
	tally := s.clusters(stage, mayStart, limit)
	if s.failure != "" {
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
		fmt.Sprintf("%s: %d of %s in stage %s done, waiting for %s", messageProgress, t.succeeded+t.skipped, clusters(len(stage.Clusters)), stage.StageName,
			some(s.withTrouble(t.inFlight))))
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

// withTrouble adds to the names of clusters what is wrong with those that cannot be reached.
func (s *step) withTrouble(names []string) []string {
	told := make([]string, 0, len(names))
	for _, name := range names {
		if c := s.w.Fleet.Cluster(name); c != nil && c.Disconnected != "" && len(told) < shownNames {
			name += " (" + c.Disconnected + ")"
		}
		told = append(told, name)
	}
	return told
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
	s.finish(stage, reason, progressing, succeeded)
	s.progressing(metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, messageProgress+": stage "+stage.StageName+" is done")
	s.note("stage %s is done", stage.StageName)
	return true
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
	tally := s.clusters(stage, gate.open && stage.StartTime != nil, 0)
	if s.failure != "" {
		return
	}
	if tally.finished() && stage.StartTime != nil {
		s.afterGates(config, stage)
	}
	s.stopped(stage, tally, "finish updating")
}

// stopped says how far stopping is.
func (s *step) stopped(stage *placementv1.StageUpdatingStatus, t tally, todo string) {
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
