// Package placement is the one model of a placement that all of the hub works with: how its objects are named, which
// kinds make up each scope, what its selectors choose, and in which order objects are applied. It does no I/O.
package placement

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Key names a placement. Namespace is empty for a cluster-scoped one, and then so it is for all that belongs to it.
type Key = types.NamespacedName

// Kinds are the API kinds that make up one scope of placements. Controllers are written once, on the interfaces of the
// API, and are given the Kinds of the scope they serve.
type Kinds struct {
	// Placement, PolicySnapshot, ResourceSnapshot, Binding, UpdateStrategy, UpdateRun and ApprovalRequest are the names
	// of the kinds.
	Placement, PolicySnapshot, ResourceSnapshot, Binding, UpdateStrategy, UpdateRun, ApprovalRequest string
	// ConditionPrefix goes before a condition type on the placement itself.
	ConditionPrefix string
	// Namespaced tells whether the kinds live in namespaces.
	Namespaced bool

	// NewPlacement and the others make empty objects and lists.
	NewPlacement            func() placementv1.PlacementObject
	NewPlacementList        func() runtime.Object
	NewPolicySnapshot       func() placementv1.PolicySnapshotObject
	NewPolicySnapshotList   func() runtime.Object
	NewResourceSnapshot     func() placementv1.ResourceSnapshotObject
	NewResourceSnapshotList func() runtime.Object
	NewBinding              func() placementv1.BindingObject
	NewBindingList          func() runtime.Object
	NewUpdateStrategy       func() placementv1.UpdateStrategyObject
	NewUpdateRun            func() placementv1.UpdateRunObject
	NewUpdateRunList        func() runtime.Object
	NewApprovalRequest      func() placementv1.ApprovalRequestObject
	NewApprovalRequestList  func() runtime.Object
}

// ClusterKinds are the cluster-scoped kinds.
func ClusterKinds() *Kinds {
	return &Kinds{
		Placement:        "ClusterResourcePlacement",
		PolicySnapshot:   "ClusterSchedulingPolicySnapshot",
		ResourceSnapshot: "ClusterResourceSnapshot",
		Binding:          "ClusterResourceBinding",
		UpdateStrategy:   "ClusterStagedUpdateStrategy",
		UpdateRun:        "ClusterStagedUpdateRun",
		ApprovalRequest:  "ClusterApprovalRequest",
		ConditionPrefix:  placementv1.ClusterPlacementConditionPrefix,

		NewPlacement:            func() placementv1.PlacementObject { return &placementv1.ClusterResourcePlacement{} },
		NewPlacementList:        func() runtime.Object { return &placementv1.ClusterResourcePlacementList{} },
		NewPolicySnapshot:       func() placementv1.PolicySnapshotObject { return &placementv1.ClusterSchedulingPolicySnapshot{} },
		NewPolicySnapshotList:   func() runtime.Object { return &placementv1.ClusterSchedulingPolicySnapshotList{} },
		NewResourceSnapshot:     func() placementv1.ResourceSnapshotObject { return &placementv1.ClusterResourceSnapshot{} },
		NewResourceSnapshotList: func() runtime.Object { return &placementv1.ClusterResourceSnapshotList{} },
		NewBinding:              func() placementv1.BindingObject { return &placementv1.ClusterResourceBinding{} },
		NewBindingList:          func() runtime.Object { return &placementv1.ClusterResourceBindingList{} },
		NewUpdateStrategy:       func() placementv1.UpdateStrategyObject { return &placementv1.ClusterStagedUpdateStrategy{} },
		NewUpdateRun:            func() placementv1.UpdateRunObject { return &placementv1.ClusterStagedUpdateRun{} },
		NewUpdateRunList:        func() runtime.Object { return &placementv1.ClusterStagedUpdateRunList{} },
		NewApprovalRequest:      func() placementv1.ApprovalRequestObject { return &placementv1.ClusterApprovalRequest{} },
		NewApprovalRequestList:  func() runtime.Object { return &placementv1.ClusterApprovalRequestList{} },
	}
}

// NamespacedKinds are the kinds that live in namespaces.
func NamespacedKinds() *Kinds {
	return &Kinds{
		Placement:        "ResourcePlacement",
		PolicySnapshot:   "SchedulingPolicySnapshot",
		ResourceSnapshot: "ResourceSnapshot",
		Binding:          "ResourceBinding",
		UpdateStrategy:   "StagedUpdateStrategy",
		UpdateRun:        "StagedUpdateRun",
		ApprovalRequest:  "ApprovalRequest",
		ConditionPrefix:  placementv1.NamespacedPlacementConditionPrefix,
		Namespaced:       true,

		NewPlacement:            func() placementv1.PlacementObject { return &placementv1.ResourcePlacement{} },
		NewPlacementList:        func() runtime.Object { return &placementv1.ResourcePlacementList{} },
		NewPolicySnapshot:       func() placementv1.PolicySnapshotObject { return &placementv1.SchedulingPolicySnapshot{} },
		NewPolicySnapshotList:   func() runtime.Object { return &placementv1.SchedulingPolicySnapshotList{} },
		NewResourceSnapshot:     func() placementv1.ResourceSnapshotObject { return &placementv1.ResourceSnapshot{} },
		NewResourceSnapshotList: func() runtime.Object { return &placementv1.ResourceSnapshotList{} },
		NewBinding:              func() placementv1.BindingObject { return &placementv1.ResourceBinding{} },
		NewBindingList:          func() runtime.Object { return &placementv1.ResourceBindingList{} },
		NewUpdateStrategy:       func() placementv1.UpdateStrategyObject { return &placementv1.StagedUpdateStrategy{} },
		NewUpdateRun:            func() placementv1.UpdateRunObject { return &placementv1.StagedUpdateRun{} },
		NewUpdateRunList:        func() runtime.Object { return &placementv1.StagedUpdateRunList{} },
		NewApprovalRequest:      func() placementv1.ApprovalRequestObject { return &placementv1.ApprovalRequest{} },
		NewApprovalRequestList:  func() runtime.Object { return &placementv1.ApprovalRequestList{} },
	}
}

// AllKinds are the kinds of every scope.
func AllKinds() []*Kinds { return []*Kinds{ClusterKinds(), NamespacedKinds()} }
