package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SchedulingPolicySnapshotSpec is one revision of a placement's policy.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable; the hub makes a new snapshot when the policy changes"
type SchedulingPolicySnapshotSpec struct {
	// policy is the placement's policy without numberOfClusters, which is in an annotation so that it can change without a new
	// snapshot; absent where the placement has none.
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`
	// policyHash is the SHA-256 of the policy, as hex text.
	PolicyHash []byte `json:"policyHash"`
}

// SchedulingPolicySnapshotStatus is the scheduler's answer to one revision of a policy.
type SchedulingPolicySnapshotStatus struct {
	// observedCRPGeneration is the generation of the placement that the decisions are for.
	// +optional
	ObservedCRPGeneration int64 `json:"observedCRPGeneration,omitempty"`
	// conditions holds Scheduled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// targetClusters are the decisions: the selected clusters, then up to 20 of those not selected, 1,000 in all at the
	// most; selectedCount has the whole number.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	ClusterDecisions []ClusterDecision `json:"targetClusters,omitempty"`
	// selectedCount is the number of selected clusters, those not listed included.
	// +optional
	SelectedCount int32 `json:"selectedCount,omitempty"`
}

// ClusterDecision tells whether a cluster was selected, and why.
type ClusterDecision struct {
	// clusterName is the cluster.
	ClusterName string `json:"clusterName"`
	// selected tells whether it was chosen.
	Selected bool `json:"selected"`
	// clusterScore is how well the cluster suits the placement, where clusters are compared: by PickN.
	// +optional
	ClusterScore *ClusterScore `json:"clusterScore,omitempty"`
	// reason says why or why not, for a person.
	Reason string `json:"reason"`
}

// ClusterScore is how well a cluster suits a placement; more is better. priorityScore goes before affinityScore.
type ClusterScore struct {
	// affinityScore is the sum of what the preferred terms of the affinity give.
	// +optional
	AffinityScore *int32 `json:"affinityScore,omitempty"`
	// priorityScore is what the topology spread constraints give: how much more even the clusters were spread by this one.
	// +optional
	TopologySpreadScore *int32 `json:"priorityScore,omitempty"`
}

// ClusterSchedulingPolicySnapshot is one revision of the policy of a ClusterResourcePlacement, with the clusters chosen.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=csps,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Index",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/policy-index`
// +kubebuilder:printcolumn:name="Latest",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/is-latest-snapshot`
type ClusterSchedulingPolicySnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the policy.
	Spec SchedulingPolicySnapshotSpec `json:"spec"`
	// status is the scheduler's answer.
	// +optional
	Status SchedulingPolicySnapshotStatus `json:"status,omitempty"`
}

// ClusterSchedulingPolicySnapshotList is a list of ClusterSchedulingPolicySnapshot.
// +kubebuilder:object:root=true
type ClusterSchedulingPolicySnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSchedulingPolicySnapshot `json:"items"`
}

// ResourceSnapshotSpec is one part of one revision of what a placement selects.
type ResourceSnapshotSpec struct {
	// selectedResources are the objects themselves, without what only the hub knows of them, in the order in which they
	// are applied.
	// +listType=atomic
	SelectedResources []ResourceContent `json:"selectedResources"`
}

// ResourceContent is a whole Kubernetes object. The API server checks its apiVersion, kind and metadata and keeps the rest
// as it is.
type ResourceContent struct {
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	runtime.RawExtension `json:",inline"`
}

// ClusterResourceSnapshot is one part of one immutable revision of what a ClusterResourcePlacement selects.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=crs,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Index",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/resource-index`
// +kubebuilder:printcolumn:name="Latest",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/is-latest-snapshot`
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="spec is immutable; the hub makes a new snapshot when the resources change"
type ClusterResourceSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the content.
	Spec ResourceSnapshotSpec `json:"spec"`
}

// ClusterResourceSnapshotList is a list of ClusterResourceSnapshot.
// +kubebuilder:object:root=true
type ClusterResourceSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceSnapshot `json:"items"`
}
