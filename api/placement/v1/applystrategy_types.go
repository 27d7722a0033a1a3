package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplyStrategyType says how the objects are written in the members.
// +kubebuilder:validation:Enum=ClientSideApply;ServerSideApply;ReportDiff
type ApplyStrategyType string

const (
	// ApplyStrategyTypeClientSideApply makes every field that a manifest says what it says, and takes away a field that the
	// manifest says no longer. Fields that it never said are left alone.
	ApplyStrategyTypeClientSideApply ApplyStrategyType = "ClientSideApply"
	// ApplyStrategyTypeServerSideApply is the same, but that a field which somebody else owns is a conflict, unless forced.
	ApplyStrategyTypeServerSideApply ApplyStrategyType = "ServerSideApply"
	// ApplyStrategyTypeReportDiff writes nothing, and reports in what the members differ from the hub.
	ApplyStrategyTypeReportDiff ApplyStrategyType = "ReportDiff"
)

// ComparisonOptionType says what of an object is compared.
// +kubebuilder:validation:Enum=PartialComparison;FullComparison
type ComparisonOptionType string

const (
	// ComparisonOptionTypePartial compares the fields that the manifest says.
	ComparisonOptionTypePartial ComparisonOptionType = "PartialComparison"
	// ComparisonOptionTypeFull compares all of the object, fields that only the member has included.
	ComparisonOptionTypeFull ComparisonOptionType = "FullComparison"
)

// WhenToApplyType says what becomes of an object that was changed in a member.
// +kubebuilder:validation:Enum=Always;IfNotDrifted
type WhenToApplyType string

const (
	// WhenToApplyTypeAlways makes it what the hub says again.
	WhenToApplyTypeAlways WhenToApplyType = "Always"
	// WhenToApplyTypeIfNotDrifted leaves it as it is, and reports what was changed, until the hub's object changes.
	WhenToApplyTypeIfNotDrifted WhenToApplyType = "IfNotDrifted"
)

// WhenToTakeOverType says what becomes of an object that was in a member before it was placed there.
// +kubebuilder:validation:Enum=Always;IfNoDiff;Never
type WhenToTakeOverType string

const (
	// WhenToTakeOverTypeAlways takes it over.
	WhenToTakeOverTypeAlways WhenToTakeOverType = "Always"
	// WhenToTakeOverTypeIfNoDiff takes it over if it is as the hub has it, and reports in what it differs if not.
	WhenToTakeOverTypeIfNoDiff WhenToTakeOverType = "IfNoDiff"
	// WhenToTakeOverTypeNever leaves it alone.
	WhenToTakeOverTypeNever WhenToTakeOverType = "Never"
)

// ApplyStrategy says how the objects are brought into the members, and what becomes of what is there already.
// +kubebuilder:validation:XValidation:rule="!has(self.serverSideApplyConfig) || self.type == 'ServerSideApply'",message="serverSideApplyConfig is only valid for ServerSideApply strategy type"
type ApplyStrategy struct {
	// type is how the objects are written: ClientSideApply, ServerSideApply, or ReportDiff, which writes nothing. Default:
	// ClientSideApply.
	// +optional
	// +kubebuilder:default=ClientSideApply
	Type ApplyStrategyType `json:"type,omitempty"`
	// comparisonOption is what is compared where objects are compared: the fields that the manifest says
	// (PartialComparison), or all of the object (FullComparison). Default: PartialComparison.
	// +optional
	// +kubebuilder:default=PartialComparison
	ComparisonOption ComparisonOptionType `json:"comparisonOption,omitempty"`
	// whenToApply says whether an object that was changed in a member is put right (Always), or reported and left as it is
	// (IfNotDrifted). Default: Always.
	// +optional
	// +kubebuilder:default=Always
	WhenToApply WhenToApplyType `json:"whenToApply,omitempty"`
	// whenToTakeOver says whether an object that is in a member already is taken over: Always, IfNoDiff or Never. Default:
	// Always.
	// +optional
	// +kubebuilder:default=Always
	WhenToTakeOver WhenToTakeOverType `json:"whenToTakeOver,omitempty"`
	// allowCoOwnership lets an object have owners of its own in a member beside the fleet. It then outlives the placement.
	// Default: false.
	// +optional
	AllowCoOwnership bool `json:"allowCoOwnership,omitempty"`
	// serverSideApplyConfig is for the type ServerSideApply.
	// +optional
	ServerSideApplyConfig *ServerSideApplyConfig `json:"serverSideApplyConfig,omitempty"`
}

// ServerSideApplyConfig says how ServerSideApply goes about conflicts.
type ServerSideApplyConfig struct {
	// force takes fields away from others that own them. Without it a field of somebody else's, with another value, is a
	// conflict, which is reported, and the object is left as it is. Default: false.
	// +optional
	Force bool `json:"force,omitempty"`
}

// WithDefaults returns the strategy as it is meant; nil is the default.
func (s *ApplyStrategy) WithDefaults() ApplyStrategy {
	var full ApplyStrategy
	if s != nil {
		full = *s.DeepCopy()
	}
	orDefault(&full.Type, ApplyStrategyTypeClientSideApply)
	orDefault(&full.ComparisonOption, ComparisonOptionTypePartial)
	orDefault(&full.WhenToApply, WhenToApplyTypeAlways)
	orDefault(&full.WhenToTakeOver, WhenToTakeOverTypeAlways)
	if full.ServerSideApplyConfig != nil && !full.ServerSideApplyConfig.Force {
		full.ServerSideApplyConfig = nil
	}
	return full
}

func orDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// Same tells whether two strategies mean the same: what one leaves out has its default.
func (s *ApplyStrategy) Same(other *ApplyStrategy) bool {
	a, b := s.WithDefaults(), other.WithDefaults()
	forceA, forceB := a.ServerSideApplyConfig != nil, b.ServerSideApplyConfig != nil
	a.ServerSideApplyConfig, b.ServerSideApplyConfig = nil, nil
	return a == b && forceA == forceB
}

// ReportsOnly tells whether nothing is written in the members.
func (s *ApplyStrategy) ReportsOnly() bool {
	return s != nil && s.Type == ApplyStrategyTypeReportDiff
}

// PatchDetail is one place in which an object of a member differs from the hub's.
type PatchDetail struct {
	// path is where, as a JSON pointer; "/" stands for the whole object.
	Path string `json:"path"`
	// valueInMember is what the member has there; absent where it has nothing. A long value is cut, one that is no text is
	// JSON, and what a Secret holds is not shown.
	// +optional
	ValueInMember string `json:"valueInMember,omitempty"`
	// valueInHub is what the hub has there; absent where it has nothing.
	// +optional
	ValueInHub string `json:"valueInHub,omitempty"`
}

// DriftDetails are the changes that somebody made, in a member, to an object after it was applied.
type DriftDetails struct {
	// observationTime is when the changes were first seen as they are now.
	ObservationTime metav1.Time `json:"observationTime"`
	// observedInMemberClusterGeneration is the object's generation in the member then.
	ObservedInMemberClusterGeneration int64 `json:"observedInMemberClusterGeneration"`
	// firstDriftedObservedTime is since when there has been any change at all.
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`
	// observedDrifts are the places; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffDetails are the differences between the hub's object and one in a member that the fleet does not write, or not yet.
type DiffDetails struct {
	// observationTime is when the differences were first seen as they are now.
	ObservationTime metav1.Time `json:"observationTime"`
	// observedInMemberClusterGeneration is the object's generation in the member then; absent where it is not there.
	// +optional
	ObservedInMemberClusterGeneration *int64 `json:"observedInMemberClusterGeneration,omitempty"`
	// firstDiffedObservedTime is since when there has been any difference at all.
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`
	// observedDiffs are the places; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// DriftedResourcePlacement is an object that somebody changed in a member after it was applied.
type DriftedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// observationTime is when the changes were first seen as they are now.
	ObservationTime metav1.Time `json:"observationTime"`
	// targetClusterObservedGeneration is the object's generation in the member then.
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`
	// firstDriftedObservedTime is since when there has been any change at all.
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`
	// observedDrifts are the places; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffedResourcePlacement is an object of which a member's differs from the hub's.
type DiffedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// observationTime is when the differences were first seen as they are now.
	ObservationTime metav1.Time `json:"observationTime"`
	// targetClusterObservedGeneration is the object's generation in the member then; absent where it is not there.
	// +optional
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration,omitempty"`
	// firstDiffedObservedTime is since when there has been any difference at all.
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`
	// observedDiffs are the places; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}
