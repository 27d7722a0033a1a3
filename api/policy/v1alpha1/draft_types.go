package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type ClusterAffinity struct {
	ClusterNames    []string              `json:"clusterNames,omitempty"`
	ExcludeClusters []string              `json:"exclude,omitempty"`
	LabelSelector   *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

type Placement struct {
	ClusterAffinity    *ClusterAffinity    `json:"clusterAffinity,omitempty"`
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`
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
