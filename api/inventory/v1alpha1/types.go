package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// ManagerName is what this system calls itself in spec.clusterManager and in LabelClusterManager.
	ManagerName = "fleetwright"
	// LabelClusterManager is, on a ClusterProfile, the name of its cluster manager.
	LabelClusterManager = "x-k8s.io/cluster-manager"
	// LongestValue is how long a property's value may be, in characters.
	LongestValue = 1024
)

// ConditionControlPlaneHealthy: does the cluster's control plane work?
const ConditionControlPlaneHealthy = "ControlPlaneHealthy"

// Reasons.
const (
	// ReasonNoAgentStatus: the cluster's agent has never reported.
	ReasonNoAgentStatus = "MemberAgentReportedNoStatus"
	// ReasonNoHealth: the agent has not said whether the cluster is healthy.
	ReasonNoHealth = "MemberAgentReportedNoHealthInfo"
	// ReasonHeartbeatLost: nothing was heard of the agent for three heartbeat periods.
	ReasonHeartbeatLost = "MemberAgentHeartbeatLost"
	// ReasonHealthy: the cluster's API server is ready.
	ReasonHealthy = "MemberClusterAPIServerHealthy"
	// ReasonUnhealthy: the cluster's API server is not ready, or does not answer its agent.
	ReasonUnhealthy = "MemberClusterAPIServerUnhealthy"
)

// ClusterProfileSpec says which cluster it is and who manages it.
type ClusterProfileSpec struct {
	// displayName is the cluster's name for people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// clusterManager is the system that the cluster belongs to, and that writes this object. It never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ClusterManager is immutable"
	ClusterManager ClusterManager `json:"clusterManager"`
}

// ClusterManager is a system that manages clusters.
type ClusterManager struct {
	// name is the system's name.
	Name string `json:"name"`
}

// ClusterVersion is what a cluster runs.
type ClusterVersion struct {
	// kubernetes is the version of the cluster's API server, such as v1.37.2.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Property is a named fact.
type Property struct {
	// name is the fact's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// value is the fact.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
	// lastObservedTime is when this value was first seen.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// ClusterProfileStatus is what is known of the cluster.
type ClusterProfileStatus struct {
	// conditions have ControlPlaneHealthy.
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// version is what the cluster runs.
	// +optional
	Version ClusterVersion `json:"version,omitempty"`
	// properties are facts about the cluster.
	// +optional
	// +listType=atomic
	Properties []Property `json:"properties,omitempty"`
	// accessProviders tell tools how to reach the cluster. They are for others to fill in: the hub has no route to a member.
	// +optional
	// +listType=atomic
	AccessProviders []runtime.RawExtension `json:"accessProviders,omitempty"`
	// credentialProviders are the older name of accessProviders.
	// +optional
	// +listType=atomic
	CredentialProviders []runtime.RawExtension `json:"credentialProviders,omitempty"`
}

// ClusterProfile describes a cluster to tools that work with many.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
type ClusterProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says which cluster it is and who manages it.
	Spec ClusterProfileSpec `json:"spec"`
	// status is what is known of it.
	// +optional
	Status ClusterProfileStatus `json:"status,omitempty"`
}

// ClusterProfileList is a list of ClusterProfile.
// +kubebuilder:object:root=true
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProfile `json:"items"`
}
