package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type FieldSelector struct {
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

type ClusterAffinity struct {
	ClusterNames    []string              `json:"clusterNames,omitempty"`
	ExcludeClusters []string              `json:"exclude,omitempty"`
	LabelSelector   *metav1.LabelSelector `json:"labelSelector,omitempty"`
	FieldSelector   *FieldSelector        `json:"fieldSelector,omitempty"`
}

type ClusterAffinityTerm struct {
	AffinityName    string `json:"affinityName"`
	ClusterAffinity `json:",inline"`
}

type SpreadConstraint struct {
	SpreadByField string `json:"spreadByField,omitempty"`
	SpreadByLabel string `json:"spreadByLabel,omitempty"`
	MinGroups     int    `json:"minGroups,omitempty"`
	MaxGroups     int    `json:"maxGroups,omitempty"`
}

type StaticClusterWeight struct {
	TargetCluster ClusterAffinity `json:"targetCluster"`
	Weight        int64           `json:"weight"`
}

type ClusterPreferences struct {
	// +kubebuilder:validation:MaxItems=30
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`
	DynamicWeight    string                `json:"dynamicWeight,omitempty"`
}

type ReplicaSchedulingStrategy struct {
	ReplicaSchedulingType     string              `json:"replicaSchedulingType,omitempty"`
	ReplicaDivisionPreference string              `json:"replicaDivisionPreference,omitempty"`
	WeightPreference          *ClusterPreferences `json:"weightPreference,omitempty"`
}

type Placement struct {
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
	// +kubebuilder:validation:MaxItems=10
	ClusterAffinities  []ClusterAffinityTerm      `json:"clusterAffinities,omitempty"`
	ClusterTolerations []corev1.Toleration        `json:"clusterTolerations,omitempty"`
	SpreadConstraints  []SpreadConstraint         `json:"spreadConstraints,omitempty"`
	ReplicaScheduling  *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`
}

type ResourceSelector struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Namespace     string                `json:"namespace,omitempty"`
	Name          string                `json:"name,omitempty"`
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

type SuspendClusters struct {
	ClusterNames []string `json:"clusterNames,omitempty"`
}

type Suspension struct {
	Dispatching           *bool            `json:"dispatching,omitempty"`
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
	Scheduling            *bool            `json:"scheduling,omitempty"`
}

type ConflictResolution string

const (
	ConflictAbort     ConflictResolution = "Abort"
	ConflictOverwrite ConflictResolution = "Overwrite"
)

type PreemptionBehavior string

const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

type PropagationSpec struct {
	// +kubebuilder:validation:MaxItems=50
	ResourceSelectors           []ResourceSelector `json:"resourceSelectors"`
	PropagateDeps               bool               `json:"propagateDeps,omitempty"`
	Placement                   Placement          `json:"placement,omitempty"`
	Priority                    *int32             `json:"priority,omitempty"`
	Preemption                  PreemptionBehavior `json:"preemption,omitempty"`
	DependentOverrides          []string           `json:"dependentOverrides,omitempty"`
	ConflictResolution          ConflictResolution `json:"conflictResolution,omitempty"`
	Suspension                  *Suspension        `json:"suspension,omitempty"`
	ActivationPreference        string             `json:"activationPreference,omitempty"`
	PreserveResourcesOnDeletion *bool              `json:"preserveResourcesOnDeletion,omitempty"`
}

const LazyActivation = "Lazy"
