package v1

// RolloutStrategyType says who moves a placement's clusters to a new resource snapshot.
// +kubebuilder:validation:Enum=RollingUpdate;External
type RolloutStrategyType string

const (
	// RollingUpdateRolloutStrategyType lets the hub move the clusters by itself as soon as the resources change.
	RollingUpdateRolloutStrategyType RolloutStrategyType = "RollingUpdate"
	// ExternalRolloutStrategyType leaves every move to update runs.
	ExternalRolloutStrategyType RolloutStrategyType = "External"
)

// RolloutStrategy says how a change reaches the clusters.
type RolloutStrategy struct {
	// type is RollingUpdate, where the hub moves clusters by itself, or External, where only update runs do. Default:
	// RollingUpdate. External cannot be changed back.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type RolloutStrategyType `json:"type,omitempty"`
	// applyStrategy says how the objects are brought into the members, and what becomes of what is there already. An edit
	// travels as a new resource snapshot does.
	// +optional
	// +kubebuilder:default={}
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
}

// IsExternal tells whether only update runs may move the placement's clusters.
func (s *PlacementSpec) IsExternal() bool { return s.Strategy.Type == ExternalRolloutStrategyType }
