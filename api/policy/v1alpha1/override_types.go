package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverriderOperator says what an override does.
// +kubebuilder:validation:Enum=add;remove;replace
type OverriderOperator string

const (
	// OverrideAdd adds what is not there, or, of a list, an item.
	OverrideAdd OverriderOperator = "add"
	// OverrideRemove takes away.
	OverrideRemove OverriderOperator = "remove"
	// OverrideReplace changes what is there.
	OverrideReplace OverriderOperator = "replace"
)

// ImageComponent is a part of an image's name.
// +kubebuilder:validation:Enum=Registry;Repository;Tag
type ImageComponent string

const (
	// ImageRegistry is what stands before the first slash, if that is a host.
	ImageRegistry ImageComponent = "Registry"
	// ImageRepository is what stands between the registry and the tag.
	ImageRepository ImageComponent = "Repository"
	// ImageTag is the tag, or the digest.
	ImageTag ImageComponent = "Tag"
)

// ObjectPath is a JSON pointer (RFC 6901) to a field of an object. An override makes no other object of it: apiVersion, kind and the
// metadata, labels and annotations aside, cannot be changed, and neither can the status, which is not placed.
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && self.size() > 1",message="must be a JSON pointer to a field of the object, such as /spec/replicas"
// +kubebuilder:validation:XValidation:rule="!self.matches('^/(apiVersion|kind)(/|$)')",message="cannot lead to apiVersion or kind: an override makes no other object of an object"
// +kubebuilder:validation:XValidation:rule="!self.matches('^/metadata($|/)') || self.matches('^/metadata/(labels|annotations)(/|$)')",message="of the metadata an override can change labels and annotations alone"
// +kubebuilder:validation:XValidation:rule="!self.matches('^/status(/|$)')",message="cannot lead into the status: that is not placed"
type ObjectPath string

// ImagePredicate says which image is meant.
type ImagePredicate struct {
	// path is a JSON pointer to the image.
	Path ObjectPath `json:"path"`
}

// ImageOverrider changes a part of the names of images.
// +kubebuilder:validation:XValidation:rule="self.operator == 'remove' || (has(self.value) && size(self.value) > 0)",message="value is needed to add or replace a part of an image"
type ImageOverrider struct {
	// predicate names the image; without it every container's image is meant, of workloads that Kubernetes has.
	// +optional
	Predicate *ImagePredicate `json:"predicate,omitempty"`
	// component is the part.
	Component ImageComponent `json:"component"`
	// operator is add, which puts value after what is there, remove or replace.
	Operator OverriderOperator `json:"operator"`
	// value is what is put there.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Value string `json:"value,omitempty"`
}

// CommandArgsOverrider changes the command or the arguments of a container.
type CommandArgsOverrider struct {
	// containerName is the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ContainerName string `json:"containerName"`
	// operator is add or remove.
	// +kubebuilder:validation:XValidation:rule="self != 'replace'",message="operator must be add or remove; remove what is there, and add what is to be"
	Operator OverriderOperator `json:"operator"`
	// value are the items to add, or to remove wherever they are; 1 to 100.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	Value []string `json:"value"`
}

// LabelAnnotationOverrider changes labels or annotations.
type LabelAnnotationOverrider struct {
	// operator is add, which sets them, replace, which sets those that are there, or remove.
	Operator OverriderOperator `json:"operator"`
	// value are keys and values; to remove, the keys alone count. 1 to 100.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=100
	Value map[string]string `json:"value"`
}

// FieldPatch changes what is in a text.
type FieldPatch struct {
	// subPath is a JSON pointer into the text.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="subPath must be a JSON pointer into the text, such as /spec/size"
	SubPath string `json:"subPath"`
	// operator is add, remove or replace, as in a JSON patch.
	Operator OverriderOperator `json:"operator"`
	// value is any JSON; needed to add and replace, and not for remove.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// FieldOverrider changes a text in the object that is JSON or YAML itself, such as an entry of a ConfigMap.
// +kubebuilder:validation:XValidation:rule="has(self.json) != has(self.yaml)",message="give either json or yaml: the text is one of them"
type FieldOverrider struct {
	// fieldPath is a JSON pointer to the text.
	FieldPath ObjectPath `json:"fieldPath"`
	// json are changes of a text in JSON, in order; 50 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	JSON []FieldPatch `json:"json,omitempty"`
	// yaml are changes of a text in YAML, in order; 50 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	YAML []FieldPatch `json:"yaml,omitempty"`
}

// PlaintextOverrider changes a field by a JSON patch.
type PlaintextOverrider struct {
	// path is a JSON pointer to the field.
	Path ObjectPath `json:"path"`
	// operator is add, remove or replace, as in a JSON patch.
	Operator OverriderOperator `json:"operator"`
	// value is any JSON; needed to add and replace, and not for remove.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// Overriders are changes, made in the order of these fields. Each has 50 at the most.
type Overriders struct {
	// imageOverrider change images.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`
	// commandOverrider change commands.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`
	// argsOverrider change arguments.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`
	// labelsOverrider change labels.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`
	// annotationsOverrider change annotations.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`
	// fieldOverrider change texts that are JSON or YAML.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`
	// plaintext change any field.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`
}

// RuleWithCluster is what is different in some clusters.
type RuleWithCluster struct {
	// targetCluster means the clusters. Without it: every cluster.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`
	// overriders are the changes.
	Overriders Overriders `json:"overriders"`
}

// OverrideSpec says what is different where.
// +kubebuilder:validation:XValidation:rule="!has(self.overrideRules) || (!has(self.targetCluster) && !has(self.overriders))",message="overrideRules and the older targetCluster and overriders exclude each other; put these into a rule"
// +kubebuilder:validation:XValidation:rule="has(self.overrideRules) || has(self.overriders)",message="give overrideRules: without any nothing is changed"
type OverrideSpec struct {
	// resourceSelectors select the objects; none is every object of the policy's scope. 50 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`
	// overrideRules are applied in order; 30 at the most.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`
	// targetCluster is, with overriders, the older way to write one rule.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`
	// overriders is, with targetCluster, the older way to write one rule.
	// +optional
	Overriders *Overriders `json:"overriders,omitempty"`
}

// Rules are the rules, however they are written.
func (s *OverrideSpec) Rules() []RuleWithCluster {
	if s.Overriders != nil {
		return []RuleWithCluster{{TargetCluster: s.TargetCluster, Overriders: *s.Overriders}}
	}
	return s.OverrideRules
}

// OverridePolicy says what is different of objects of its own namespace in some clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=op,categories={fleet,fleet-policy}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what is different where.
	Spec OverrideSpec `json:"spec"`
}

// OverridePolicyList is a list of OverridePolicy.
// +kubebuilder:object:root=true
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy says what is different of objects of any namespace, and of cluster-scoped ones, in some clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cop,categories={fleet,fleet-policy}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterOverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what is different where.
	Spec OverrideSpec `json:"spec"`
}

// ClusterOverridePolicyList is a list of ClusterOverridePolicy.
// +kubebuilder:object:root=true
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterOverridePolicy `json:"items"`
}
