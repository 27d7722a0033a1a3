package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion identifies this API.
var GroupVersion = schema.GroupVersion{Group: "placement.kubernetes-fleet.io", Version: "v1"}

// BetaGroupVersion has the kinds that this API has in v1beta1 alone. It serves all others too, from the schema of v1.
var BetaGroupVersion = schema.GroupVersion{Group: GroupVersion.Group, Version: "v1beta1"}

// AddToScheme registers every kind of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterResourcePlacement{}, &ClusterResourcePlacementList{},
		&ClusterResourcePlacementStatus{}, &ClusterResourcePlacementStatusList{},
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
		&ResourcePlacement{}, &ResourcePlacementList{},
		&StagedUpdateStrategy{}, &StagedUpdateStrategyList{},
		&StagedUpdateRun{}, &StagedUpdateRunList{},
		&ApprovalRequest{}, &ApprovalRequestList{},
		&Work{}, &WorkList{},
		&AppliedWork{}, &AppliedWorkList{},
	)
	s.AddKnownTypes(BetaGroupVersion,
		&SchedulingPolicySnapshot{}, &SchedulingPolicySnapshotList{},
		&ResourceSnapshot{}, &ResourceSnapshotList{},
		&ResourceBinding{}, &ResourceBindingList{},
		&ClusterResourcePlacementEviction{}, &ClusterResourcePlacementEvictionList{},
		&ClusterResourcePlacementDisruptionBudget{}, &ClusterResourcePlacementDisruptionBudgetList{},
		&ClusterResourceEnvelope{}, &ClusterResourceEnvelopeList{},
		&ResourceEnvelope{}, &ResourceEnvelopeList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	metav1.AddToGroupVersion(s, BetaGroupVersion)
	return nil
}
