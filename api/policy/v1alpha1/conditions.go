package v1alpha1

// ConditionReady tells whether a policy does what it says: it has objects, and of all of them it is decided where they go.
const ConditionReady = "Ready"

// Reasons of ConditionReady.
const (
	// ReasonPropagated: it is decided where all of its objects go.
	ReasonPropagated = "Propagated"
	// ReasonNothingClaimed: the policy has no object. What it selects does not exist, or belongs to another policy.
	ReasonNothingClaimed = "NothingClaimed"
	// ReasonNotPropagated: of some of its objects it is not decided where they go.
	ReasonNotPropagated = "NotPropagated"
	// ReasonInvalidSelector: a selector cannot be understood. Nothing changes in the members until it is corrected.
	ReasonInvalidSelector = "InvalidSelector"
)
