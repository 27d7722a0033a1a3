package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StatusReportingScope says who may read how far a placement has come.
// +kubebuilder:validation:Enum=ClusterScopeOnly;NamespaceAccessible
type StatusReportingScope string

const (
	// StatusReportingClusterScopeOnly: those who may read the ClusterResourcePlacement.
	StatusReportingClusterScopeOnly StatusReportingScope = "ClusterScopeOnly"
	// StatusReportingNamespaceAccessible: those too who may read ClusterResourcePlacementStatuses in the selected namespace.
	StatusReportingNamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)

// ClusterResourcePlacementStatus is the status of the ClusterResourcePlacement of its name, for those who work in the namespace
// that it places. The hub writes it, while spec.statusReportingScope of the placement is NamespaceAccessible.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=crps,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Resource-Index",type=string,JSONPath=`.sourceStatus.observedResourceIndex`
// +kubebuilder:printcolumn:name="Last-Updated",type=string,JSONPath=`.lastUpdatedTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// sourceStatus is the placement's status, without its condition ClusterResourcePlacementStatusSynced.
	SourceStatus PlacementStatus `json:"sourceStatus"`
	// lastUpdatedTime is when sourceStatus was last changed.
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
}

// ClusterResourcePlacementStatusList is a list of ClusterResourcePlacementStatus.
// +kubebuilder:object:root=true
type ClusterResourcePlacementStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementStatus `json:"items"`
}
