package updaterun

import (
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// gate is how an approval stands.
type gate struct {
	// open tells whether it was approved, and recorded whether the run's status says so already.
	open, recorded bool
	// request names the request.
	request string
	// odd says, as the end of a message, what keeps an answer from counting.
	odd string
}

// beforeGate looks at the gate before a stage.
func (s *step) beforeGate(stage *placementv1.StageUpdatingStatus) gate {
	for i := range stage.BeforeStageTaskStatus {
		if task := &stage.BeforeStageTaskStatus[i]; task.Type == placementv1.StageTaskTypeApproval {
			return s.approval(stage, task, placementv1.TaskTypeBeforeStage)
		}
	}
	return gate{open: true, recorded: true}
}

// afterGates looks at all gates after a stage whose clusters are done: they run side by side.
func (s *step) afterGates(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus) (odd string, open bool) {
	open = true
	for i := range stage.AfterStageTaskStatus {
		switch task := &stage.AfterStageTaskStatus[i]; task.Type {
		case placementv1.StageTaskTypeTimedWait:
			open = s.wait(stage, task, config.AfterStageTasks[i].WaitTime.Duration) && open
		case placementv1.StageTaskTypeApproval:
			g := s.approval(stage, task, placementv1.TaskTypeAfterStage)
			open, odd = g.open && open, odd+g.odd
		}
	}
	return odd, open
}

// wait looks at a wait, which begins when it is first looked at.
func (s *step) wait(stage *placementv1.StageUpdatingStatus, task *placementv1.StageTaskStatus, long time.Duration) (over bool) {
	if isTrue(task.Conditions, placementv1.ConditionWaitTimeElapsed) {
		return true
	}
	if meta.FindStatusCondition(task.Conditions, placementv1.ConditionWaitTimeElapsed) == nil {
		began := metav1.NewTime(roundUp(s.w.Now))
		s.setAt(&task.Conditions, placementv1.ConditionWaitTimeElapsed, metav1.ConditionFalse, placementv1.ReasonStageTaskWaiting,
			fmt.Sprintf("Waiting %s, until %s", long, began.Add(long).UTC().Format(time.RFC3339)), began)
		s.note("stage %s waits %s", stage.StageName, long)
	}
	end := meta.FindStatusCondition(task.Conditions, placementv1.ConditionWaitTimeElapsed).LastTransitionTime.Add(long)
	if s.w.Now.Before(end) {
		s.wakeAt(end)
		return false
	}
	s.set(&task.Conditions, placementv1.ConditionWaitTimeElapsed, metav1.ConditionTrue, placementv1.ReasonStageTaskWaitTimeElapsed, messageWaitElapsed)
	s.note("stage %s has waited %s", stage.StageName, long)
	return true
}

// approval looks at an approval request, and asks for it to be made where there is none. An approval counts for the run
// and stage that the request names, at the request's generation. Once the run has taken note, nothing takes it back.
func (s *step) approval(stage *placementv1.StageUpdatingStatus, task *placementv1.StageTaskStatus, taskType string) gate {
	g := gate{request: task.ApprovalRequestName}
	request := s.w.Requests[task.ApprovalRequestName]
	g.odd = s.oddity(request, stage.StageName)
	usable := request != nil && g.odd == ""
	if isTrue(task.Conditions, placementv1.ConditionApprovalRequestApproved) {
		g.open, g.recorded, g.odd = true, true, ""
		if usable && !accepted(request) {
			s.accept(request)
		}
		return g
	}
	if g.odd != "" {
		return g
	}
	if request == nil {
		if s.stopping {
			return g
		}
		s.result.Create = append(s.result.Create, s.newRequest(stage.StageName, task.ApprovalRequestName, taskType))
		s.note("ask for approval by request %s", task.ApprovalRequestName)
	}
	s.set(&task.Conditions, placementv1.ConditionApprovalRequestCreated, metav1.ConditionTrue, placementv1.ReasonStageTaskApprovalRequestCreated,
		s.w.Kinds.ApprovalRequest+" is created")
	if request == nil {
		return g
	}
	approved := meta.FindStatusCondition(request.ApprovalRequestStatus().Conditions, placementv1.ConditionApproved)
	isApproved := approved != nil && approved.Status == metav1.ConditionTrue
	switch {
	case !isApproved: // ApprovalAccepted alone, which anybody may write who may approve, says of nobody that he approved
		return g
	case approved.ObservedGeneration == request.GetGeneration():
		if !accepted(request) {
			s.accept(request)
		}
	default:
		g.odd = fmt.Sprintf("; %s %s is approved for its generation %d and has generation %d: approve it with observedGeneration %d",
			s.w.Kinds.ApprovalRequest, request.GetName(), approved.ObservedGeneration, request.GetGeneration(), request.GetGeneration())
		return g
	}
	s.set(&task.Conditions, placementv1.ConditionApprovalRequestApproved, metav1.ConditionTrue, placementv1.ReasonStageTaskApprovalRequestApproved,
		s.w.Kinds.ApprovalRequest+" is approved")
	s.note("approval request %s is approved", request.GetName())
	g.open = true
	return g
}

// todo says, as the end of a message, what lets a stage that waits go on: until when it waits, and what is to be approved,
// or, as odd, what is to be done before.
func (s *step) todo(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus, odd string) string {
	text := ""
	for i := range stage.AfterStageTaskStatus {
		c := meta.FindStatusCondition(stage.AfterStageTaskStatus[i].Conditions, placementv1.ConditionWaitTimeElapsed)
		if c != nil && c.Status == metav1.ConditionFalse {
			text += fmt.Sprintf("; until %s (TimedWait)", waitsUntil(c, config.AfterStageTasks[i].WaitTime.Duration))
		}
	}
	if odd != "" {
		return text + odd
	}
	for _, tasks := range [][]placementv1.StageTaskStatus{stage.BeforeStageTaskStatus, stage.AfterStageTaskStatus} {
		for i := range tasks {
			if !isTrue(tasks[i].Conditions, placementv1.ConditionApprovalRequestCreated) || isTrue(tasks[i].Conditions, placementv1.ConditionApprovalRequestApproved) {
				continue
			}
			namespace := ""
			if s.run.GetNamespace() != "" {
				namespace = " -n " + s.run.GetNamespace()
			}
			text += fmt.Sprintf("; approve %s %s: kubectl amc run approve %s%s --stage %s", s.w.Kinds.ApprovalRequest, tasks[i].ApprovalRequestName,
				s.run.GetName(), namespace, stage.StageName)
		}
	}
	return text
}

// waitsUntil is when a wait ends that the condition says is not over.
func waitsUntil(c *metav1.Condition, long time.Duration) string {
	return c.LastTransitionTime.Add(long).UTC().Format(time.RFC3339)
}

// oddity says why a request of the right name is not one that could be approved.
func (s *step) oddity(request placementv1.ApprovalRequestObject, stage string) string {
	if request == nil {
		return ""
	}
	what := fmt.Sprintf("; %s %s", s.w.Kinds.ApprovalRequest, request.GetName())
	spec := request.ApprovalRequestSpec()
	switch {
	case !request.GetDeletionTimestamp().IsZero():
		return what + " is being deleted and will be made anew when it is gone"
	case spec.TargetUpdateRun != s.run.GetName() || spec.TargetStage != stage:
		return fmt.Sprintf("%s exists already and is for stage %q of update run %q: delete it, and this run makes its own", what, spec.TargetStage, spec.TargetUpdateRun)
	}
	switch owner := runOf(s.w.Kinds, request); {
	case BelongsTo(s.w.Kinds, request, s.run):
		return ""
	case owner != "":
		return what + " is left from an earlier run of this name: delete it, and this run makes its own"
	default:
		return what + " was there before this run, and may be meant for another: delete it, and this run makes its own"
	}
}

// BelongsTo tells whether a request is for a run and not for another, or an earlier one of its name. The requests that a run
// makes carry its UID. One that somebody else made must be younger than the run: before, nobody could know what they
// approved. API servers tell the time in seconds, and of one of the same second nothing is certain.
func BelongsTo(kinds *placement.Kinds, request placementv1.ApprovalRequestObject, run placementv1.UpdateRunObject) bool {
	if request.ApprovalRequestSpec().TargetUpdateRun != run.GetName() {
		return false
	}
	if owner := runOf(kinds, request); owner != "" {
		return owner == run.GetUID()
	}
	return run.GetCreationTimestamp().Time.Before(request.GetCreationTimestamp().Time)
}

// runOf is the UID of the run that a request says it was made by; empty where it names none.
func runOf(kinds *placement.Kinds, request placementv1.ApprovalRequestObject) types.UID {
	for _, owner := range request.GetOwnerReferences() {
		if owner.Kind == kinds.UpdateRun {
			return owner.UID
		}
	}
	return ""
}

func accepted(request placementv1.ApprovalRequestObject) bool {
	return isTrue(request.ApprovalRequestStatus().Conditions, placementv1.ConditionApprovalAccepted)
}

// accept takes note of an approval on the request.
func (s *step) accept(request placementv1.ApprovalRequestObject) {
	s.answer(request, metav1.ConditionTrue, placementv1.ReasonApprovalAccepted, messageAccepted)
}

func (s *step) answer(request placementv1.ApprovalRequestObject, status metav1.ConditionStatus, reason, message string) {
	answered, ok := request.DeepCopyObject().(placementv1.ApprovalRequestObject)
	if !ok {
		return
	}
	of := stamp{generation: request.GetGeneration(), now: s.now}
	of.set(&answered.ApprovalRequestStatus().Conditions, placementv1.ConditionApprovalAccepted, status, reason, message)
	s.result.Answer = append(s.result.Answer, answered)
}

// closeRequests closes a stage's requests that nobody approved before the run ended.
func (s *step) closeRequests(stage *placementv1.StageUpdatingStatus, why string) {
	for _, tasks := range [][]placementv1.StageTaskStatus{stage.BeforeStageTaskStatus, stage.AfterStageTaskStatus} {
		for i := range tasks {
			request := s.w.Requests[tasks[i].ApprovalRequestName]
			if request == nil || s.oddity(request, stage.StageName) != "" || accepted(request) ||
				isTrue(tasks[i].Conditions, placementv1.ConditionApprovalRequestApproved) {
				continue
			}
			s.answer(request, metav1.ConditionFalse, placementv1.ReasonApprovalRequestClosed, "Nothing is left to approve, the run has ended: "+why)
		}
	}
}

// newRequest makes an approval request. It goes with its run.
func (s *step) newRequest(stage, name, taskType string) placementv1.ApprovalRequestObject {
	r := s.w.Kinds.NewApprovalRequest()
	r.SetName(name)
	r.SetNamespace(s.run.GetNamespace())
	r.SetLabels(map[string]string{
		placementv1.LabelTargetUpdateRun:           s.run.GetName(),
		placementv1.LabelTargetUpdatingStage:       stage,
		placementv1.LabelTaskType:                  taskType,
		placementv1.LabelIsLatestUpdateRunApproval: "true",
	})
	r.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: placementv1.GroupVersion.String(), Kind: s.w.Kinds.UpdateRun, Name: s.run.GetName(), UID: s.run.GetUID(),
	}})
	*r.ApprovalRequestSpec() = placementv1.ApprovalRequestSpec{TargetUpdateRun: s.run.GetName(), TargetStage: stage}
	return r
}

// RequestNames returns the names of the approval requests of a run's stages.
func RequestNames(run placementv1.UpdateRunObject) []string {
	var names []string
	forEachStage(run.UpdateRunStatus(), func(stage *placementv1.StageUpdatingStatus) {
		for _, tasks := range [][]placementv1.StageTaskStatus{stage.BeforeStageTaskStatus, stage.AfterStageTaskStatus} {
			for i := range tasks {
				if tasks[i].ApprovalRequestName != "" {
					names = append(names, tasks[i].ApprovalRequestName)
				}
			}
		}
	})
	return names
}
