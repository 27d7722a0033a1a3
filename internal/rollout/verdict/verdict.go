// Package verdict tells how a cluster fares with what its binding gives it: the one judgement that update runs, rolling
// updates and evictions share. It does no I/O.
package verdict

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verdict is how a cluster fares.
type Verdict int

const (
	// InProgress is a cluster of which it is not known yet how it will end.
	InProgress Verdict = iota
	// Failing is a cluster that says, or of which the hub says, that it cannot have what its binding gives it.
	Failing
	// Done is a cluster in which all of it is available.
	Done
)

// What can be wrong with a cluster that was given a snapshot.
const (
	TroubleApply    = "applying failed there and is tried again"
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
