package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationRebalance, on an object that a policy claims or on the policy, is an RFC 3339 time: where it is later than that of
	// the last rebalancing, the replicas are divided anew as if for the first time.
	AnnotationRebalance = "fleetwright.io/rebalance-triggered-at"
	// AnnotationObjectVersion is, on an internal placement of a policy with activationPreference Lazy, the version of the object for
	// which the policy was read last: a later policy counts once the object has another.
	AnnotationObjectVersion = "fleetwright.io/object-version"
	// AnnotationObjects, on the first part of a revision of an object that a policy claims, lists as JSON what override policies can
	// select by: of each object of the revision the apiVersion, the kind, the namespace, the name and the labels. It is absent where that
	// would be more than 64 KiB.
	AnnotationObjects = "fleetwright.io/objects"
	// FinalizerObjectPlacement holds an internal placement until what was placed is gone from the members, or released there.
	FinalizerObjectPlacement = "fleetwright.io/object-placement"
)

// RebalanceAsked is when somebody asked for a rebalancing by AnnotationRebalance; nil where nobody did, or where it is no time.
func RebalanceAsked(annotations map[string]string) *metav1.Time {
	at, err := time.Parse(time.RFC3339, annotations[AnnotationRebalance])
	if err != nil {
		return nil
	}
	t := metav1.NewTime(at)
	return &t
}
