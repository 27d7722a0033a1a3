package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReportBackStrategyType says whether statuses are reported back.
// +kubebuilder:validation:Enum=Disabled;Mirror
type ReportBackStrategyType string

const (
	// ReportBackStrategyTypeDisabled reports no status back.
	ReportBackStrategyTypeDisabled ReportBackStrategyType = "Disabled"
	// ReportBackStrategyTypeMirror reports the status of each object as the member has it.
	ReportBackStrategyTypeMirror ReportBackStrategyType = "Mirror"
)

// ReportBackDestination says where statuses are reported to.
// +kubebuilder:validation:Enum=OriginalResource;WorkAPI
type ReportBackDestination string

const (
	// ReportBackDestinationOriginalResource copies the statuses to the objects on the hub.
	ReportBackDestinationOriginalResource ReportBackDestination = "OriginalResource"
	// ReportBackDestinationWorkAPI keeps the statuses in the Works, for whoever reads those.
	ReportBackDestinationWorkAPI ReportBackDestination = "WorkAPI"
)

// ReportBackStrategy says whether the statuses that objects have in the members are reported back to the hub.
// +kubebuilder:validation:XValidation:rule="self.type != 'Mirror' || has(self.destination)",message="destination must be set when the type is Mirror"
// +kubebuilder:validation:XValidation:rule="self.type == 'Mirror' || !has(self.destination)",message="destination must not be set unless the type is Mirror"
type ReportBackStrategy struct {
	// type is Disabled, where nothing is reported back, or Mirror, where the status of each object is, as the member has it.
	// Default: Disabled.
	// +optional
	// +kubebuilder:default=Disabled
	Type ReportBackStrategyType `json:"type,omitempty"`
	// destination is where the statuses are reported to with the type Mirror: WorkAPI, the status of the Works in the members'
	// namespaces on the hub, or OriginalResource, the status of the object on the hub that was placed, besides. The latter is for
	// placements that choose one cluster at the most. Required with Mirror, and not allowed without.
	// +optional
	Destination ReportBackDestination `json:"destination,omitempty"`
}

// Mirrors tells whether statuses are reported back; by nil they are not.
func (s *ReportBackStrategy) Mirrors() bool {
	return s != nil && s.Type == ReportBackStrategyTypeMirror
}

// ToOriginal tells whether statuses are copied to the objects on the hub.
func (s *ReportBackStrategy) ToOriginal() bool {
	return s.Mirrors() && s.Destination == ReportBackDestinationOriginalResource
}

// ChoosesOneAtMost tells whether the placement can have no more than one cluster.
func (s *PlacementSpec) ChoosesOneAtMost() bool {
	switch {
	case s.Policy == nil:
		return false
	case s.Policy.PlacementType == PickFixedPlacementType:
		return len(s.Policy.ClusterNames) <= 1
	case s.Policy.PlacementType == PickNPlacementType:
		return s.Policy.NumberOfClusters != nil && *s.Policy.NumberOfClusters <= 1
	default:
		return false
	}
}

// Same tells whether two strategies mean the same; nil is Disabled.
func (s *ReportBackStrategy) Same(other *ReportBackStrategy) bool {
	return s.Mirrors() == other.Mirrors() && (!s.Mirrors() || s.Destination == other.Destination)
}

// BackReportedStatus is the status of an object in a member.
type BackReportedStatus struct {
	// observedStatus is an object with the apiVersion and the kind that the member's has, and with its whole status.
	ObservedStatus ResourceContent `json:"observedStatus"`
	// observedInMemberClusterGeneration is the object's metadata.generation in the member at that time, against which an
	// observedGeneration in the status is read; absent for kinds that count none.
	// +optional
	ObservedInMemberClusterGeneration int64 `json:"observedInMemberClusterGeneration,omitempty"`
	// observationTime is when the agent first saw the status as it is.
	ObservationTime metav1.Time `json:"observationTime"`
}
