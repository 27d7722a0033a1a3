package v1alpha1

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectReference names the object that is placed.
type ObjectReference struct {
	// apiVersion is its API group and version.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// kind is its kind.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// namespace is where it is; empty for a cluster-scoped object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is its name.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// PolicyReference names a policy.
type PolicyReference struct {
	// kind is PropagationPolicy or ClusterPropagationPolicy.
	// +kubebuilder:validation:Enum=PropagationPolicy;ClusterPropagationPolicy
	Kind string `json:"kind"`
	// name is the policy's name. A PropagationPolicy is in the object's namespace.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ObjectPlacementSpec says where one object goes, and how. The hub copies it from the policy that claims the object.
type ObjectPlacementSpec struct {
	// resource names the object.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="resource is immutable; each object has an internal placement of its own"
	Resource ObjectReference `json:"resource"`
	// policy is the one that claims the object; absent once that was deleted, or selects it no more: what is in the members
	// stays as it is until another policy claims the object, or the object is deleted.
	// +optional
	Policy *PolicyReference `json:"policy,omitempty"`
	// placement says which clusters the object goes to, and how its replicas are divided. It is a copy of what was checked in the
	// policy, and not checked here again.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Placement Placement `json:"placement,omitempty"`
	// propagateDeps has what the object refers to go along: ConfigMaps, Secrets, ServiceAccounts, PersistentVolumeClaims.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`
	// conflictResolution says what becomes of an object of that name that is in a member and not the fleet's.
	// +optional
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`
	// suspension holds back what is decided, or what is sent to members.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`
	// preserveResourcesOnDeletion has the copies stay in the members when the object is deleted on the hub.
	// +optional
	PreserveResourcesOnDeletion bool `json:"preserveResourcesOnDeletion,omitempty"`
	// dependentOverrides are override policies that must exist before anything is decided.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	DependentOverrides []string `json:"dependentOverrides,omitempty"`
	// rebalanceTriggeredAt has the replicas divided anew, as if for the first time, where it is later than the last time.
	// +optional
	RebalanceTriggeredAt *metav1.Time `json:"rebalanceTriggeredAt,omitempty"`
}

// ClusterShare is a cluster that the object goes to.
type ClusterShare struct {
	// name is the MemberCluster.
	Name string `json:"name"`
	// replicas is its share; absent where the object has no replicas.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}

// Rebalance is the account of a rebalancing.
type Rebalance struct {
	// triggeredAt is the spec.rebalanceTriggeredAt that it answers.
	TriggeredAt metav1.Time `json:"triggeredAt"`
	// changed tells whether a share became another.
	Changed bool `json:"changed"`
	// message says what was before and what is now.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterItem is how the object is in one cluster.
type ClusterItem struct {
	// name is the MemberCluster.
	Name string `json:"name"`
	// applied is True, False or Unknown.
	Applied metav1.ConditionStatus `json:"applied"`
	// available is True, False or Unknown.
	Available metav1.ConditionStatus `json:"available"`
	// message says what is waited for where one of the two is not True.
	// +optional
	Message string `json:"message,omitempty"`
}

// ObjectPlacementStatus is what became of it.
type ObjectPlacementStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// objectGeneration is the object's metadata.generation that was last divided and of which a revision was kept; absent for kinds
	// that count none.
	// +optional
	ObjectGeneration int64 `json:"objectGeneration,omitempty"`
	// conditions are Scheduled, Applied and Available.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// clusters are those that were decided on, sorted by name. While replicas move, a cluster may still have others: its binding
	// says how many.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterShare `json:"clusters,omitempty"`
	// clusterCount is how many they are.
	// +optional
	ClusterCount int32 `json:"clusterCount,omitempty"`
	// decidedFor is the number of replicas that was divided last.
	// +optional
	DecidedFor *int32 `json:"decidedFor,omitempty"`
	// affinityName is, of the affinities that the policy lists in order, the last one that has a share.
	// +optional
	AffinityName string `json:"schedulerObservedAffinityName,omitempty"`
	// items are the clusters in which the object is not available, 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	Items []ClusterItem `json:"items,omitempty"`
	// lastRebalance is what came of the last rebalancing.
	// +optional
	LastRebalance *Rebalance `json:"lastRebalance,omitempty"`
}

// ObjectPlacement is the internal placement of one object in a namespace. The hub makes one for each object that a policy claims;
// people read it, and write nothing in it.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=objp,categories={fleet,fleet-policy}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.resource.kind`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.resource.name`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policy.name`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusterCount`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectPlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says where the object goes.
	Spec ObjectPlacementSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status ObjectPlacementStatus `json:"status,omitempty"`
}

// ObjectPlacementList is a list of ObjectPlacement.
// +kubebuilder:object:root=true
type ObjectPlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectPlacement `json:"items"`
}

// ClusterObjectPlacement is the internal placement of one cluster-scoped object.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cobjp,categories={fleet,fleet-policy}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.resource.kind`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.resource.name`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policy.name`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusterCount`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterObjectPlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says where the object goes.
	Spec ObjectPlacementSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status ObjectPlacementStatus `json:"status,omitempty"`
}

// ClusterObjectPlacementList is a list of ClusterObjectPlacement.
// +kubebuilder:object:root=true
type ClusterObjectPlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterObjectPlacement `json:"items"`
}

// ObjectPlacementObject is an internal placement of either scope.
// +kubebuilder:object:generate=false
type ObjectPlacementObject interface {
	placementv1.ParentObject
	ObjectPlacementSpec() *ObjectPlacementSpec
	ObjectPlacementStatus() *ObjectPlacementStatus
}

// RevisionsKept is how many revisions of an object that a policy claims are kept.
const RevisionsKept = 10

// RevisionLimit is how many revisions are kept.
func (o *ObjectPlacement) RevisionLimit() int32 { return RevisionsKept }

// RevisionLimit is how many revisions are kept.
func (o *ClusterObjectPlacement) RevisionLimit() int32 { return RevisionsKept }

// Abandons tells whether the copies stay when the object is deleted.
func (o *ObjectPlacement) Abandons() bool { return o.Spec.PreserveResourcesOnDeletion }

// Abandons tells whether the copies stay when the object is deleted.
func (o *ClusterObjectPlacement) Abandons() bool { return o.Spec.PreserveResourcesOnDeletion }

// ObjectPlacementSpec returns the spec.
func (o *ObjectPlacement) ObjectPlacementSpec() *ObjectPlacementSpec { return &o.Spec }

// ObjectPlacementSpec returns the spec.
func (o *ClusterObjectPlacement) ObjectPlacementSpec() *ObjectPlacementSpec { return &o.Spec }

// ObjectPlacementStatus returns the status.
func (o *ObjectPlacement) ObjectPlacementStatus() *ObjectPlacementStatus { return &o.Status }

// ObjectPlacementStatus returns the status.
func (o *ClusterObjectPlacement) ObjectPlacementStatus() *ObjectPlacementStatus { return &o.Status }
