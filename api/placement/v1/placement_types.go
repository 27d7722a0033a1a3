package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// DefaultRevisionHistoryLimit is the number of snapshots kept where the placement does not say.
	DefaultRevisionHistoryLimit int32 = 10
)

// PlacementSpec says what is placed, where, and how changes reach the clusters.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.policy) || has(self.policy)",message="policy cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.strategy.type == 'External' && self.strategy.type != 'External')",message="cannot change rollout strategy type from 'External' to other types; go on with update runs, or delete the placement, with deleteStrategy.propagationPolicy Abandon if its objects are to stay, and create it anew"
// +kubebuilder:validation:XValidation:rule="!(has(self.strategy.reportBackStrategy) && has(self.strategy.reportBackStrategy.destination) && self.strategy.reportBackStrategy.destination == 'OriginalResource') || (has(self.policy) && ((self.policy.placementType == 'PickFixed' && (!has(self.policy.clusterNames) || size(self.policy.clusterNames) <= 1)) || (self.policy.placementType == 'PickN' && has(self.policy.numberOfClusters) && self.policy.numberOfClusters <= 1)))",message="destination OriginalResource needs a placement that chooses one cluster at the most, PickFixed with one name or PickN with numberOfClusters 1; use destination WorkAPI for more"
type PlacementSpec struct {
	// resourceSelectors name the objects to place; 1 to 100. An object may be selected once only.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.filter(s, s.group == '' && s.version == 'v1' && s.kind == 'Namespace' && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors').size() <= 1",message="only one namespace selector with NamespaceWithResourceSelectors mode is allowed"
	// +kubebuilder:validation:XValidation:rule="self.all(s, !(s.group == '' && s.version == 'v1' && s.kind == 'Namespace' && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors') || (has(s.name) && size(s.name) > 0))",message="namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)"
	// +kubebuilder:validation:XValidation:rule="!self.exists(s, s.group == '' && s.version == 'v1' && s.kind == 'Namespace' && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors') || self.filter(s, s.group == '' && s.version == 'v1' && s.kind == 'Namespace').size() <= 1",message="when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)"
	// +listType=atomic
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// policy says which clusters receive the objects. Without it every joined and healthy cluster does. It cannot be
	// taken away again once it is set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickAll' || !has(self.affinity) || !has(self.affinity.clusterAffinity) || !has(self.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution) || size(self.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution) == 0",message="preferredDuringSchedulingIgnoredDuringExecution cannot be set when placementType is PickAll, which chooses every cluster that fits; require what clusters must have, or use PickN"
	// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickFixed' || !(has(self.affinity) || has(self.numberOfClusters) || (has(self.topologySpreadConstraints) && size(self.topologySpreadConstraints) > 0) || (has(self.tolerations) && size(self.tolerations) > 0))",message="affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed"
	// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickAll' || !((has(self.clusterNames) && size(self.clusterNames) > 0) || has(self.numberOfClusters) || (has(self.topologySpreadConstraints) && size(self.topologySpreadConstraints) > 0))",message="clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll"
	// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickN' || (has(self.numberOfClusters) && !(has(self.clusterNames) && size(self.clusterNames) > 0))",message="clusterNames cannot be set and numberOfClusters must be set when placementType is PickN"
	Policy *PlacementPolicy `json:"policy,omitempty"`

	// strategy says how a change reaches the clusters. Default: RollingUpdate.
	// +optional
	// +kubebuilder:default={}
	Strategy RolloutStrategy `json:"strategy,omitempty"`

	// revisionHistoryLimit is how many resource snapshots, and how many policy snapshots, are kept; 1 to 1000,
	// default 10. Snapshots in use are kept beyond it.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// statusReportingScope says who may read how far the placement has come: ClusterScopeOnly, those who may read the placement,
	// which is the default, or NamespaceAccessible, those too who work in the namespace that it selects: the status is copied
	// there, into a ClusterResourcePlacementStatus of the placement's name. It never changes, and a placement in a namespace
	// passes over it.
	// +optional
	// +kubebuilder:default=ClusterScopeOnly
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// ResourceSelector selects one object by name, several by label, or, with neither, all of a kind.
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && size(self.name) > 0 && has(self.labelSelector))",message="name and labelSelector are mutually exclusive in a resource selector"
type ResourceSelector struct {
	// group is the API group; empty for the core group.
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// version is the API version, such as v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// kind is the kind, such as Namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name selects one object. It excludes labelSelector. An empty name is as good as none: without a labelSelector either, all
	// objects of the kind are selected, so that one of kind Namespace takes every namespace that is not reserved.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// labelSelector selects all objects of the kind that match. It excludes name.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// selectionScope says what a selector of kind Namespace takes: NamespaceWithResources, the namespace with all that is in
	// it, which is the default; NamespaceOnly, the Namespace object alone; or NamespaceWithResourceSelectors, the Namespace object,
	// named, with what the placement's other selectors find in it. Selectors of other kinds pass over it.
	// +optional
	// +kubebuilder:default=NamespaceWithResources
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// SelectionScope says how much of a namespace is placed.
// +kubebuilder:validation:Enum=NamespaceOnly;NamespaceWithResources;NamespaceWithResourceSelectors
type SelectionScope string

const (
	// SelectionScopeNamespaceOnly takes the Namespace object and nothing of what is in it.
	SelectionScopeNamespaceOnly SelectionScope = "NamespaceOnly"
	// SelectionScopeNamespaceWithResources takes the namespace with all that may be placed of what is in it.
	SelectionScopeNamespaceWithResources SelectionScope = "NamespaceWithResources"
	// SelectionScopeNamespaceWithResourceSelectors takes the Namespace object, and lets the placement's other selectors select
	// objects in it.
	SelectionScopeNamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)

// RevisionLimit returns the number of snapshots to keep.
func (s *PlacementSpec) RevisionLimit() int32 {
	return ptr.Deref(s.RevisionHistoryLimit, DefaultRevisionHistoryLimit)
}

// ResourceIdentifier names an object that a placement selects.
type ResourceIdentifier struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the API version.
	Version string `json:"version"`
	// kind is the kind.
	Kind string `json:"kind"`
	// name is the object's name.
	Name string `json:"name"`
	// namespace is the object's namespace; empty for a cluster-scoped object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// envelope is the envelope that the object came in; absent where it came in none.
	// +optional
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// FailedResourcePlacement is an object that could not be overridden for a cluster, could not be applied in it, or is not
// available there.
type FailedResourcePlacement struct {
	ResourceIdentifier `json:",inline"`
	// condition is the member's own account: Applied, Available or DiffReported, False; of an object that could not be
	// overridden the hub's: Overridden, False.
	Condition metav1.Condition `json:"condition"`
}

// PlacementStatus tells how far the placement has come.
type PlacementStatus struct {
	// selectedResources are the objects of the newest resource snapshot, or, under External, of the one that all
	// clusters run; 2,000 at the most, see selectedResourceCount.
	// +optional
	// +listType=atomic
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`
	// selectedResourceCount is the number of selected objects, those not listed included.
	// +optional
	SelectedResourceCount int32 `json:"selectedResourceCount,omitempty"`
	// observedResourceIndex is the index of the snapshot that selectedResources describes. It is empty while clusters
	// of an External placement run different snapshots; clusterSummary then has the numbers.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// clusterSummary counts the selected clusters, those without a row included.
	// +optional
	ClusterSummary *ClusterSummary `json:"clusterSummary,omitempty"`
	// placementStatuses has a row for each selected cluster, those that are not done first, as many as fit into the
	// status; clusterSummary.omitted counts the others. A cluster's whole state is on its binding.
	// +optional
	// +listType=atomic
	PlacementStatuses []PerClusterPlacementStatus `json:"placementStatuses,omitempty"`
	// conditions are the placement's conditions over all clusters.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterSummary counts the clusters of a placement.
type ClusterSummary struct {
	// selected is the number of clusters that the policy chose.
	Selected int32 `json:"selected"`
	// available is the number of those in which all of the cluster's snapshot is available.
	Available int32 `json:"available"`
	// failed is the number of those whose apply failed.
	Failed int32 `json:"failed"`
	// omitted is the number of clusters for which placementStatuses has no row.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// byResourceIndex tells how many clusters are on which resource snapshot. Clusters that have none yet are not in it.
	// +optional
	// +listType=map
	// +listMapKey=resourceIndex
	ByResourceIndex []ResourceIndexCount `json:"byResourceIndex,omitempty"`
}

// ResourceIndexCount is the number of clusters on one resource snapshot.
type ResourceIndexCount struct {
	// resourceIndex is the snapshot's index.
	ResourceIndex string `json:"resourceIndex"`
	// clusters is the number of clusters on it.
	Clusters int32 `json:"clusters"`
}

// PerClusterPlacementStatus tells how far one cluster has come.
type PerClusterPlacementStatus struct {
	// clusterName is the cluster.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// observedResourceIndex is the index of the resource snapshot that this cluster is on; empty while it has none.
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`
	// applicableClusterResourceOverrides are the ClusterResourceOverrideSnapshots that this cluster was given.
	// +optional
	// +listType=atomic
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`
	// applicableResourceOverrides are the ResourceOverrideSnapshots that this cluster was given.
	// +optional
	// +listType=atomic
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`
	// failedPlacements are objects that could not be overridden or applied, or are not available; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`
	// driftedPlacements are objects that somebody changed in the cluster after they were applied, as far as the apply strategy
	// has such changes reported; 100 at the most, fewer where the status would grow too large.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`
	// diffedPlacements are objects of which the cluster's differs from the hub's and is not written; 100 at the most, fewer
	// where the status would grow too large.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`
	// conditions are this cluster's conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterResourcePlacement places cluster-scoped objects, and namespaces with what is in them, in member clusters.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=crp,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.policy.placementType`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Work-Synchronized",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementWorkSynchronized")].status`
// +kubebuilder:printcolumn:name="Work-Synchronized-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementWorkSynchronized")].observedGeneration`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].status`
// +kubebuilder:printcolumn:name="Available-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Resource-Index",type=string,priority=1,JSONPath=`.status.observedResourceIndex`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name: the name field cannot have length exceeding 63; choose a shorter name"
type ClusterResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +kubebuilder:validation:XValidation:rule="!has(self.statusReportingScope) || self.statusReportingScope != 'NamespaceAccessible' || self.resourceSelectors.filter(s, s.kind == 'Namespace').size() == 1",message="when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required"
	// +kubebuilder:validation:XValidation:rule="(has(self.statusReportingScope) ? self.statusReportingScope : 'ClusterScopeOnly') == (has(oldSelf.statusReportingScope) ? oldSelf.statusReportingScope : 'ClusterScopeOnly')",message="statusReportingScope is immutable"
	Spec PlacementSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// ClusterResourcePlacementList is a list of ClusterResourcePlacement.
// +kubebuilder:object:root=true
type ClusterResourcePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacement `json:"items"`
}
