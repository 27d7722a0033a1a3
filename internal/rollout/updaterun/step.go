package updaterun

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step moves the one run that holds its placement as far as it goes now.
type step struct {
	stamp
	w        *World
	run      placementv1.UpdateRunObject
	stopping bool
	// recorded is the run's status as stored; what it lets happen may happen.
	recorded *placementv1.UpdateRunStatus
	// status is the new one.
	status *placementv1.UpdateRunStatus
	// target is the name of the resource snapshot that the run rolls out.
	target string
	// bindings are those of this very placement, by cluster.
	bindings map[string]placementv1.BindingObject
	result   Result
	// skipped are the clusters that were given up in this pass, with the reason.
	skipped      []string
	firstSkipped string
	// unrecorded tells that something was decided in this pass that lets other clusters be started, once it is recorded.
	unrecorded bool
	// late are the clusters that were started again in stages that are done.
	late tally
	// ended tells that the run has ended in this pass, as too many clusters have failed.
	ended bool
	// told is what is to be told besides what the status tells.
	told []Event
	// failure says why the run cannot go on.
	failure string
}

func newStep(w *World, run placementv1.UpdateRunObject) *step {
	s := &step{
		stamp:    w.stampFor(run),
		w:        w,
		run:      run,
		stopping: run.UpdateRunSpec().State == placementv1.UpdateRunStateStop,
		recorded: run.UpdateRunStatus(),
		status:   w.latest(run).DeepCopy(),
		result:   Result{Run: run},
	}
	s.refresh(s.status)
	return s
}

// step says what the run that holds the placement does.
func (w *World) step(run placementv1.UpdateRunObject) Result {
	s := newStep(w, run)
	if gone := s.placementGone(); gone != "" {
		return s.fail(gone)
	}
	if err := s.readPlan(); err != nil {
		return s.fail("the run's status does not hold its plan any more: " + err.Error())
	}
	s.bindings = make(map[string]placementv1.BindingObject, len(w.Bindings))
	for _, b := range w.Bindings {
		if b.GetAnnotations()[placementv1.AnnotationPlacementUID] == string(w.Placement.GetUID()) {
			s.bindings[b.BindingSpec().TargetCluster] = b
		}
	}
	accepted := s.heed()
	if Finished(s.status) {
		if !accepted {
			return s.done() // nothing that was asked for changes how it ended
		}
		s.reopen()
	}
	s.advance()
	if s.failure != "" {
		return s.fail(s.failure)
	}
	return s.done()
}

// placementGone says why there is nothing left to update.
func (s *step) placementGone() string {
	p := s.w.Placement
	what := fmt.Sprintf("%s %q", s.w.Kinds.Placement, s.w.Key.Name)
	if p == nil {
		return what + " was deleted"
	}
	another := s.recorded.PlacementUID != p.GetUID()
	if s.recorded.PlacementUID == "" { // what a hub started that recorded no UID; the clocks may differ, so it is the second best
		another = p.GetCreationTimestamp().After(s.recorded.StartedTime.Time)
	}
	switch {
	case !p.GetDeletionTimestamp().IsZero():
		return what + " is being deleted"
	case another:
		return what + " was deleted and made anew after this run had started"
	}
	return ""
}

func isOfTask(status placementv1.StageTaskStatus, task placementv1.StageTask) bool {
	return status.Type == task.Type
}

// readPlan checks that the plan is still what was planned; statuses can be edited.
func (s *step) readPlan() error {
	index, err := strconv.Atoi(s.status.ResourceSnapshotIndexUsed)
	if err != nil {
		return fmt.Errorf("resourceSnapshotIndexUsed: %w", err)
	}
	s.target = placement.ResourceSnapshotName(s.w.Key.Name, index)
	strategy := s.status.StagedUpdateStrategySnapshot
	if strategy == nil || len(strategy.Stages) != len(s.status.StagesStatus) || s.status.DeletionStageStatus == nil {
		return errors.New("stagedUpdateStrategySnapshot, stagesStatus and deletionStageStatus do not match")
	}
	for i := range strategy.Stages {
		stage := &s.status.StagesStatus[i]
		if !slices.EqualFunc(stage.BeforeStageTaskStatus, strategy.Stages[i].BeforeStageTasks, isOfTask) ||
			!slices.EqualFunc(stage.AfterStageTaskStatus, strategy.Stages[i].AfterStageTasks, isOfTask) {
			return fmt.Errorf("the tasks of stage %q are not those of its strategy", stage.StageName)
		}
		if err := checkTasks(&strategy.Stages[i]); err != nil {
			return fmt.Errorf("stage %q: %w", stage.StageName, err)
		}
	}
	return nil
}

// advance goes through the stages from the first that is not recorded as done. Clusters of a stage are only started when
// all before them is recorded.
func (s *step) advance() {
	allRecorded := true
	for i := range s.status.StagesStatus {
		if isTrue(s.recorded.StagesStatus[i].Conditions, placementv1.ConditionSucceeded) {
			if s.again(i); s.failure != "" || s.ended {
				return
			}
			continue
		}
		if !s.stage(i, allRecorded) || s.failure != "" {
			return
		}
		allRecorded = false
	}
	if !isTrue(s.recorded.DeletionStageStatus.Conditions, placementv1.ConditionSucceeded) && !s.deletionStage(allRecorded) {
		return
	}
	if s.late.finished() {
		s.succeed()
	} else {
		s.waitForLate()
	}
}

// done completes the result.
func (s *step) done() Result {
	fit(s.status, maxStatusBytes)
	s.result.Status = s.status
	s.result.MayWait = mayWait(s.recorded, s.status)
	s.result.Events = s.w.eventsOf(s.run, s.status)
	if len(s.skipped) > 0 { // one event, even if half of a fleet has left; the first cluster tells it from those of other passes
		s.result.Events = append(s.result.Events, warning(placementv1.ReasonClusterUpdatingSkipped, "Skipped "+some(s.skipped)).of(s.firstSkipped))
	}
	s.result.Events = append(s.result.Events, s.told...)
	return s.result
}

// note explains a decision.
func (s *step) note(format string, args ...any) {
	s.result.Notes = append(s.result.Notes, fmt.Sprintf(format, args...))
}

// tell tells something that has happened, once it is recorded.
func (s *step) tell(e Event) { s.told = append(s.told, e) }

// wakeAt asks for another pass at a time.
func (s *step) wakeAt(at time.Time) {
	if after := at.Sub(s.w.Now); s.result.RequeueAfter == 0 || after < s.result.RequeueAfter {
		s.result.RequeueAfter = after
	}
}

// progressing sets the run's Progressing condition.
func (s *step) progressing(status metav1.ConditionStatus, reason, message string) {
	s.set(&s.status.Conditions, placementv1.ConditionProgressing, status, reason, message)
}

// succeed ends the run well.
func (s *step) succeed() {
	message := messageSucceeded
	var skipped, failed []string
	planned := map[string]bool{}
	forEachStage(s.status, func(stage *placementv1.StageUpdatingStatus) {
		failed = append(failed, failedIn(stage)...)
		for i := range stage.Clusters {
			planned[stage.Clusters[i].ClusterName] = true
			if row := &stage.Clusters[i]; progressOf(row) == placementv1.ClusterUpdatingStateSkipped {
				skipped = append(skipped, row.ClusterName)
			}
		}
	})
	if len(failed) > 0 {
		message = fmt.Sprintf("%s; %s failed, no more than maxFailures allows: %s", messageCompleted, clusters(len(failed)), some(failed))
	}
	if len(skipped) > 0 {
		message += fmt.Sprintf("; %d skipped: %s", len(skipped), some(skipped))
	}
	if late := s.chosenLate(planned); len(late) == 1 {
		message += "; 1 cluster chosen after the run was planned is not included: " + late[0]
	} else if len(late) > 1 {
		message += fmt.Sprintf("; %d clusters chosen after the run was planned are not included: %s", len(late), some(late))
	}
	s.progressing(metav1.ConditionFalse, placementv1.ReasonUpdateRunSucceeded, messageCompleted)
	s.set(&s.status.Conditions, placementv1.ConditionSucceeded, metav1.ConditionTrue, placementv1.ReasonUpdateRunSucceeded, message)
	s.note("ends: all stages are done")
}

// chosenLate are the clusters that the placement has and that are not in the run's plan.
func (s *step) chosenLate(planned map[string]bool) []string {
	var late []string
	for cluster, b := range s.bindings {
		if !planned[cluster] && b.BindingSpec().State != placementv1.BindingStateUnscheduled && b.GetDeletionTimestamp().IsZero() {
			late = append(late, cluster)
		}
	}
	slices.Sort(late)
	return late
}

// fail ends the run for good, as it cannot go on.
func (s *step) fail(why string) Result {
	s.end(messageAborted+": "+why, why, placementv1.ReasonUpdateRunFailed, messageStageAborted, placementv1.ReasonStageUpdatingFailed)
	s.note("ends failed: %s", why)
	return s.done()
}

// cancelled ends a run for good, as somebody wants it to.
func (w *World) cancelled(run placementv1.UpdateRunObject) Result {
	s, cancel := newStep(w, run), run.UpdateRunSpec().Cancel
	why := "cancelled " + by(cancel.RequestedBy, cancel.Reason)
	s.end("The update run was "+why, why, placementv1.ReasonUpdateRunCancelled, messageStageCancelled, placementv1.ReasonStageUpdatingCancelled)
	s.status.Cancelled = &placementv1.RunCancellationStatus{RequestedBy: cancel.RequestedBy, Reason: cancel.Reason, Time: s.now}
	s.note("ends: %s", why)
	return s.done()
}

// end ends the run for good. What its clusters have, they keep; its open approval requests are closed.
func (s *step) end(message, why, runReason, stageMessage, stageReason string) {
	s.status = s.w.latest(s.run).DeepCopy()
	s.refresh(s.status)
	s.result, s.skipped, s.told = Result{Run: s.run}, nil, nil
	forEachStage(s.status, func(stage *placementv1.StageUpdatingStatus) {
		if isTrue(stage.Conditions, placementv1.ConditionSucceeded) {
			return
		}
		s.closeRequests(stage, why)
		if stage.StartTime == nil && len(stage.Conditions) == 0 {
			return
		}
		for i := range stage.Clusters {
			if c := &stage.Clusters[i]; progressOf(c) == placementv1.ClusterUpdatingStateStarted {
				c.State, c.HeldSince, c.HeldSeconds = "", nil, 0
				s.set(&c.Conditions, placementv1.ConditionSucceeded, metav1.ConditionFalse, placementv1.ReasonClusterUpdatingFailed,
					"The run ended before the cluster was done: "+why)
			}
		}
		s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, stageReason, stageMessage)
		s.set(&stage.Conditions, placementv1.ConditionSucceeded, metav1.ConditionFalse, stageReason, why)
	})
	s.progressing(metav1.ConditionFalse, runReason, message)
	s.set(&s.status.Conditions, placementv1.ConditionSucceeded, metav1.ConditionFalse, runReason, why)
}
