package v1

// DeletePropagationPolicy says what becomes of what was placed when its placement is deleted.
// +kubebuilder:validation:Enum=Delete;Abandon
type DeletePropagationPolicy string

const (
	// DeletePropagationPolicyDelete removes it from the members.
	DeletePropagationPolicyDelete DeletePropagationPolicy = "Delete"
	// DeletePropagationPolicyAbandon leaves it in the members, where it is the fleet's no more.
	DeletePropagationPolicyAbandon DeletePropagationPolicy = "Abandon"
)

// DeleteStrategy says what becomes of what was placed when its placement is deleted.
type DeleteStrategy struct {
	// propagationPolicy is Delete, which removes the objects from the members with the placement, or Abandon, which leaves them
	// there, owned by nobody in the fleet. What a placement that is not deleted no longer selects, and what is in a cluster
	// that it no longer chooses, is removed with either. Default: Delete.
	// +optional
	// +kubebuilder:default=Delete
	PropagationPolicy DeletePropagationPolicy `json:"propagationPolicy,omitempty"`
}

// Abandons tells whether what was placed stays in the members.
func (s *DeleteStrategy) Abandons() bool {
	return s != nil && s.PropagationPolicy == DeletePropagationPolicyAbandon
}
