package work

import (
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observed is all that a binding's status follows from.
type observed struct {
	binding placementv1.BindingObject
	// cluster is the target; nil where there is no such MemberCluster.
	cluster *schedule.Cluster
	// index is the snapshot's index; empty where the snapshot is not known.
	index string
	// works are the Works that carry the snapshot, all of them, as of our own last write; nil while problem is set.
	works []*placementv1.Work
	// problem is why the Works are not as they should be.
	problem *problem
	// overridden tells that override policies change something.
	overridden bool
	now        time.Time
}

// problem is why the Works of a binding are not, or not yet, as they should be.
type problem struct {
	// failed tells a failure from a wait; override tells that it is about overrides.
	failed, override bool
	message          string
}

func waitFor(format string, args ...any) *problem {
	return &problem{message: fmt.Sprintf(format, args...)}
}

func failure(format string, args ...any) *problem {
	return &problem{failed: true, message: "Failed to synchronize the work to the latest: " + fmt.Sprintf(format, args...)}
}

// statusOf tells how far a binding that has a snapshot has come.
func statusOf(o observed) placementv1.ResourceBindingStatus {
	status := *o.binding.BindingStatus().DeepCopy()
	w := conditionWriter{status: &status, generation: o.binding.GetGeneration(), now: metav1.NewTime(o.now)}
	w.setFresh(placementv1.ConditionRolloutStarted, metav1.ConditionTrue, placementv1.ReasonRolloutStarted, rolloutMessage(o))
	overridden := setOverridden(w, o)
	status.FailedPlacements = failedPlacements(o.works, meta.FindStatusCondition(status.Conditions, placementv1.ConditionOverridden))
	status.DriftedPlacements, status.DiffedPlacements = driftedPlacements(o.works), diffedPlacements(o.works)
	if o.problem != nil {
		reason := placementv1.ReasonWorkNotSynchronizedYet
		if o.problem.failed {
			reason = placementv1.ReasonSyncWorkFailed
		}
		w.set(placementv1.ConditionWorkSynchronized, metav1.ConditionFalse, reason, o.problem.message)
		w.remove(placementv1.ConditionApplied, placementv1.ConditionAvailable, placementv1.ConditionDiffReported)
		return status
	}
	status.ObservedResourceIndex = o.index
	if refused := refusedEntries(o.works); refused != "" {
		w.set(placementv1.ConditionWorkSynchronized, metav1.ConditionFalse, placementv1.ReasonSyncWorkFailed, refused)
		w.remove(placementv1.ConditionApplied, placementv1.ConditionAvailable, placementv1.ConditionDiffReported)
		return status
	}
	w.set(placementv1.ConditionWorkSynchronized, metav1.ConditionTrue, placementv1.ReasonAllWorkSynced,
		"All of the works are synchronized to the latest")
	if o.binding.BindingSpec().ApplyStrategy.ReportsOnly() {
		w.remove(placementv1.ConditionApplied, placementv1.ConditionAvailable)
		if !overridden { // what was compared is not what the cluster is to have
			w.remove(placementv1.ConditionDiffReported)
			return status
		}
		setDiffReported(w, o)
		return status
	}
	w.remove(placementv1.ConditionDiffReported)
	if !setApplied(w, o) || !overridden { // what is available is not what the cluster is to have
		w.remove(placementv1.ConditionAvailable)
		return status
	}
	setAvailable(w, o)
	return status
}

func rolloutMessage(o observed) string {
	message := "Detected the new changes on the resources and started the rollout process"
	if o.index != "" {
		message += ", resourceSnapshotIndex: " + o.index
	}
	if run := o.binding.GetAnnotations()[placementv1.AnnotationUpdateRun]; run != "" {
		message += ", updateRun: " + run
	}
	return message
}

// setApplied tells whether the member has applied everything.
func setApplied(w conditionWriter, o observed) bool {
	var waiting *placementv1.Work
	var answer *metav1.Condition
	for _, work := range o.works {
		switch outcome, applied := appliedOutcome(work); outcome {
		case outcomeFailed:
			w.set(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied,
				fmt.Sprintf("Cluster %q has failed to apply work object %s: %s", o.binding.BindingSpec().TargetCluster, work.Name,
					firstProblem(work, placementv1.ConditionApplied, applied.Message)))
			return false
		case outcomeWaiting:
			if waiting == nil {
				waiting, answer = work, applied
			}
		case outcomeDone:
		}
	}
	if waiting != nil {
		message := fmt.Sprintf("the agent of cluster %q has not answered for work object %s yet", o.binding.BindingSpec().TargetCluster, waiting.Name)
		if answer != nil {
			message = fmt.Sprintf("the agent of cluster %q says of work object %s: %s",
				o.binding.BindingSpec().TargetCluster, waiting.Name, firstAwaited(waiting, answer.Message))
		}
		w.set(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonApplyInProgress,
			"Resources are being applied: "+message+trouble(o.cluster))
		return false
	}
	w.set(placementv1.ConditionApplied, metav1.ConditionTrue, placementv1.ReasonAllWorkHaveBeenApplied,
		"All corresponding work objects are applied")
	return true
}

// setAvailable tells whether everything is available in the member, once it is applied.
func setAvailable(w conditionWriter, o observed) {
	var untrackable *placementv1.Work
	for _, work := range o.works {
		available := current(work, placementv1.ConditionAvailable)
		switch {
		case available == nil:
			w.set(placementv1.ConditionAvailable, metav1.ConditionFalse, placementv1.ReasonNotAllWorkAreAvailable,
				fmt.Sprintf("Work object %s has not yet completed availability check%s", work.Name, trouble(o.cluster)))
			return
		case available.Status != metav1.ConditionTrue:
			w.set(placementv1.ConditionAvailable, metav1.ConditionFalse, placementv1.ReasonNotAllWorkAreAvailable,
				fmt.Sprintf("Work object %s is not yet available in cluster %q: %s%s", work.Name, o.binding.BindingSpec().TargetCluster,
					firstProblem(work, placementv1.ConditionAvailable, available.Message), trouble(o.cluster)))
			return
		case available.Reason == placementv1.ReasonWorkNotTrackable && untrackable == nil:
			untrackable = work
		}
	}
	// What a member said before it fell silent is no news of how it is now.
	if o.cluster != nil && o.cluster.Disconnected != "" && o.cluster.Disconnected != schedule.NotOnlineYet {
		w.set(placementv1.ConditionAvailable, metav1.ConditionUnknown, placementv1.ReasonAvailableUnknown,
			"All corresponding work objects were available when the member was last heard of"+trouble(o.cluster))
		return
	}
	if untrackable != nil {
		w.set(placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonNotAllWorkAreAvailabilityTrackable,
			fmt.Sprintf("The availability of work object %s is not trackable", untrackable.Name))
		return
	}
	w.set(placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonAllWorkAreAvailable,
		"All corresponding work objects are available")
}

// outcome is how far a member has come with a Work.
type outcome int

const (
	outcomeWaiting outcome = iota // no answer for the Work as it is
	outcomeFailed
	outcomeDone
)

// appliedOutcome tells whether the member has applied a Work as it is now, and what it says of that; nil where it has not
// answered. What it said of an earlier generation does
// not count, and an object that it is about to apply is not one that it failed to.
func appliedOutcome(work *placementv1.Work) (outcome, *metav1.Condition) {
	applied := current(work, placementv1.ConditionApplied)
	switch {
	case applied == nil || applied.Status == metav1.ConditionUnknown:
		return outcomeWaiting, applied
	case applied.Status == metav1.ConditionTrue:
		return outcomeDone, applied
	}
	refused, preparing := false, false
	for i := range work.Status.ManifestConditions {
		c := meta.FindStatusCondition(work.Status.ManifestConditions[i].Conditions, placementv1.ConditionApplied)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue:
		case placementv1.IsAboutToBeApplied(c.Reason):
			preparing = true
		default:
			refused = true
		}
	}
	if preparing && !refused {
		return outcomeWaiting, applied
	}
	return outcomeFailed, applied
}

// current returns a Work's condition if it is about the Work as it is now.
func current(work *placementv1.Work, conditionType string) *metav1.Condition {
	c := meta.FindStatusCondition(work.Status.Conditions, conditionType)
	if c == nil || c.ObservedGeneration != work.Generation {
		return nil
	}
	return c
}

// trouble says what is wrong with a cluster that is waited for.
func trouble(c *schedule.Cluster) string {
	switch {
	case c == nil:
		return "; the cluster is not a member any more"
	case c.Leaving:
		return "; the cluster is leaving the fleet"
	case c.Disconnected != "":
		return "; the cluster is not connected to the fleet: " + c.Disconnected
	default:
		return ""
	}
}

// conditionWriter sets conditions of one binding for one generation.
type conditionWriter struct {
	status     *placementv1.ResourceBindingStatus
	generation int64
	now        metav1.Time
}

func (w conditionWriter) set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&w.status.Conditions, metav1.Condition{
		Type:               conditionType,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: w.generation,
		LastTransitionTime: w.now,
	})
}

// setFresh sets a condition whose transition is a new message, too: another snapshot, or another run, starts anew.
func (w conditionWriter) setFresh(conditionType string, status metav1.ConditionStatus, reason, message string) {
	if c := meta.FindStatusCondition(w.status.Conditions, conditionType); c != nil && c.Message != message {
		c.LastTransitionTime = w.now
	}
	w.set(conditionType, status, reason, message)
}

func (w conditionWriter) remove(conditionTypes ...string) {
	for _, t := range conditionTypes {
		meta.RemoveStatusCondition(&w.status.Conditions, t)
	}
}
