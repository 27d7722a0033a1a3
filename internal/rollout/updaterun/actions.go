package updaterun

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/rollout/verdict"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unanswered are the actions that people asked for and that a run has not answered yet.
func unanswered(spec *placementv1.UpdateRunSpec, status *placementv1.UpdateRunStatus) []placementv1.ClusterAction {
	return spec.ClusterActions[min(len(status.ClusterActions), len(spec.ClusterActions)):]
}

// Refusal says why a run cannot do what is asked about one of its clusters, as far as its status tells; empty where it can.
// A run that is not planned yet has no clusters to tell of, and answers later.
func Refusal(status *placementv1.UpdateRunStatus, action *placementv1.ClusterAction) string {
	if len(status.StagesStatus) == 0 {
		return ""
	}
	row, _ := rowOf(status, action.Cluster)
	if row == nil {
		return fmt.Sprintf("cluster %q is none of the clusters that the run updates", action.Cluster)
	}
	progress := progressOf(row)
	switch action.Action {
	case placementv1.ClusterActionSkip:
		switch progress {
		case placementv1.ClusterUpdatingStateSucceeded:
			return fmt.Sprintf("cluster %s is done already", row.ClusterName)
		case placementv1.ClusterUpdatingStateSkipped:
			return fmt.Sprintf("cluster %s was skipped already", row.ClusterName)
		case placementv1.ClusterUpdatingStateStarted, placementv1.ClusterUpdatingStateFailed:
		}
		if isTrue(status.Conditions, placementv1.ConditionSucceeded) {
			return "the run is over, and needs nothing skipped to go on"
		}
	case placementv1.ClusterActionRetry:
		switch progress {
		case placementv1.ClusterUpdatingStateSucceeded:
			return fmt.Sprintf("cluster %s is done: there is nothing to retry", row.ClusterName)
		case placementv1.ClusterUpdatingStateStarted:
			return fmt.Sprintf("cluster %s is being updated, and what fails there is tried again all the time: there is nothing to retry; "+
				"to go on without the cluster, skip it", row.ClusterName)
		case placementv1.ClusterUpdatingStateFailed, placementv1.ClusterUpdatingStateSkipped:
		default:
			return fmt.Sprintf("cluster %s was not started yet: there is nothing to retry", row.ClusterName)
		}
	}
	return ""
}

// Final says of a run that nothing can make go on any more what it is; empty where an action can.
func Final(status *placementv1.UpdateRunStatus) string {
	switch {
	case !Finished(status) || resumable(status):
		return ""
	case status.Cancelled != nil:
		return "the run was cancelled; create a new run"
	default:
		return "the run has ended, and cannot go on; create a new run"
	}
}

// resumable tells whether a run that has ended goes on when clusters are retried, or skipped: it is done with all that has not
// failed, or ended because of too many clusters that have.
func resumable(status *placementv1.UpdateRunStatus) bool {
	if status.StartedTime == nil || status.Cancelled != nil {
		return false
	}
	tooMany := false
	forEachStage(status, func(stage *placementv1.StageUpdatingStatus) {
		c := meta.FindStatusCondition(stage.Conditions, placementv1.ConditionSucceeded)
		tooMany = tooMany || (c != nil && c.Status == metav1.ConditionFalse && c.Reason == placementv1.ReasonStageTooManyFailures)
	})
	return tooMany || isTrue(status.Conditions, placementv1.ConditionSucceeded)
}

// rowOf returns a cluster's row and the stage that it is in; nil where there is none. Clusters that are to be cleared are
// not updated, and have none.
func rowOf(status *placementv1.UpdateRunStatus, cluster string) (*placementv1.ClusterUpdatingStatus, *placementv1.StageUpdatingStatus) {
	for i := range status.StagesStatus {
		stage := &status.StagesStatus[i]
		for j := range stage.Clusters {
			if stage.Clusters[j].ClusterName == cluster {
				return &stage.Clusters[j], stage
			}
		}
	}
	return nil, nil
}

// heed answers what people have asked for since the last answer. That it was heard is recorded before anything comes of it:
// in this pass no cluster is started.
func (s *step) heed() (accepted bool) {
	for _, action := range unanswered(s.run.UpdateRunSpec(), s.status) {
		why := s.comply(&action)
		s.answerAction(&action, why)
		accepted = accepted || why == ""
	}
	return accepted
}

// comply does as it is asked, or says why not.
func (s *step) comply(action *placementv1.ClusterAction) (refused string) {
	if refused := Refusal(s.status, action); refused != "" {
		return refused
	}
	row, stage := rowOf(s.status, action.Cluster)
	b := s.bindings[action.Cluster]
	switch action.Action {
	case placementv1.ClusterActionSkip:
		if progressOf(row) != placementv1.ClusterUpdatingStateFailed && s.moved(row, b) {
			if how, _ := verdict.Of(b); how == verdict.Done {
				return fmt.Sprintf("cluster %s is done already", row.ClusterName)
			}
		}
		s.giveUp(row, by(action.RequestedBy, action.Reason))
	case placementv1.ClusterActionRetry:
		if left := s.left(action.Cluster); left != "" {
			return fmt.Sprintf("cluster %s cannot be retried: %s", action.Cluster, left)
		}
		for i := range stage.AfterStageTaskStatus { // a wait that has begun begins anew when this cluster is done, too
			if tasks := &stage.AfterStageTaskStatus[i].Conditions; isFalse(*tasks, placementv1.ConditionWaitTimeElapsed) {
				meta.RemoveStatusCondition(tasks, placementv1.ConditionWaitTimeElapsed)
			}
		}
		// All else of the row, such as the overrides that were frozen with the plan, stays as it was.
		row.State, row.Conditions, row.HeldSince, row.HeldSeconds = "", nil, nil, 0
		row.Retries++
		s.tell(normal(placementv1.ReasonClusterUpdatingRetried, fmt.Sprintf("Cluster %s is started again, asked for %s", row.ClusterName, by(action.RequestedBy, action.Reason))).of(row.ClusterName))
		s.note("%s is to be started again, asked for %s", row.ClusterName, by(action.RequestedBy, action.Reason))
	}
	return ""
}

// answerAction records what becomes of an action.
func (s *step) answerAction(action *placementv1.ClusterAction, refused string) {
	answer := placementv1.ClusterActionStatus{
		Cluster: action.Cluster, Action: action.Action, RequestedBy: action.RequestedBy, Reason: action.Reason,
		Time: s.now, Result: placementv1.ClusterActionAccepted,
	}
	if refused != "" {
		answer.Result, answer.Message = placementv1.ClusterActionRefused, refused
		s.tell(warning(placementv1.ReasonClusterActionRefused, fmt.Sprintf("%s of cluster %s is refused: %s", action.Action, action.Cluster, refused)).of(action.Cluster))
		s.note("refuse %s of %s: %s", action.Action, action.Cluster, refused)
	}
	s.status.ClusterActions = append(s.status.ClusterActions, answer)
	s.unrecorded = true
}

// refuse answers all that was asked of a run that does nothing any more.
func (s *step) refuse(why string) Result {
	for _, action := range unanswered(s.run.UpdateRunSpec(), s.status) {
		s.answerAction(&action, why)
	}
	return s.done()
}

// by says who asked for something, and why.
func by(user, reason string) string {
	if user == "" {
		user = "somebody"
	}
	if reason == "" {
		return "by " + user
	}
	return "by " + user + ": " + reason
}

// resume has a run that has ended answer what was asked of it, and go on if it can.
func (w *World) resume(run, holder, taker placementv1.UpdateRunObject) Result {
	if taker == nil {
		taker = holder
	}
	s := newStep(w, run)
	if taker != run {
		return s.refuse(fmt.Sprintf("update run %q has taken the placement over; create a new run", taker.GetName()))
	}
	if gone := s.placementGone(); gone != "" {
		return s.refuse(gone)
	}
	return w.step(run)
}

// reopen takes back that a run has ended, and that a stage was aborted: what the stage is now, the rest of the pass says.
func (s *step) reopen() {
	meta.RemoveStatusCondition(&s.status.Conditions, placementv1.ConditionSucceeded)
	forEachStage(s.status, func(stage *placementv1.StageUpdatingStatus) {
		if isFalse(stage.Conditions, placementv1.ConditionSucceeded) {
			meta.RemoveStatusCondition(&stage.Conditions, placementv1.ConditionSucceeded)
			s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted, messageStageStarted)
		}
	})
	s.note("goes on")
}
