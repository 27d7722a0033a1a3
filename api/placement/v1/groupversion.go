package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies this API.
var GroupVersion = schema.GroupVersion{Group: "placement.kubernetes-fleet.io", Version: "v1"}

// AddToScheme registers every kind of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterResourcePlacement{}, &ClusterResourcePlacementList{},
		&ClusterSchedulingPolicySnapshot{}, &ClusterSchedulingPolicySnapshotList{},
		&ClusterResourceSnapshot{}, &ClusterResourceSnapshotList{},
		&ClusterResourceBinding{}, &ClusterResourceBindingList{},
		&ClusterStagedUpdateStrategy{}, &ClusterStagedUpdateStrategyList{},
		&ClusterStagedUpdateRun{}, &ClusterStagedUpdateRunList{},
		&ClusterApprovalRequest{}, &ClusterApprovalRequestList{},
		&ClusterResourceOverride{}, &ClusterResourceOverrideList{},
		&ResourceOverride{}, &ResourceOverrideList{},
		&ClusterResourceOverrideSnapshot{}, &ClusterResourceOverrideSnapshotList{},
		&ResourceOverrideSnapshot{}, &ResourceOverrideSnapshotList{},
		&Work{}, &WorkList{},
		&AppliedWork{}, &AppliedWorkList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
