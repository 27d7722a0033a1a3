package v1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadsOnLeave says what happens to placed objects when a cluster leaves.
// +kubebuilder:validation:Enum=Keep;Remove
type WorkloadsOnLeave string

const (
	// WorkloadsKeep leaves all that was placed in the cluster, owned by nobody.
	WorkloadsKeep WorkloadsOnLeave = "Keep"
	// WorkloadsRemove removes all that was placed from the cluster.
	WorkloadsRemove WorkloadsOnLeave = "Remove"
)

// MemberClusterSpec says how a cluster belongs to the fleet.
type MemberClusterSpec struct {
	// identity is the hub user or service account that the cluster's agent signs in as. Leave it out to let the agent join
	// with a bootstrap token and a certificate of its own, which names this very MemberCluster. Users whose names begin with
	// system: are Kubernetes' own; of those, only service accounts may be named.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.kind in ['User', 'ServiceAccount']",message="identity.kind must be User or ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0",message="identity.name is required"
	// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || (has(self.__namespace__) && size(self.__namespace__) > 0)",message="identity.namespace is required when identity.kind is ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="self.kind != 'User' || !self.name.startsWith('system:') || self.name.matches('^system:serviceaccount:[-a-z0-9]+:[-.a-z0-9]+$')",message="identity.name must not be a user of Kubernetes' own, whose names begin with system:, since that user would be given the cluster's rights; name a user of the agent's own, or a service account as system:serviceaccount:<namespace>:<name>"
	// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || self.name.matches('^[-.a-z0-9]*$')",message="identity.name must be the service account's own name, such as agent; its namespace goes into identity.namespace"
	Identity *rbacv1.Subject `json:"identity,omitempty"`
	// heartbeatPeriodSeconds is how often the agent gives a sign of life, in seconds; 1 to 600, default 60. After three
	// periods without one the cluster's health is unknown.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// taints keep placements that do not tolerate them from choosing the cluster; what is placed there already stays. At most
	// 100, and one of each key and effect.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=100
	Taints []Taint `json:"taints,omitempty"`
	// deleteOptions says what happens when this object is deleted.
	// +optional
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// DeleteOptions says what happens when a MemberCluster is deleted.
type DeleteOptions struct {
	// workloads is Keep, which leaves what was placed in the cluster, or Remove. Default: Keep.
	// +optional
	// +kubebuilder:default=Keep
	Workloads WorkloadsOnLeave `json:"workloads,omitempty"`
}

// LeavePolicy returns what happens to placed objects when the cluster leaves.
func (s *MemberClusterSpec) LeavePolicy() WorkloadsOnLeave {
	if s.DeleteOptions == nil || s.DeleteOptions.Workloads == "" {
		return WorkloadsKeep
	}
	return s.DeleteOptions.Workloads
}

// PropertyValue is a property's value and when it was seen.
type PropertyValue struct {
	// value is the value.
	Value string `json:"value"`
	// observationTime is when it was seen.
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage is what a cluster has, gives to pods, and has left.
type ResourceUsage struct {
	// capacity is the sum over all nodes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// allocatable is the sum of what nodes give to pods.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// available is allocatable less the requests of all pods on nodes, never below zero.
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`
	// observationTime is when it was seen.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// AgentType is a kind of agent.
type AgentType string

// MemberAgent is the agent that applies Works.
const MemberAgent AgentType = "MemberAgent"

// AgentStatus is the state of one agent.
type AgentStatus struct {
	// type is the kind of agent.
	Type AgentType `json:"type"`
	// conditions are Joined and Healthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastReceivedHeartbeat is the newest heartbeat written into this status: at least every two minutes. The Lease in
	// the cluster's namespace is more recent.
	// +optional
	LastReceivedHeartbeat metav1.Time `json:"lastReceivedHeartbeat,omitempty"`
}

// MemberClusterStatus is what is known of a cluster.
type MemberClusterStatus struct {
	// conditions are ReadyToJoin and Joined, and how well the agent finds out about the cluster:
	// ClusterPropertyProviderStarted, ClusterPropertyCollectionSucceeded and NamespaceCollectionSucceeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// clusterID is the UID of the cluster's kube-system namespace. Another cluster that signs in under this name is refused.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// properties are named facts, such as kubernetes-fleet.io/node-count.
	// +optional
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// resourceUsage is what the cluster has and has left.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// namespaces are the cluster's namespaces, each with the name of the AppliedWork that owns it, or "" where it was not
	// placed; 5000 at the most. The condition NamespaceCollectionSucceeded is False where not all are told of.
	// +optional
	// +kubebuilder:validation:MaxProperties=5000
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// agentStatus is the state of each agent.
	// +optional
	// +listType=map
	// +listMapKey=type
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
}

// MemberCluster is a cluster of the fleet.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cluster,categories={fleet,fleet-cluster}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Member-Agent-Last-Seen",type=date,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`
// +kubebuilder:printcolumn:name="Node-Count",type=string,JSONPath=`.status.properties.kubernetes-fleet\.io/node-count.value`
// +kubebuilder:printcolumn:name="Available-CPU",type=string,JSONPath=`.status.resourceUsage.available.cpu`
// +kubebuilder:printcolumn:name="Available-Memory",type=string,JSONPath=`.status.resourceUsage.available.memory`
// +kubebuilder:printcolumn:name="Allocatable-CPU",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.cpu`
// +kubebuilder:printcolumn:name="Allocatable-Memory",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.memory`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63; choose a shorter name"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 51 || size(self.metadata.name) > 63",message="metadata.name max length is 50, since the hub names the cluster's namespace fleet-member-<name> and a namespace's name has 63 characters at the most; choose a shorter name"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be lower-case letters, digits and dashes, since the cluster's namespace is named by it"
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is how the cluster belongs to the fleet.
	// +optional
	// +kubebuilder:default={}
	Spec MemberClusterSpec `json:"spec,omitempty"`
	// status is what is known of it.
	// +optional
	Status MemberClusterStatus `json:"status,omitempty"`
}

// MemberClusterList is a list of MemberCluster.
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberCluster `json:"items"`
}

// ClusterState is what the hub asks of an agent.
// +kubebuilder:validation:Enum=Join;Leave
type ClusterState string

const (
	// ClusterStateJoin: be a member.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave: stop, and release or remove what was placed.
	ClusterStateLeave ClusterState = "Leave"
)

// InternalMemberClusterSpec is what the hub asks of an agent.
type InternalMemberClusterSpec struct {
	// state is Join or Leave.
	State ClusterState `json:"state"`
	// heartbeatPeriodSeconds is how often the agent gives a sign of life, in seconds, as the MemberCluster says; 0 to 600, and
	// 0, or nothing, is 60.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// workloads is what to do, on Leave, with what was placed. Default: Keep.
	// +optional
	Workloads WorkloadsOnLeave `json:"workloads,omitempty"`
	// clusterID is the UID of the kube-system namespace of the cluster that joined; an agent in another cluster does
	// nothing but say so.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
}

// InternalMemberClusterStatus is the agent's account of its cluster.
type InternalMemberClusterStatus struct {
	// conditions are those of the agent as a whole: how well it finds out about the cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// clusterID is the UID of the kube-system namespace of the cluster that the agent runs in.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// properties are named facts.
	// +optional
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// resourceUsage is what the cluster has and has left.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// namespaces are the cluster's namespaces, each with the name of the AppliedWork that owns it, or "" where it was not
	// placed; 5000 at the most.
	// +optional
	// +kubebuilder:validation:MaxProperties=5000
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// agentStatus is the state of each agent.
	// +optional
	// +listType=map
	// +listMapKey=type
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
}

// InternalMemberCluster is where the hub and a cluster's agent meet: the hub writes the spec, the agent the status.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=imc,categories={fleet,fleet-cluster}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Asked",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Last-Seen",type=date,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type InternalMemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the hub asks.
	Spec InternalMemberClusterSpec `json:"spec"`
	// status is the agent's account.
	// +optional
	Status InternalMemberClusterStatus `json:"status,omitempty"`
}

// InternalMemberClusterList is a list of InternalMemberCluster.
// +kubebuilder:object:root=true
type InternalMemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InternalMemberCluster `json:"items"`
}
