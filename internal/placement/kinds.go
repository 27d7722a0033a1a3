// Package placement is the one model of a placement that all of the hub works with: how its objects are named, which
// kinds make up each scope, what its selectors choose, and in which order objects are applied. It does no I/O.
package placement

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Key names a placement. Namespace is empty for a cluster-scoped one, and then so it is for all that belongs to it.
type Key = types.NamespacedName

// Carriage are the API kinds that carry what is placed from its parent on the hub to the members: its snapshots and its
// bindings. The parent is a placement that somebody wrote, or the internal placement of an object that a policy claims; the
// kinds are the same for both, and the label tells whose they are.
type Carriage struct {
	// Parent, ResourceSnapshot and Binding are the names of the kinds.
	Parent, ResourceSnapshot, Binding string
	// Label is the key of the label that names the parent of a snapshot, a binding or a Work.
	Label string
	// Namespaced tells whether the kinds live in namespaces.
	Namespaced bool

	// NewParent and the others make empty objects and lists.
	NewParent               func() placementv1.ParentObject
	NewResourceSnapshot     func() placementv1.ResourceSnapshotObject
	NewResourceSnapshotList func() runtime.Object
	NewBinding              func() placementv1.BindingObject
	NewBindingList          func() runtime.Object
}

// Kinds are the API kinds that make up one scope of placements. Controllers are written once, on the interfaces of the
// API, and are given the Kinds of the scope they serve.
type Kinds struct {
	// Carriage are those that carry what is placed.
	Carriage
	// Placement, PolicySnapshot, UpdateStrategy, UpdateRun and ApprovalRequest are the names of the other kinds.
	Placement, PolicySnapshot, UpdateStrategy, UpdateRun, ApprovalRequest string
	// ConditionPrefix goes before a condition type on the placement itself.
	ConditionPrefix string

	// NewPlacement and the others make empty objects and lists.
	NewPlacement           func() placementv1.PlacementObject
	NewPlacementList       func() runtime.Object
	NewPolicySnapshot      func() placementv1.PolicySnapshotObject
	NewPolicySnapshotList  func() runtime.Object
	NewUpdateStrategy      func() placementv1.UpdateStrategyObject
	NewUpdateRun           func() placementv1.UpdateRunObject
	NewUpdateRunList       func() runtime.Object
	NewApprovalRequest     func() placementv1.ApprovalRequestObject
	NewApprovalRequestList func() runtime.Object
}

// ClusterKinds are the cluster-scoped kinds.
func ClusterKinds() *Kinds {
	return &Kinds{
		Carriage:        clusterCarriage(),
		Placement:       "ClusterResourcePlacement",
		PolicySnapshot:  "ClusterSchedulingPolicySnapshot",
		UpdateStrategy:  "ClusterStagedUpdateStrategy",
		UpdateRun:       "ClusterStagedUpdateRun",
		ApprovalRequest: "ClusterApprovalRequest",
		ConditionPrefix: placementv1.ClusterPlacementConditionPrefix,

		NewPlacement:           func() placementv1.PlacementObject { return &placementv1.ClusterResourcePlacement{} },
		NewPlacementList:       func() runtime.Object { return &placementv1.ClusterResourcePlacementList{} },
		NewPolicySnapshot:      func() placementv1.PolicySnapshotObject { return &placementv1.ClusterSchedulingPolicySnapshot{} },
		NewPolicySnapshotList:  func() runtime.Object { return &placementv1.ClusterSchedulingPolicySnapshotList{} },
		NewUpdateStrategy:      func() placementv1.UpdateStrategyObject { return &placementv1.ClusterStagedUpdateStrategy{} },
		NewUpdateRun:           func() placementv1.UpdateRunObject { return &placementv1.ClusterStagedUpdateRun{} },
		NewUpdateRunList:       func() runtime.Object { return &placementv1.ClusterStagedUpdateRunList{} },
		NewApprovalRequest:     func() placementv1.ApprovalRequestObject { return &placementv1.ClusterApprovalRequest{} },
		NewApprovalRequestList: func() runtime.Object { return &placementv1.ClusterApprovalRequestList{} },
	}
}

// NamespacedKinds are the kinds that live in namespaces.
func NamespacedKinds() *Kinds {
	return &Kinds{
		Carriage:        namespacedCarriage(),
		Placement:       "ResourcePlacement",
		PolicySnapshot:  "SchedulingPolicySnapshot",
		UpdateStrategy:  "StagedUpdateStrategy",
		UpdateRun:       "StagedUpdateRun",
		ApprovalRequest: "ApprovalRequest",
		ConditionPrefix: placementv1.NamespacedPlacementConditionPrefix,

		NewPlacement:           func() placementv1.PlacementObject { return &placementv1.ResourcePlacement{} },
		NewPlacementList:       func() runtime.Object { return &placementv1.ResourcePlacementList{} },
		NewPolicySnapshot:      func() placementv1.PolicySnapshotObject { return &placementv1.SchedulingPolicySnapshot{} },
		NewPolicySnapshotList:  func() runtime.Object { return &placementv1.SchedulingPolicySnapshotList{} },
		NewUpdateStrategy:      func() placementv1.UpdateStrategyObject { return &placementv1.StagedUpdateStrategy{} },
		NewUpdateRun:           func() placementv1.UpdateRunObject { return &placementv1.StagedUpdateRun{} },
		NewUpdateRunList:       func() runtime.Object { return &placementv1.StagedUpdateRunList{} },
		NewApprovalRequest:     func() placementv1.ApprovalRequestObject { return &placementv1.ApprovalRequest{} },
		NewApprovalRequestList: func() runtime.Object { return &placementv1.ApprovalRequestList{} },
	}
}

func clusterCarriage() Carriage {
	return Carriage{
		Parent:           "ClusterResourcePlacement",
		ResourceSnapshot: "ClusterResourceSnapshot",
		Binding:          "ClusterResourceBinding",
		Label:            placementv1.LabelParentPlacement,

		NewParent:               func() placementv1.ParentObject { return &placementv1.ClusterResourcePlacement{} },
		NewResourceSnapshot:     func() placementv1.ResourceSnapshotObject { return &placementv1.ClusterResourceSnapshot{} },
		NewResourceSnapshotList: func() runtime.Object { return &placementv1.ClusterResourceSnapshotList{} },
		NewBinding:              func() placementv1.BindingObject { return &placementv1.ClusterResourceBinding{} },
		NewBindingList:          func() runtime.Object { return &placementv1.ClusterResourceBindingList{} },
	}
}

func namespacedCarriage() Carriage {
	return Carriage{
		Parent:           "ResourcePlacement",
		ResourceSnapshot: "ResourceSnapshot",
		Binding:          "ResourceBinding",
		Label:            placementv1.LabelParentPlacement,
		Namespaced:       true,

		NewParent:               func() placementv1.ParentObject { return &placementv1.ResourcePlacement{} },
		NewResourceSnapshot:     func() placementv1.ResourceSnapshotObject { return &placementv1.ResourceSnapshot{} },
		NewResourceSnapshotList: func() runtime.Object { return &placementv1.ResourceSnapshotList{} },
		NewBinding:              func() placementv1.BindingObject { return &placementv1.ResourceBinding{} },
		NewBindingList:          func() runtime.Object { return &placementv1.ResourceBindingList{} },
	}
}

// ObjectCarriages are the kinds that carry objects which policies claim, of every scope.
func ObjectCarriages() []*Carriage {
	cluster, namespaced := clusterCarriage(), namespacedCarriage()
	cluster.Parent, cluster.Label = "ClusterObjectPlacement", placementv1.LabelParentObject
	cluster.NewParent = func() placementv1.ParentObject { return &policyv1alpha1.ClusterObjectPlacement{} }
	namespaced.Parent, namespaced.Label = "ObjectPlacement", placementv1.LabelParentObject
	namespaced.NewParent = func() placementv1.ParentObject { return &policyv1alpha1.ObjectPlacement{} }
	return []*Carriage{&cluster, &namespaced}
}

// AllKinds are the kinds of every scope.
func AllKinds() []*Kinds { return []*Kinds{ClusterKinds(), NamespacedKinds()} }
