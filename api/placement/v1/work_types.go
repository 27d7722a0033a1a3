package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WorkSpec is what an agent keeps in its cluster.
type WorkSpec struct {
	// workload holds the objects.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`
	// applyStrategy says how the objects are brought into the cluster.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`
	// reportBackStrategy says whether the objects' statuses in the cluster are reported back. With type Mirror the agent puts
	// them into status.manifestConditions[].backReportedStatus.
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
}

// WorkloadTemplate holds the objects of a Work.
type WorkloadTemplate struct {
	// manifests are whole objects; a manifest's position is its ordinal in the status.
	// +optional
	// +listType=atomic
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is a whole Kubernetes object.
type Manifest = ResourceContent

// WorkStatus is the agent's account of a Work.
type WorkStatus struct {
	// conditions are Applied and Available, or DiffReported in their place, and on a Work that is being deleted Removed, each
	// for the Work's generation; StatusTrimmed where not all fits into the status.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// manifestConditions has an entry for each manifest. Where that would not fit into the status, entries of manifests
	// that are done are left out first; the message of Applied then says how many are missing.
	// +optional
	// +listType=atomic
	ManifestConditions []ManifestCondition `json:"manifestConditions,omitempty"`
}

// WorkResourceIdentifier names an object of a Work.
type WorkResourceIdentifier struct {
	// ordinal is the position in spec.workload.manifests, counted from 0.
	Ordinal int32 `json:"ordinal"`
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the API version.
	// +optional
	Version string `json:"version,omitempty"`
	// kind is the kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// resource is the plural name; empty where the member does not know the kind.
	// +optional
	Resource string `json:"resource,omitempty"`
	// namespace is the object's namespace; empty for a cluster-scoped object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the object's name.
	// +optional
	Name string `json:"name,omitempty"`
}

// ManifestCondition is the agent's account of one object.
type ManifestCondition struct {
	// identifier names the object.
	Identifier WorkResourceIdentifier `json:"identifier"`
	// conditions are Applied and Available, or DiffReported in their place.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// driftDetails are the changes that somebody made to the object in the cluster, where the apply strategy has them reported.
	// +optional
	DriftDetails *DriftDetails `json:"driftDetails,omitempty"`
	// diffDetails are the differences between the hub's object and the cluster's, where that is not written.
	// +optional
	DiffDetails *DiffDetails `json:"diffDetails,omitempty"`
	// backReportedStatus is the object's status in the cluster, where the Work's reportBackStrategy asks for it and the object is
	// applied. Secrets, ConfigMaps and objects that have no status have none.
	// +optional
	BackReportedStatus *BackReportedStatus `json:"backReportedStatus,omitempty"`
	// unschedulableReplicas is, of a workload whose status is reported back, how many of its pods the cluster's scheduler has had no
	// node for since a while: 30 seconds, where the agent is told nothing else.
	// +optional
	UnschedulableReplicas int32 `json:"unschedulableReplicas,omitempty"`
}

// Work carries objects from the hub to one cluster. It lives in that cluster's namespace on the hub.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the cluster is to hold.
	Spec WorkSpec `json:"spec,omitempty"`
	// status is the agent's account.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Work.
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}

// AppliedWorkSpec names the Work that an AppliedWork stands for.
type AppliedWorkSpec struct {
	// workName is the Work's name.
	WorkName string `json:"workName"`
	// workNamespace is the Work's namespace on the hub.
	WorkNamespace string `json:"workNamespace"`
}

// AppliedWorkStatus lists what was applied for a Work.
type AppliedWorkStatus struct {
	// appliedResources are the objects that the agent holds for the Work.
	// +optional
	// +listType=atomic
	AppliedResources []AppliedResourceMeta `json:"appliedResources,omitempty"`
}

// AppliedResourceMeta names one applied object.
type AppliedResourceMeta struct {
	WorkResourceIdentifier `json:",inline"`
	// uid is the object's UID in the member; nothing with another UID is ever removed for this entry.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// AppliedWork stands, in a member cluster, for a Work of the hub and is named as an owner on the objects applied for it.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
type AppliedWork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the Work.
	Spec AppliedWorkSpec `json:"spec"`
	// status lists what was applied.
	// +optional
	Status AppliedWorkStatus `json:"status,omitempty"`
}

// AppliedWorkList is a list of AppliedWork.
// +kubebuilder:object:root=true
type AppliedWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppliedWork `json:"items"`
}
