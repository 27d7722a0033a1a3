// Package verdict tells how a cluster fares with what its binding gives it: the one judgement that update runs, rolling
// updates and evictions share. It does no I/O.
package verdict

import (
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Verdict is how a cluster fares.
type Verdict int

const (
	// InProgress is a cluster of which it is not known yet how it will end.
	InProgress Verdict = iota
	// Failing is a cluster that says, or of which the hub says, that it cannot have what its binding gives it.
	Failing
	// Done is a cluster in which all of it is available or, where nothing is written, compared.
	Done
)

// What can be wrong with a cluster that was given a snapshot.
const (
	TroubleApply    = "applying failed there and is tried again"
	TroubleDiff     = "what is there cannot be compared; that is tried again"
	TroubleSync     = "the hub could not write what it is to apply, and tries again"
	TroubleOverride = "what it is to apply could not be made from its overrides"
	TroubleHealth   = "what was applied there has failed, or cannot be told to be available"
)

// Of tells how a binding's cluster fares. Only what was said of the binding as it is now counts, and what is merely not there
// yet is no failure; of one that is, trouble says what.
func Of(b placementv1.BindingObject) (v Verdict, trouble string) {
	available := Current(b, placementv1.ConditionAvailable)
	if is(available, metav1.ConditionTrue) {
		return Done, ""
	}
	switch reported := Current(b, placementv1.ConditionDiffReported); {
	case !b.BindingSpec().ApplyStrategy.ReportsOnly():
	case is(reported, metav1.ConditionTrue):
		return Done, ""
	case is(reported, metav1.ConditionFalse) && reported.Reason == placementv1.ReasonNotAllWorkHaveDiffReported:
		return Failing, TroubleDiff
	}
	if is(Current(b, placementv1.ConditionOverridden), metav1.ConditionFalse) {
		return Failing, TroubleOverride
	}
	if c := Current(b, placementv1.ConditionWorkSynchronized); is(c, metav1.ConditionFalse) && c.Reason == placementv1.ReasonSyncWorkFailed {
		return Failing, TroubleSync
	}
	if c := Current(b, placementv1.ConditionApplied); is(c, metav1.ConditionFalse) && c.Reason == placementv1.ReasonNotAllWorkHaveBeenApplied {
		return Failing, TroubleApply
	}
	if is(available, metav1.ConditionFalse) {
		failed := b.BindingStatus().FailedPlacements
		for i := range failed {
			c := &failed[i].Condition
			if c.Type == placementv1.ConditionAvailable && c.Reason == placementv1.ReasonManifestAvailabilityFailed {
				return Failing, TroubleHealth
			}
		}
	}
	return InProgress, ""
}

// Paused tells of a cluster in progress that all that it waits for is somebody, and names what was paused: nothing is missing
// there but that, and the workloads that a Rollout updates which waits for somebody. Otherwise it returns "".
func Paused(b placementv1.BindingObject) string {
	if !is(Current(b, placementv1.ConditionAvailable), metav1.ConditionFalse) {
		return ""
	}
	first, more := "", 0
	failed := b.BindingStatus().FailedPlacements
	for i := range failed {
		switch c := &failed[i].Condition; {
		case c.Type != placementv1.ConditionAvailable:
			return ""
		case c.Reason == placementv1.ReasonManifestUpdatedByRollout && kruise.IsRollout(kindOf(&failed[i].ResourceIdentifier)):
			return "" // this one is on its way
		case c.Reason == placementv1.ReasonManifestUpdatedByRollout: // whether it waits, its Rollout's own entry says
		case c.Reason != placementv1.ReasonManifestPaused:
			return ""
		case first == "":
			first = placement.ObjectName(failed[i].Kind, failed[i].Namespace, failed[i].Name)
		default:
			more++
		}
	}
	switch {
	case first == "":
		return ""
	case more == 0:
		return first + " is paused"
	default:
		return fmt.Sprintf("%s is paused, and %d more", first, more)
	}
}

// Approvals are the steps of Kruise Rollouts that wait in a binding's cluster to be approved by a person, each once.
func Approvals(b placementv1.BindingObject) []kruise.AwaitedApproval {
	var awaited []kruise.AwaitedApproval
	failed := b.BindingStatus().FailedPlacements
	for i := range failed {
		c := &failed[i].Condition
		if c.Type != placementv1.ConditionAvailable || c.Reason != placementv1.ReasonManifestPaused {
			continue
		}
		if a, ok := kruise.ReadApproval(c.Message); ok && !slices.Contains(awaited, a) {
			awaited = append(awaited, a)
		}
	}
	return awaited
}

func kindOf(id *placementv1.ResourceIdentifier) schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// Current returns a binding's condition if it is about the binding as it is now; nil where there is none such.
func Current(b placementv1.BindingObject, conditionType string) *metav1.Condition {
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, conditionType)
	if c == nil || c.ObservedGeneration != b.GetGeneration() {
		return nil
	}
	return c
}

func is(c *metav1.Condition, status metav1.ConditionStatus) bool {
	return c != nil && c.Status == status
}
