package v1

// PlacementType says how clusters are chosen.
// +kubebuilder:validation:Enum=PickAll
type PlacementType string

// PickAllPlacementType chooses every cluster that has joined and is healthy.
const PickAllPlacementType PlacementType = "PickAll"

// PlacementPolicy says which clusters receive the objects.
type PlacementPolicy struct {
	// placementType says how clusters are chosen. Default: PickAll. It cannot be changed.
	// +optional
	// +kubebuilder:default=PickAll
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="placement type is immutable"
	PlacementType PlacementType `json:"placementType,omitempty"`
}
