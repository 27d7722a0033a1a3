package updaterun

import (
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// World is all that one decision about the runs of a placement is made from. Nothing in it is changed.
type World struct {
	// Kinds are the kinds of the placement's scope.
	Kinds *placement.Kinds
	// Key names the placement.
	Key placement.Key
	// Now is the time.
	Now time.Time
	// Placement is the placement; nil where there is none.
	Placement placementv1.PlacementObject
	// Runs are all runs of the placement, those that are finished or being deleted included.
	Runs []placementv1.UpdateRunObject
	// Unwritten are, by the run's UID, statuses of earlier Results that were allowed to wait and are not stored yet. It may
	// be lost: what they say is found out again.
	Unwritten map[types.UID]*placementv1.UpdateRunStatus
	// Plans are the plans of the runs that Unplanned names, by the run's UID.
	Plans map[types.UID]Plan
	// Bindings are those under the placement's name.
	Bindings []placementv1.BindingObject
	// Fleet is the member clusters.
	Fleet schedule.Fleet
	// Overrides are the snapshots that the runs' plans name. A cluster is not given one that is neither known nor known to be gone.
	Overrides override.Known
	// Requests are the approval requests that RequestNames names, as far as they exist, by name.
	Requests map[string]placementv1.ApprovalRequestObject
}

// Result is what is to be written for one run, in the order of the fields, and what is to be told.
type Result struct {
	// Run is the run as it was observed.
	Run placementv1.UpdateRunObject
	// Start are bindings, changed so that their clusters are given the run's snapshot.
	Start []placementv1.BindingObject
	// Delete are bindings to be deleted, as they were observed.
	Delete []placementv1.BindingObject
	// Create are approval requests to be made.
	Create []placementv1.ApprovalRequestObject
	// Answer are approval requests whose status was changed: accepted or closed.
	Answer []placementv1.ApprovalRequestObject
	// Status is the run's new status.
	Status *placementv1.UpdateRunStatus
	// MayWait tells that nothing but the progress of clusters is new in Status. It need not be written at once, if it is
	// then among the Unwritten; everything else of the Result is.
	MayWait bool
	// Events are what is to be told once the status is written.
	Events []Event
	// RequeueAfter is when time alone will change the decision; 0 means never.
	RequeueAfter time.Duration
	// Notes say what was decided and why.
	Notes []string
}

// Event is something that happened to a run.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is a condition's reason.
	Reason string
	// Message is for a person.
	Message string
	// Cluster is the member that this is about; empty where it is about the run, or about several.
	Cluster string
	// Part is the field of the run that this is about, such as status.stagesStatus{canary}; empty where it is about all of it.
	// Of events with one reason those of another Cluster, or Part, are others, and not the same once more.
	Part string
}

// of tells which cluster an event is about.
func (e Event) of(cluster string) Event {
	e.Cluster = cluster
	return e
}

// in tells which part of the run an event is about.
func (e Event) in(part string) Event {
	e.Part = part
	return e
}

func normal(reason, message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}

func warning(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}

// stamp is what all conditions written in one pass share.
type stamp struct {
	generation int64
	now        metav1.Time
}

func (w *World) stampFor(run placementv1.UpdateRunObject) stamp {
	return stamp{generation: run.GetGeneration(), now: metav1.NewTime(w.Now.Truncate(time.Second))}
}

// longestMessage is how many bytes of a message are kept. Members and people have a part in some, and the API refuses a
// status of which one message is longer than 32 KB. A kilobyte is more than a person reads.
const longestMessage = 1 << 10

// set sets a condition. Its transition time changes with its status alone.
func (s stamp) set(conditions *[]metav1.Condition, conditionType string, status metav1.ConditionStatus, reason, message string) {
	s.setAt(conditions, conditionType, status, reason, message, s.now)
}

func (s stamp) setAt(conditions *[]metav1.Condition, conditionType string, status metav1.ConditionStatus, reason, message string, since metav1.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               conditionType,
		Status:             status,
		Reason:             reason,
		Message:            placement.Cut(message, longestMessage),
		ObservedGeneration: s.generation,
		LastTransitionTime: since,
	})
}

// refresh makes every condition one of the run's generation: all of them are looked at again in every pass.
func (s stamp) refresh(status *placementv1.UpdateRunStatus) {
	refresh := func(conditions []metav1.Condition) {
		for i := range conditions {
			conditions[i].ObservedGeneration = s.generation
		}
	}
	refresh(status.Conditions)
	forEachStage(status, func(stage *placementv1.StageUpdatingStatus) {
		refresh(stage.Conditions)
		for i := range stage.Clusters {
			refresh(stage.Clusters[i].Conditions)
		}
		for _, tasks := range [][]placementv1.StageTaskStatus{stage.BeforeStageTaskStatus, stage.AfterStageTaskStatus} {
			for i := range tasks {
				refresh(tasks[i].Conditions)
			}
		}
	})
}

// forEachStage visits all stages, the deletion stage last.
func forEachStage(status *placementv1.UpdateRunStatus, visit func(*placementv1.StageUpdatingStatus)) {
	for i := range status.StagesStatus {
		visit(&status.StagesStatus[i])
	}
	if status.DeletionStageStatus != nil {
		visit(status.DeletionStageStatus)
	}
}

func isTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}

func isFalse(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionFalse(conditions, conditionType)
}
