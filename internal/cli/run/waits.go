package run

import (
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// nothingOpen says what a run does instead of waiting for an approval. closed are the requests that were asked for and are
// not open.
func nothingOpen(run placementv1.UpdateRunObject, stage string, closed []placementv1.ApprovalRequestObject) string {
	for _, r := range closed {
		if text := alreadyApproved(run, r); text != "" {
			return text
		}
	}
	text := fmt.Sprintf("update run %q waits for no approval", run.GetName())
	if stage != "" {
		text += fmt.Sprintf(" in stage %q", stage)
	}
	if what := atWork(run); what != "" {
		return text + ": " + what
	}
	return text + " yet: the hub has not looked at it"
}

// alreadyApproved says of a stage that was approved and is not done who approved it, and what it still waits for.
func alreadyApproved(run placementv1.UpdateRunObject, r placementv1.ApprovalRequestObject) string {
	i := stageIndex(run, r.ApprovalRequestSpec().TargetStage)
	if i < 0 || !isApproved(r) || meta.FindStatusCondition(run.UpdateRunStatus().StagesStatus[i].Conditions, placementv1.ConditionSucceeded) != nil {
		return ""
	}
	text := fmt.Sprintf("stage %q of update run %q is already approved", r.ApprovalRequestSpec().TargetStage, run.GetName())
	if by := r.ApprovalRequestStatus().ApprovedBy; by != nil {
		text += " by " + by.User
		if by.Time != nil {
			text += " at " + by.Time.UTC().Format(time.RFC3339)
		}
	}
	if until, waits := waitsUntil(run, i); waits {
		return text + "; it still waits until " + until.UTC().Format(time.RFC3339) + " (TimedWait)"
	}
	if what := atWork(run); what != "" {
		text += ": " + what
	}
	return text
}

// waitsUntil is when the wait after a stage ends, if it has begun and is not over.
func waitsUntil(run placementv1.UpdateRunObject, stage int) (until time.Time, waits bool) {
	strategy := run.UpdateRunStatus().StagedUpdateStrategySnapshot
	if strategy == nil || stage >= len(strategy.Stages) {
		return time.Time{}, false
	}
	tasks := strategy.Stages[stage].AfterStageTasks
	for i, task := range run.UpdateRunStatus().StagesStatus[stage].AfterStageTaskStatus {
		c := meta.FindStatusCondition(task.Conditions, placementv1.ConditionWaitTimeElapsed)
		if c != nil && c.Status == "False" && i < len(tasks) && tasks[i].WaitTime != nil {
			return c.LastTransitionTime.Add(tasks[i].WaitTime.Duration), true
		}
	}
	return time.Time{}, false
}

func stageIndex(run placementv1.UpdateRunObject, name string) int {
	for i := range run.UpdateRunStatus().StagesStatus {
		if run.UpdateRunStatus().StagesStatus[i].StageName == name {
			return i
		}
	}
	return -1
}

// atWork is what a run says it is doing, or how it ended; empty where it says nothing.
func atWork(run placementv1.UpdateRunObject) string {
	for _, t := range []string{placementv1.ConditionSucceeded, placementv1.ConditionProgressing, placementv1.ConditionInitialized} {
		if c := meta.FindStatusCondition(run.UpdateRunStatus().Conditions, t); c != nil {
			return c.Message
		}
	}
	return ""
}
