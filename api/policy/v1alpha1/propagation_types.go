package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ResourceSelector selects objects of one kind on the hub.
// +kubebuilder:validation:XValidation:rule="!has(self.name) || size(self.name) == 0 || !has(self.labelSelector)",message="name and labelSelector exclude each other; an object that is named needs no labels"
type ResourceSelector struct {
	// apiVersion is the objects' API group and version, such as apps/v1; of the core group the version alone.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9][-a-z0-9.]*/)?[a-z][-a-z0-9]*$')",message="apiVersion must be a group, a slash and a version, such as apps/v1, or v1 for the core group"
	APIVersion string `json:"apiVersion"`
	// kind is their kind, such as Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// namespace is where they are. A PropagationPolicy selects in its own namespace alone, and need not say so; a
	// ClusterPropagationPolicy that does not say selects in all of them. Cluster-scoped objects have none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name is the name of one object; without a name all of the kind are selected that labelSelector matches.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// labelSelector selects by labels. Without it, and without a name, all objects of the kind are selected.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// PreemptionBehavior says whether a policy takes objects that another has.
// +kubebuilder:validation:Enum=Always;Never
type PreemptionBehavior string

const (
	// PreemptAlways takes an object from a policy of a lower priority, and a PropagationPolicy from any ClusterPropagationPolicy.
	PreemptAlways PreemptionBehavior = "Always"
	// PreemptNever leaves an object with the policy that has it.
	PreemptNever PreemptionBehavior = "Never"
)

// ConflictResolution says what becomes of an object in a member that has the name of one that is placed, and is not the fleet's.
// +kubebuilder:validation:Enum=Abort;Overwrite
type ConflictResolution string

const (
	// ConflictAbort leaves it alone, and says so.
	ConflictAbort ConflictResolution = "Abort"
	// ConflictOverwrite takes it over and makes it what the hub says.
	ConflictOverwrite ConflictResolution = "Overwrite"
)

// ActivationPreference says when a change of a policy counts.
// +kubebuilder:validation:Enum="";Lazy
type ActivationPreference string

const (
	// ActivateAtOnce has a change count at once.
	ActivateAtOnce ActivationPreference = ""
	// ActivateLazily has a change of the policy count for an object once that object itself is changed.
	ActivateLazily ActivationPreference = "Lazy"
)

// Suspension holds back what a policy would do.
// +kubebuilder:validation:XValidation:rule="!has(self.dispatching) || !has(self.dispatchingOnClusters)",message="dispatching and dispatchingOnClusters exclude each other; name the clusters, or suspend them all"
type Suspension struct {
	// dispatching, true, has every cluster keep what it has: what changes on the hub is sent, all at once, when this is taken off.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="dispatching can only be true; take it off to go on"
	Dispatching *bool `json:"dispatching,omitempty"`
	// dispatchingOnClusters names clusters that keep what they have.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
	// scheduling, true, holds back the decision which clusters have the objects: what is decided stays, and a new object goes nowhere.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// SuspendClusters names clusters.
type SuspendClusters struct {
	// clusterNames are the clusters; 1 to 100.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	ClusterNames []string `json:"clusterNames"`
}

// AutoScaling is about nodes that are bought on demand, which this fleet does not do.
type AutoScaling struct {
	// ecsProvision would buy nodes. It is refused.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self",message="ecsProvision is not supported: the fleet buys no nodes; take it off, and let each cluster's own autoscaler add nodes"
	ECSProvision bool `json:"ecsProvision,omitempty"`
}

// PropagationSpec says which objects go where.
// +kubebuilder:validation:XValidation:rule="!has(self.preemption) || self.preemption != 'Always' || self.resourceSelectors.all(s, has(s.name) && size(s.name) > 0)",message="preemption Always needs a name in each of resourceSelectors: a policy that takes objects from others names them"
type PropagationSpec struct {
	// resourceSelectors select the objects; each selector adds to them. 1 to 50.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`
	// association is an older name of propagateDeps; either is enough.
	// +optional
	Association bool `json:"association,omitempty"`
	// propagateDeps has what a workload refers to go along: ConfigMaps, Secrets, ServiceAccounts, PersistentVolumeClaims.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`
	// placement says which clusters the objects go to, and how replicas are divided. Without it: to all, each with all replicas.
	// +optional
	Placement Placement `json:"placement,omitempty"`
	// priority decides between policies that select one object: the higher. Default: 0.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// preemption says whether the policy takes objects that another has. Default: Never.
	// +optional
	// +kubebuilder:default=Never
	Preemption PreemptionBehavior `json:"preemption,omitempty"`
	// dependentOverrides are override policies, of the policy's own scope and namespace, that must exist before anything is placed.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	DependentOverrides []string `json:"dependentOverrides,omitempty"`
	// schedulerName names who decides; there is one. Default: default-scheduler.
	// +optional
	// +kubebuilder:default=default-scheduler
	// +kubebuilder:validation:XValidation:rule="self == 'default-scheduler'",message="schedulerName can only be default-scheduler: nobody else would decide; take it off"
	// +kubebuilder:validation:MaxLength=63
	SchedulerName string `json:"schedulerName,omitempty"`
	// conflictResolution says what becomes of an object in a member that has the name of one that is placed, and is not the
	// fleet's. Default: Abort, which leaves it alone and says so.
	// +optional
	// +kubebuilder:default=Abort
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`
	// activationPreference says when a change of this policy counts: at once, or, Lazy, once the object itself is changed.
	// +optional
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`
	// suspension holds back what the policy would do.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`
	// preserveResourcesOnDeletion has the copies stay in the members when the object is deleted on the hub. Whether or not, they stay
	// when the policy is deleted. Default: false.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
	// autoScaling is accepted as far as it asks for nothing.
	// +optional
	AutoScaling *AutoScaling `json:"autoScaling,omitempty"`
}

// CarriesDeps tells whether what a workload refers to goes along.
func (s *PropagationSpec) CarriesDeps() bool { return s.PropagateDeps || s.Association }

// PropagationStatus is what became of a policy.
type PropagationStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// claimed is how many objects the policy has.
	// +optional
	Claimed int32 `json:"claimed"`
	// scheduled is of how many of them it is decided where they go.
	// +optional
	Scheduled int32 `json:"scheduled"`
	// available is how many of them are available in all of their clusters.
	// +optional
	Available int32 `json:"available"`
	// conditions are Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PropagationPolicy places objects of its own namespace.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=pp,categories={fleet,fleet-policy}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Claimed",type=integer,JSONPath=`.status.claimed`
// +kubebuilder:printcolumn:name="Scheduled",type=integer,JSONPath=`.status.scheduled`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Conflict",type=string,priority=1,JSONPath=`.spec.conflictResolution`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says which objects go where.
	Spec PropagationSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status PropagationStatus `json:"status,omitempty"`
}

// PropagationPolicyList is a list of PropagationPolicy.
// +kubebuilder:object:root=true
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicy places cluster-scoped objects, and objects of any namespace but the system's.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cpp,categories={fleet,fleet-policy}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Claimed",type=integer,JSONPath=`.status.claimed`
// +kubebuilder:printcolumn:name="Scheduled",type=integer,JSONPath=`.status.scheduled`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Conflict",type=string,priority=1,JSONPath=`.spec.conflictResolution`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says which objects go where.
	Spec PropagationSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status PropagationStatus `json:"status,omitempty"`
}

// ClusterPropagationPolicyList is a list of ClusterPropagationPolicy.
// +kubebuilder:object:root=true
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPropagationPolicy `json:"items"`
}
