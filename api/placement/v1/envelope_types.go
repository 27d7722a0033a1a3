package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EnvelopeType is a kind of envelope.
// +kubebuilder:validation:Enum=ClusterResourceEnvelope;ResourceEnvelope
type EnvelopeType string

const (
	// ClusterResourceEnvelopeType holds cluster-scoped objects.
	ClusterResourceEnvelopeType EnvelopeType = "ClusterResourceEnvelope"
	// ResourceEnvelopeType holds objects of its namespace.
	ResourceEnvelopeType EnvelopeType = "ResourceEnvelope"
)

// EnvelopeIdentifier names the envelope that an object came in.
type EnvelopeIdentifier struct {
	// name is the envelope's name.
	Name string `json:"name"`
	// namespace is the envelope's namespace; empty for a ClusterResourceEnvelope.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// type is the envelope's kind.
	Type EnvelopeType `json:"type"`
}

// ClusterResourceEnvelope carries cluster-scoped objects to members without their taking effect on the hub.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63; choose a shorter name"
type ClusterResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// data are whole objects, each under a name of your choice; 1 to 50. They are cluster-scoped: none has a namespace.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	Data map[string]ResourceContent `json:"data"`
}

// ClusterResourceEnvelopeList is a list of ClusterResourceEnvelope.
// +kubebuilder:object:root=true
type ClusterResourceEnvelopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceEnvelope `json:"items"`
}

// ResourceEnvelope carries objects to members without their taking effect on the hub.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63; choose a shorter name"
type ResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// data are whole objects, each under a name of your choice; 1 to 50. Each is in the envelope's own namespace, and none is of
	// the API group rbac.authorization.k8s.io.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, !self[k].apiVersion.startsWith('rbac.authorization.k8s.io/'))",message="an envelope in a namespace cannot carry objects that give rights (rbac.authorization.k8s.io); let an administrator of the fleet place them"
	Data map[string]ResourceContent `json:"data"`
}

// ResourceEnvelopeList is a list of ResourceEnvelope.
// +kubebuilder:object:root=true
type ResourceEnvelopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceEnvelope `json:"items"`
}
