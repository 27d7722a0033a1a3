package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PlacementEvictionSpec says what is to be taken from which cluster.
type PlacementEvictionSpec struct {
	// placementName is the ClusterResourcePlacement; 1 to 255 characters. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The PlacementName field is immutable"
	PlacementName string `json:"placementName"`
	// clusterName is the MemberCluster; 1 to 255 characters. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The ClusterName field is immutable"
	ClusterName string `json:"clusterName"`
}

// PlacementEvictionStatus says what became of an eviction.
type PlacementEvictionStatus struct {
	// conditions are Valid, whether there is something to evict, and Executed, whether it was evicted. An eviction is dealt with
	// once: to try again, make another one.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterResourcePlacementEviction takes from one cluster what a ClusterResourcePlacement has placed there, if its disruption
// budget lets it.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=crpe,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Executed",type=string,JSONPath=`.status.conditions[?(@.type=="Executed")].status`
type ClusterResourcePlacementEviction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is to be evicted.
	Spec PlacementEvictionSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status PlacementEvictionStatus `json:"status,omitempty"`
}

// ClusterResourcePlacementEvictionList is a list of ClusterResourcePlacementEviction.
// +kubebuilder:object:root=true
type ClusterResourcePlacementEvictionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementEviction `json:"items"`
}

// PlacementDisruptionBudgetSpec says how many clusters evictions may take something from at once.
// +kubebuilder:validation:XValidation:rule="!(has(self.maxUnavailable) && has(self.minAvailable))",message="Both MaxUnavailable and MinAvailable cannot be specified"
type PlacementDisruptionBudgetSpec struct {
	// maxUnavailable is how many of a PickN placement's clusters may be unavailable after an eviction: a number from 0 to
	// 1000000, or a percentage of numberOfClusters from 0% to 100%, rounded up. It excludes minAvailable. For a PickAll
	// placement, of which nobody says how many clusters it is to have, it blocks every eviction.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="maxUnavailable must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 1000000",message="maxUnavailable must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^(100|[0-9]{1,2})%$')",message="maxUnavailable must be a number without quotes, such as 2, or a whole percentage from 0% to 100%, such as 25%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// minAvailable is how many clusters must be available after an eviction: a number from 0 to 1000000, or, for a PickN
	// placement, a percentage of numberOfClusters from 0% to 100%, rounded up. It excludes maxUnavailable.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="minAvailable must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 1000000",message="minAvailable must be from 0 to 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^(100|[0-9]{1,2})%$')",message="minAvailable must be a number without quotes, such as 2, or a whole percentage from 0% to 100%, such as 25%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// ClusterResourcePlacementDisruptionBudget limits evictions from the ClusterResourcePlacement of its own name.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=crpdb,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Min-Available",type=string,JSONPath=`.spec.minAvailable`
// +kubebuilder:printcolumn:name="Max-Unavailable",type=string,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementDisruptionBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the budget.
	Spec PlacementDisruptionBudgetSpec `json:"spec"`
}

// ClusterResourcePlacementDisruptionBudgetList is a list of ClusterResourcePlacementDisruptionBudget.
// +kubebuilder:object:root=true
type ClusterResourcePlacementDisruptionBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementDisruptionBudget `json:"items"`
}
