package v1

import "k8s.io/apimachinery/pkg/util/intstr"

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
	// reportBackStrategy says whether the statuses that placed objects have in the members are reported back, and where to.
	// Left out, they are not. An edit travels as a new resource snapshot does.
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
	// deleteStrategy says what becomes of the objects in the members when the placement is deleted. It counts as it is then.
	// +optional
	// +kubebuilder:default={}
	DeleteStrategy *DeleteStrategy `json:"deleteStrategy,omitempty"`
	// rollingUpdate says how many clusters a change of type RollingUpdate may touch at once. Left out, its defaults hold. With
	// type External it means nothing.
	// +optional
	RollingUpdate *RollingUpdateConfig `json:"rollingUpdate,omitempty"`
}

// RollingUpdateConfig is the budget of a rolling update: new clusters, updates and removals share it.
type RollingUpdateConfig struct {
	// maxUnavailable is how many clusters may be unavailable at once because of an update: a number from 0 to 1000000, or a
	// percentage of the clusters that the placement wants, from 0% to 100%, rounded up. A cluster is unavailable until all that
	// it was given is available there. With 0 no cluster is updated in place; one that takes another's place still comes first,
	// within maxSurge. Default: 25%.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="maxUnavailable must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 1000000",message="maxUnavailable must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^((100|[0-9]{1,2})%|[0-9]+)$')",message="maxUnavailable must be a number of clusters, such as 2, or a whole percentage from 0% to 100%, such as 25%"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || !self.matches('^[0-9]+$') || int(self) <= 1000000",message="maxUnavailable must be from 0 to 1000000"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxSurge is how many clusters beyond those that the placement wants may hold its objects at once, while some replace
	// others: a number from 0 to 1000000, or a percentage of the wanted clusters from 0% to 100%, rounded up. Default: 25%.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="maxSurge must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 1000000",message="maxSurge must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^((100|[0-9]{1,2})%|[0-9]+)$')",message="maxSurge must be a number of clusters, such as 2, or a whole percentage from 0% to 100%, such as 25%"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || !self.matches('^[0-9]+$') || int(self) <= 1000000",message="maxSurge must be from 0 to 1000000"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// unavailablePeriodSeconds is how long a cluster counts as unavailable after it was updated where nothing tells whether
	// what it was given is available, in seconds; 0 to 31536000, which is a year. Default: 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	UnavailablePeriodSeconds *int32 `json:"unavailablePeriodSeconds,omitempty"`
}

const (
	// DefaultMaxUnavailable and DefaultMaxSurge hold where a placement does not say.
	DefaultMaxUnavailable = "25%"
	DefaultMaxSurge       = "25%"
	// DefaultUnavailablePeriodSeconds holds where a placement does not say.
	DefaultUnavailablePeriodSeconds int32 = 60
)

// IsExternal tells whether only update runs may move the placement's clusters.
func (s *PlacementSpec) IsExternal() bool { return s.Strategy.Type == ExternalRolloutStrategyType }
