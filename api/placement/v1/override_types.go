package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceScope tells placements of the two scopes apart.
// +kubebuilder:validation:Enum=Cluster;Namespaced
type ResourceScope string

const (
	// ClusterScoped: a ClusterResourcePlacement.
	ClusterScoped ResourceScope = "Cluster"
	// NamespaceScoped: a ResourcePlacement.
	NamespaceScoped ResourceScope = "Namespaced"
)

// PlacementRef names the one placement that an override is for.
type PlacementRef struct {
	// name is the placement's name, 1 to 253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// scope is Cluster, the default, for a ClusterResourcePlacement, or Namespaced for a ResourcePlacement in the override's
	// own namespace.
	// +optional
	// +kubebuilder:default=Cluster
	Scope ResourceScope `json:"scope,omitempty"`
}

// OverrideType is what a rule does to an object.
// +kubebuilder:validation:Enum=JSONPatch;Delete
type OverrideType string

const (
	// JSONPatchOverrideType changes fields of the object.
	JSONPatchOverrideType OverrideType = "JSONPatch"
	// DeleteOverrideType leaves the object out.
	DeleteOverrideType OverrideType = "Delete"
)

// JSONPatchOverrideOperator is an operation of RFC 6902.
// +kubebuilder:validation:Enum=add;remove;replace
type JSONPatchOverrideOperator string

const (
	// JSONPatchOverrideOpAdd sets a field, or inserts into a list.
	JSONPatchOverrideOpAdd JSONPatchOverrideOperator = "add"
	// JSONPatchOverrideOpRemove removes a field, or an item of a list. It must exist.
	JSONPatchOverrideOpRemove JSONPatchOverrideOperator = "remove"
	// JSONPatchOverrideOpReplace replaces the value of what exists.
	JSONPatchOverrideOpReplace JSONPatchOverrideOperator = "replace"
)

// The variables of an override, in its values and in its paths.
const (
	// OverrideClusterNameVariable stands for the name of the cluster.
	OverrideClusterNameVariable = "${MEMBER-CLUSTER-NAME}"
	// OverrideClusterLabelVariablePrefix, with the key of a label of the cluster and a closing brace behind it, stands for the
	// label's value. A cluster without the label does not get the object.
	OverrideClusterLabelVariablePrefix = "${MEMBER-CLUSTER-LABEL-KEY-"
)

// OverridePolicy says how objects differ from cluster to cluster.
type OverridePolicy struct {
	// overrideRules are applied in their order, each to what those before it made of the object; 1 to 20.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// OverrideRule is one change, and the clusters that it is for.
// +kubebuilder:validation:XValidation:rule="self.overrideType == 'Delete' ? !has(self.jsonPatchOverrides) : has(self.jsonPatchOverrides)",message="jsonPatchOverrides must be given with overrideType JSONPatch, and left out with Delete"
type OverrideRule struct {
	// clusterSelector says for which clusters the rule is. Without it the rule is for none; with no terms in it, for all.
	// +optional
	ClusterSelector *OverrideClusterSelector `json:"clusterSelector,omitempty"`
	// overrideType is JSONPatch, the default, or Delete, which leaves the object out in these clusters.
	// +optional
	// +kubebuilder:default=JSONPatch
	OverrideType OverrideType `json:"overrideType,omitempty"`
	// jsonPatchOverrides are the changes, applied in their order; 1 to 20.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// OverrideClusterSelector selects clusters.
type OverrideClusterSelector struct {
	// clusterSelectorTerms are alternatives: a cluster is selected that fits one of them; 10 at the most. No terms select
	// every cluster.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	ClusterSelectorTerms []OverrideClusterSelectorTerm `json:"clusterSelectorTerms,omitempty"`
}

// OverrideClusterSelectorTerm selects clusters by their labels.
type OverrideClusterSelectorTerm struct {
	// labelSelector is what the labels of the MemberCluster match.
	LabelSelector *metav1.LabelSelector `json:"labelSelector"`
}

// JSONPatchOverride is one operation of RFC 6902.
type JSONPatchOverride struct {
	// op is add, remove or replace.
	Operator JSONPatchOverrideOperator `json:"op"`
	// path is the field, as a JSON pointer, such as /spec/replicas; at most 1,024 characters. Of the metadata only labels and
	// annotations can be changed, and of the rest neither apiVersion nor kind nor status. It may have variables in it, whose
	// values are escaped as a pointer asks.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && self.size() > 1",message="path must be a JSON pointer to a field of the object, such as /spec/replicas"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^/(apiVersion|kind)(/|$)')",message="path cannot be apiVersion or kind: an override cannot change which object it is"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^/metadata($|/)') || self.matches('^/metadata/((labels|annotations)(/|$)|[$][{])')",message="of the metadata an override can change labels and annotations alone"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^/status(/|$)')",message="path cannot be in status: a status is not placed"
	Path string `json:"path"`
	// value is any JSON; for add and replace. Strings in it may have variables in them: ${MEMBER-CLUSTER-NAME} and
	// ${MEMBER-CLUSTER-LABEL-KEY-<key of a label>}.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// ClusterResourceOverrideSpec is how cluster-scoped objects, and all that is in namespaces, differ from cluster to cluster.
// +kubebuilder:validation:XValidation:rule="has(oldSelf.placement) == has(self.placement)",message="The placement field is immutable"
type ClusterResourceOverrideSpec struct {
	// placement is the placement that the override is for. Without it, it is for all of them.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The placement field is immutable"
	// +kubebuilder:validation:XValidation:rule="self.scope != 'Namespaced'",message="clusterResourceOverride placement reference cannot be Namespaced scope"
	Placement *PlacementRef `json:"placement,omitempty"`
	// clusterResourceSelectors name the objects, each by kind and name; 1 to 20. A Namespace stands for itself and everything
	// in it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.name) && size(s.name) > 0 && !has(s.labelSelector))",message="each of clusterResourceSelectors must name its object: name is required, and labelSelector is not supported in an override"
	// +listType=atomic
	ClusterResourceSelectors []ResourceSelector `json:"clusterResourceSelectors"`
	// policy is what to change, and in which clusters.
	Policy *OverridePolicy `json:"policy"`
}

// ClusterResourceOverride changes objects on their way to chosen clusters: cluster-scoped ones, and what is in namespaces.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63; choose a shorter name"
type ClusterResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to change, and where.
	Spec ClusterResourceOverrideSpec `json:"spec"`
}

// ClusterResourceOverrideList is a list of ClusterResourceOverride.
// +kubebuilder:object:root=true
type ClusterResourceOverrideList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceOverride `json:"items"`
}

// ResourceOverrideSelector names one object in the override's own namespace.
type ResourceOverrideSelector struct {
	// group is the API group; empty for the core group.
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// version is the API version, such as v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// kind is the kind, such as ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name is the object's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ResourceOverrideSpec is how objects of the override's namespace differ from cluster to cluster.
// +kubebuilder:validation:XValidation:rule="has(oldSelf.placement) == has(self.placement)",message="The placement field is immutable"
type ResourceOverrideSpec struct {
	// placement is the placement that the override is for. Without it, it is for all of them.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The placement field is immutable"
	Placement *PlacementRef `json:"placement,omitempty"`
	// resourceSelectors name the objects, all in the override's own namespace; 1 to 20.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	ResourceSelectors []ResourceOverrideSelector `json:"resourceSelectors"`
	// policy is what to change, and in which clusters.
	Policy *OverridePolicy `json:"policy"`
}

// ResourceOverride changes objects of its namespace on their way to chosen clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63; choose a shorter name"
type ResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to change, and where.
	Spec ResourceOverrideSpec `json:"spec"`
}

// ResourceOverrideList is a list of ResourceOverride.
// +kubebuilder:object:root=true
type ResourceOverrideList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceOverride `json:"items"`
}

// ClusterResourceOverrideSnapshotSpec is one revision of a ClusterResourceOverride.
type ClusterResourceOverrideSnapshotSpec struct {
	// overrideSpec is the override's spec.
	OverrideSpec ClusterResourceOverrideSpec `json:"overrideSpec"`
	// overrideHash is the SHA-256 of that, as hex text.
	OverrideHash []byte `json:"overrideHash"`
}

// ClusterResourceOverrideSnapshot is one immutable revision of a ClusterResourceOverride. Bindings name the revisions that
// their clusters get.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="spec is immutable; the hub makes a new snapshot when the override changes"
type ClusterResourceOverrideSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the revision.
	Spec ClusterResourceOverrideSnapshotSpec `json:"spec"`
}

// ClusterResourceOverrideSnapshotList is a list of ClusterResourceOverrideSnapshot.
// +kubebuilder:object:root=true
type ClusterResourceOverrideSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceOverrideSnapshot `json:"items"`
}

// ResourceOverrideSnapshotSpec is one revision of a ResourceOverride.
type ResourceOverrideSnapshotSpec struct {
	// overrideSpec is the override's spec.
	OverrideSpec ResourceOverrideSpec `json:"overrideSpec"`
	// overrideHash is the SHA-256 of that, as hex text.
	OverrideHash []byte `json:"overrideHash"`
}

// ResourceOverrideSnapshot is one immutable revision of a ResourceOverride. Bindings name the revisions that their clusters
// get.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="spec is immutable; the hub makes a new snapshot when the override changes"
type ResourceOverrideSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the revision.
	Spec ResourceOverrideSnapshotSpec `json:"spec"`
}

// ResourceOverrideSnapshotList is a list of ResourceOverrideSnapshot.
// +kubebuilder:object:root=true
type ResourceOverrideSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceOverrideSnapshot `json:"items"`
}

// NamespacedName names an object in a namespace.
type NamespacedName struct {
	// name is the object's name.
	Name string `json:"name"`
	// namespace is the object's namespace.
	Namespace string `json:"namespace"`
}

// AppliedOverrides are the revisions of overrides that a cluster gets, in the order in which they are applied.
type AppliedOverrides struct {
	// clusterResourceOverrideSnapshots are the names of ClusterResourceOverrideSnapshots. They are applied first.
	// +optional
	// +listType=atomic
	ClusterResourceOverrideSnapshots []string `json:"clusterResourceOverrideSnapshots,omitempty"`
	// resourceOverrideSnapshots are ResourceOverrideSnapshots. They are applied after those.
	// +optional
	// +listType=atomic
	ResourceOverrideSnapshots []NamespacedName `json:"resourceOverrideSnapshots,omitempty"`
}

// Each visits the snapshots in the order in which they are applied; the namespace is empty for a ClusterResourceOverrideSnapshot.
func (a *AppliedOverrides) Each(visit func(namespace, name string)) {
	for _, name := range a.ClusterResourceOverrideSnapshots {
		visit("", name)
	}
	for _, s := range a.ResourceOverrideSnapshots {
		visit(s.Namespace, s.Name)
	}
}
