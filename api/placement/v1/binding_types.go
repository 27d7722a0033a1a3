package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BindingState tells whether a binding's cluster is wanted and may already receive the objects.
// +kubebuilder:validation:Enum=Scheduled;Bound;Unscheduled
type BindingState string

const (
	// BindingStateScheduled: the scheduler chose the cluster; nothing may be placed there yet.
	BindingStateScheduled BindingState = "Scheduled"
	// BindingStateBound: the binding's snapshot is to be on the cluster.
	BindingStateBound BindingState = "Bound"
	// BindingStateUnscheduled: the cluster is no longer wanted; what is there stays until the binding is deleted.
	BindingStateUnscheduled BindingState = "Unscheduled"
)

// ResourceBindingSpec ties one placement to one cluster.
type ResourceBindingSpec struct {
	// state is Scheduled, Bound or Unscheduled. The scheduler sets the first and the last, the rolling update or an
	// update run the second.
	State BindingState `json:"state"`
	// resourceSnapshotName is the master resource snapshot that the cluster is to run; empty until the first rollout.
	// +optional
	ResourceSnapshotName string `json:"resourceSnapshotName,omitempty"`
	// AppliedOverrides are written together with resourceSnapshotName, by whoever moves the binding.
	AppliedOverrides `json:",inline"`
	// overrideLabels are those labels of the cluster that these overrides ask for, in a selector or a variable, as they were
	// when they were written here. A label that changes reaches the cluster as a change of an override does.
	// +optional
	OverrideLabels map[string]string `json:"overrideLabels,omitempty"`
	// schedulingPolicySnapshotName is the policy snapshot that this decision comes from.
	SchedulingPolicySnapshotName string `json:"schedulingPolicySnapshotName"`
	// targetCluster is the MemberCluster.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="targetCluster is immutable; bindings are made and named for one cluster each"
	TargetCluster string `json:"targetCluster"`
	// clusterDecision is why the scheduler chose it.
	ClusterDecision ClusterDecision `json:"clusterDecision"`
	// applyStrategy says how the objects are brought into the cluster. It is written together with resourceSnapshotName.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// reportBackStrategy says whether the objects' statuses in the cluster are reported back. It is written together with
	// resourceSnapshotName.
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
	// replicas is this cluster's share of the object's replicas, where a policy placed it: it takes the place of what the object
	// says. Absent where the object has no replicas, or none are divided.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// suspended has the cluster keep what it has, whatever changes on the hub, because the policy asks for that.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
}

// ResourceBindingStatus is the whole truth about one placement on one cluster.
type ResourceBindingStatus struct {
	// observedResourceIndex is the index of the resource snapshot whose Works were last written for this cluster.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// failedPlacements are objects that could not be overridden, could not be applied or are not available, in this order; 100 at
	// the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`
	// driftedPlacements are objects that somebody changed in the cluster after they were applied, as far as the apply strategy
	// has such changes reported; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`
	// diffedPlacements are objects of which the cluster's differs from the hub's and is not written; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`
	// conditions are RolloutStarted, Overridden, WorkSynchronized, Applied and Available, or DiffReported in place of the last
	// two, each for the binding's generation.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterResourceBinding ties a ClusterResourcePlacement to one cluster.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=crb,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="WorkSynchronized",type=string,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="ResourcesApplied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="ResourceAvailable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted on the cluster.
	Spec ResourceBindingSpec `json:"spec"`
	// status is what is there.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBinding.
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}
