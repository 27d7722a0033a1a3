package updaterun

import (
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventsOf tells what becomes different when a run's status is written. As the status is stored, nothing is told twice,
// however often the hub is started anew.
func (w *World) eventsOf(run placementv1.UpdateRunObject, status *placementv1.UpdateRunStatus) []Event {
	before := run.UpdateRunStatus()
	var events []Event
	add := func(e Event, told bool) {
		if told {
			events = append(events, e)
		}
	}
	started := before.StartedTime == nil && status.StartedTime != nil
	if c := turned(before, status, placementv1.ConditionInitialized); c != nil {
		if c.Status == metav1.ConditionFalse {
			add(warning(c.Reason, c.Message), true)
		} else {
			add(normal(c.Reason, c.Message), !started)
		}
	}
	add(normal(placementv1.ReasonUpdateRunProgressing, startedMessage(status)), started)
	ended := turned(before, status, placementv1.ConditionSucceeded)
	for i := range min(len(before.StagesStatus), len(status.StagesStatus)) {
		was, is := &before.StagesStatus[i], &status.StagesStatus[i]
		events = append(events, w.approvals(was, is)...)
		newly := !isTrue(was.Conditions, placementv1.ConditionSucceeded) && isTrue(is.Conditions, placementv1.ConditionSucceeded)
		add(normal(placementv1.ReasonStageUpdatingSucceeded, "Stage "+is.StageName+" is done").in(partOf(is)), newly && ended == nil)
	}
	switch {
	case ended == nil:
		events = append(events, progress(run, status)...)
	case ended.Status == metav1.ConditionTrue, ended.Reason == placementv1.ReasonUpdateRunCancelled:
		add(normal(ended.Reason, ended.Message), true)
	default:
		add(warning(ended.Reason, ended.Message), true)
	}
	return events
}

// turned returns a run's condition if its status or reason is to change.
func turned(before, after *placementv1.UpdateRunStatus, conditionType string) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Conditions, conditionType), meta.FindStatusCondition(after.Conditions, conditionType)
	if is == nil || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
		return nil
	}
	return is
}

func startedMessage(status *placementv1.UpdateRunStatus) string {
	return fmt.Sprintf("Started to roll resource snapshot %s out to %s in %d stages", status.ResourceSnapshotIndexUsed,
		clusters(int(status.PolicyObservedClusterCount)), len(status.StagesStatus))
}

// approvals tells of requests that were approved.
func (w *World) approvals(was, is *placementv1.StageUpdatingStatus) []Event {
	var events []Event
	part := partOf(is)
	compare := func(side string, was, is []placementv1.StageTaskStatus) {
		for i := range min(len(was), len(is)) {
			if !isTrue(was[i].Conditions, placementv1.ConditionApprovalRequestApproved) && isTrue(is[i].Conditions, placementv1.ConditionApprovalRequestApproved) {
				events = append(events, normal(placementv1.ReasonStageTaskApprovalRequestApproved,
					fmt.Sprintf("%s %s is approved", w.Kinds.ApprovalRequest, is[i].ApprovalRequestName)).in(part+side))
			}
		}
	}
	compare(beforeStage, was.BeforeStageTaskStatus, is.BeforeStageTaskStatus)
	compare(afterStage, was.AfterStageTaskStatus, is.AfterStageTaskStatus)
	return events
}

// progress tells when a run begins to wait, is stuck, goes on or is stopped.
func progress(run placementv1.UpdateRunObject, status *placementv1.UpdateRunStatus) []Event {
	if !isTrue(status.Conditions, placementv1.ConditionInitialized) {
		return nil // it was told what is missing
	}
	was := meta.FindStatusCondition(run.UpdateRunStatus().Conditions, placementv1.ConditionProgressing)
	is := meta.FindStatusCondition(status.Conditions, placementv1.ConditionProgressing)
	if is == nil || (was != nil && was.Reason == is.Reason && (is.Reason != placementv1.ReasonUpdateRunWaiting || was.Message == is.Message)) {
		return nil
	}
	switch is.Reason {
	case placementv1.ReasonUpdateRunWaiting:
		return []Event{normal(is.Reason, is.Message).in(waitingPart(status))}
	case placementv1.ReasonUpdateRunStuck:
		return []Event{warning(is.Reason, is.Message).in(waitingPart(status))}
	case placementv1.ReasonUpdateRunStopped:
		return []Event{normal(is.Reason, is.Message)}
	case placementv1.ReasonUpdateRunProgressing:
		if was != nil && was.Reason != placementv1.ReasonUpdateRunWaiting {
			return []Event{normal(is.Reason, "Goes on: "+is.Message)}
		}
	}
	return nil
}

// What is told of the tasks of a stage is told of these fields of it.
const (
	beforeStage = ".beforeStageTaskStatus"
	afterStage  = ".afterStageTaskStatus"
)

// partOf is the field of a run that tells of a stage.
func partOf(stage *placementv1.StageUpdatingStatus) string {
	return "status.stagesStatus{" + stage.StageName + "}"
}

// waitingPart is the field of a run that tells of what it waits for now; empty once all stages are done.
func waitingPart(status *placementv1.UpdateRunStatus) string {
	for i := range status.StagesStatus {
		stage := &status.StagesStatus[i]
		if isTrue(stage.Conditions, placementv1.ConditionSucceeded) {
			continue
		}
		part := partOf(stage)
		waiting := meta.FindStatusCondition(stage.Conditions, placementv1.ConditionProgressing)
		if waiting == nil || waiting.Reason != placementv1.ReasonStageUpdatingWaiting {
			return part
		}
		if strings.HasPrefix(waiting.Message, messageStageBefore) {
			return part + beforeStage
		}
		return part + afterStage
	}
	return ""
}
