package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any API object with metadata.
// +kubebuilder:object:generate=false
type Object interface {
	runtime.Object
	metav1.Object
}

// The interfaces below let one piece of code serve the cluster-scoped and the namespaced kind of each object. They
// return pointers into the object, so that what is changed through them is changed in it.
type (
	// ParentObject is what snapshots, bindings and Works belong to: a placement, or the internal placement of an object that
	// a policy claims.
	// +kubebuilder:object:generate=false
	ParentObject interface {
		Object
		// RevisionLimit is how many resource snapshots are kept.
		RevisionLimit() int32
		// Abandons tells whether its deletion leaves in the members what was placed.
		Abandons() bool
	}
	// PlacementObject is a ClusterResourcePlacement or a ResourcePlacement.
	// +kubebuilder:object:generate=false
	PlacementObject interface {
		ParentObject
		PlacementSpec() *PlacementSpec
		PlacementStatus() *PlacementStatus
	}
	// PolicySnapshotObject is a scheduling policy snapshot of either scope.
	// +kubebuilder:object:generate=false
	PolicySnapshotObject interface {
		Object
		PolicySnapshotSpec() *SchedulingPolicySnapshotSpec
		PolicySnapshotStatus() *SchedulingPolicySnapshotStatus
	}
	// ResourceSnapshotObject is a resource snapshot of either scope.
	// +kubebuilder:object:generate=false
	ResourceSnapshotObject interface {
		Object
		ResourceSnapshotSpec() *ResourceSnapshotSpec
	}
	// BindingObject is a resource binding of either scope.
	// +kubebuilder:object:generate=false
	BindingObject interface {
		Object
		BindingSpec() *ResourceBindingSpec
		BindingStatus() *ResourceBindingStatus
	}
	// UpdateStrategyObject is a staged update strategy of either scope.
	// +kubebuilder:object:generate=false
	UpdateStrategyObject interface {
		Object
		UpdateStrategySpec() *UpdateStrategySpec
	}
	// UpdateRunObject is a staged update run of either scope.
	// +kubebuilder:object:generate=false
	UpdateRunObject interface {
		Object
		UpdateRunSpec() *UpdateRunSpec
		UpdateRunStatus() *UpdateRunStatus
	}
	// ApprovalRequestObject is an approval request of either scope.
	// +kubebuilder:object:generate=false
	ApprovalRequestObject interface {
		Object
		ApprovalRequestSpec() *ApprovalRequestSpec
		ApprovalRequestStatus() *ApprovalRequestStatus
	}
)

// PlacementSpec returns the spec.
func (o *ClusterResourcePlacement) PlacementSpec() *PlacementSpec { return &o.Spec }

// RevisionLimit is how many resource snapshots are kept.
func (o *ClusterResourcePlacement) RevisionLimit() int32 { return o.Spec.RevisionLimit() }

// Abandons tells whether the placement's deletion leaves in the members what was placed.
func (o *ClusterResourcePlacement) Abandons() bool { return o.Spec.Strategy.DeleteStrategy.Abandons() }

// PlacementStatus returns the status.
func (o *ClusterResourcePlacement) PlacementStatus() *PlacementStatus { return &o.Status }

// PolicySnapshotSpec returns the spec.
func (o *ClusterSchedulingPolicySnapshot) PolicySnapshotSpec() *SchedulingPolicySnapshotSpec {
	return &o.Spec
}

// PolicySnapshotStatus returns the status.
func (o *ClusterSchedulingPolicySnapshot) PolicySnapshotStatus() *SchedulingPolicySnapshotStatus {
	return &o.Status
}

// ResourceSnapshotSpec returns the spec.
func (o *ClusterResourceSnapshot) ResourceSnapshotSpec() *ResourceSnapshotSpec { return &o.Spec }

// BindingSpec returns the spec.
func (o *ClusterResourceBinding) BindingSpec() *ResourceBindingSpec { return &o.Spec }

// BindingStatus returns the status.
func (o *ClusterResourceBinding) BindingStatus() *ResourceBindingStatus { return &o.Status }

// UpdateStrategySpec returns the spec.
func (o *ClusterStagedUpdateStrategy) UpdateStrategySpec() *UpdateStrategySpec { return &o.Spec }

// UpdateRunSpec returns the spec.
func (o *ClusterStagedUpdateRun) UpdateRunSpec() *UpdateRunSpec { return &o.Spec }

// UpdateRunStatus returns the status.
func (o *ClusterStagedUpdateRun) UpdateRunStatus() *UpdateRunStatus { return &o.Status }

// ApprovalRequestSpec returns the spec.
func (o *ClusterApprovalRequest) ApprovalRequestSpec() *ApprovalRequestSpec { return &o.Spec }

// ApprovalRequestStatus returns the status.
func (o *ClusterApprovalRequest) ApprovalRequestStatus() *ApprovalRequestStatus { return &o.Status }

// PlacementSpec returns the spec.
func (o *ResourcePlacement) PlacementSpec() *PlacementSpec { return &o.Spec }

// RevisionLimit is how many resource snapshots are kept.
func (o *ResourcePlacement) RevisionLimit() int32 { return o.Spec.RevisionLimit() }

// Abandons tells whether the placement's deletion leaves in the members what was placed.
func (o *ResourcePlacement) Abandons() bool { return o.Spec.Strategy.DeleteStrategy.Abandons() }

// PlacementStatus returns the status.
func (o *ResourcePlacement) PlacementStatus() *PlacementStatus { return &o.Status }

// PolicySnapshotSpec returns the spec.
func (o *SchedulingPolicySnapshot) PolicySnapshotSpec() *SchedulingPolicySnapshotSpec {
	return &o.Spec
}

// PolicySnapshotStatus returns the status.
func (o *SchedulingPolicySnapshot) PolicySnapshotStatus() *SchedulingPolicySnapshotStatus {
	return &o.Status
}

// ResourceSnapshotSpec returns the spec.
func (o *ResourceSnapshot) ResourceSnapshotSpec() *ResourceSnapshotSpec { return &o.Spec }

// BindingSpec returns the spec.
func (o *ResourceBinding) BindingSpec() *ResourceBindingSpec { return &o.Spec }

// BindingStatus returns the status.
func (o *ResourceBinding) BindingStatus() *ResourceBindingStatus { return &o.Status }

// UpdateStrategySpec returns the spec.
func (o *StagedUpdateStrategy) UpdateStrategySpec() *UpdateStrategySpec { return &o.Spec }

// UpdateRunSpec returns the spec.
func (o *StagedUpdateRun) UpdateRunSpec() *UpdateRunSpec { return &o.Spec }

// UpdateRunStatus returns the status.
func (o *StagedUpdateRun) UpdateRunStatus() *UpdateRunStatus { return &o.Status }

// ApprovalRequestSpec returns the spec.
func (o *ApprovalRequest) ApprovalRequestSpec() *ApprovalRequestSpec { return &o.Spec }

// ApprovalRequestStatus returns the status.
func (o *ApprovalRequest) ApprovalRequestStatus() *ApprovalRequestStatus { return &o.Status }
