package v1alpha1

// Conditions of an internal placement.
const (
	// ConditionScheduled tells whether it is decided which clusters have the object, and how many replicas each.
	ConditionScheduled = "Scheduled"
	// ConditionApplied tells whether all of these clusters have the object as it is now.
	ConditionApplied = "Applied"
	// ConditionAvailable tells whether it is available in all of them.
	ConditionAvailable = "Available"
)

// Reasons of ConditionScheduled.
const (
	// ReasonScheduled: it is decided.
	ReasonScheduled = "Scheduled"
	// ReasonUnschedulable: the clusters have too little room for the replicas; nothing has changed in the members.
	ReasonUnschedulable = "Unschedulable"
	// ReasonNoClusterFit: no cluster, or too few, may have the object; nothing has changed in the members.
	ReasonNoClusterFit = "NoClusterFit"
	// ReasonSchedulingSuspended: the policy holds decisions back.
	ReasonSchedulingSuspended = "SchedulingSuspended"
	// ReasonAwaitingOverrides: an override policy does not exist that must before anything is decided.
	ReasonAwaitingOverrides = "AwaitingOverrides"
	// ReasonInvalidPolicy: what the policy says of the clusters cannot be understood; nothing has changed in the members.
	ReasonInvalidPolicy = "InvalidPolicy"
	// ReasonInvalidObject: the object cannot be placed as it is.
	ReasonInvalidObject = "InvalidObject"
	// ReasonReleased: no policy selects the object any more; its copies stay as they are.
	ReasonReleased = "Released"
	// ReasonRemoving: the object was deleted, and its copies are being removed.
	ReasonRemoving = "Removing"
)

// Reasons of ConditionApplied and ConditionAvailable.
const (
	// ReasonApplied: all clusters have applied the object as it is.
	ReasonApplied = "AppliedInAllClusters"
	// ReasonApplying: some have not, or not yet.
	ReasonApplying = "NotAppliedInAllClusters"
	// ReasonAvailable: the object is available in all clusters.
	ReasonAvailable = "AvailableInAllClusters"
	// ReasonNotAvailable: it is not, or not yet, in some.
	ReasonNotAvailable = "NotAvailableInAllClusters"
)
