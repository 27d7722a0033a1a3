package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PlacementType says how clusters are chosen.
// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
type PlacementType string

const (
	// PickAllPlacementType chooses every cluster that is fit for the placement.
	PickAllPlacementType PlacementType = "PickAll"
	// PickNPlacementType chooses so many of the clusters that are fit for it, the best ones.
	PickNPlacementType PlacementType = "PickN"
	// PickFixedPlacementType chooses the clusters that are named.
	PickFixedPlacementType PlacementType = "PickFixed"
)

// PlacementPolicy says which clusters receive the objects.
type PlacementPolicy struct {
	// placementType says how clusters are chosen: PickAll takes every cluster that is fit, PickN the best numberOfClusters of
	// them, PickFixed those of clusterNames. Default: PickAll. It cannot be changed.
	// +optional
	// +kubebuilder:default=PickAll
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="placement type is immutable"
	PlacementType PlacementType `json:"placementType,omitempty"`

	// clusterNames are the clusters to choose; for PickFixed alone, 100 at the most, each once. An empty list chooses none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(n, self.exists_one(m, m == n))",message="clusterNames must name each cluster once"
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	ClusterNames []string `json:"clusterNames,omitempty"`

	// numberOfClusters is how many clusters to choose, 0 or more; for PickN alone, which needs it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// affinity says what clusters must have, and what they had better have. Not for PickFixed.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints say how evenly the chosen clusters are spread over what a label divides the fleet into, such
	// as regions; for PickN alone, 20 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// tolerations let the placement choose clusters that have taints; 100 at the most. Not for PickFixed, which minds no taints.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// Affinity says which clusters a placement is drawn to.
type Affinity struct {
	// clusterAffinity is about the clusters themselves.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
}

// ClusterAffinity says what clusters must have, and what they had better have. It is looked at when a cluster is chosen: one
// that was chosen stays so when it changes, until the policy does.
type ClusterAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution is what a cluster must have to be chosen.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.clusterSelectorTerms.all(t, !has(t.propertySorter))",message="propertySorter is not allowed in requiredDuringSchedulingIgnoredDuringExecution; use propertySelector, or prefer clusters with preferredDuringSchedulingIgnoredDuringExecution"
	RequiredDuringSchedulingIgnoredDuringExecution *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// preferredDuringSchedulingIgnoredDuringExecution is what PickN ranks clusters by: each term adds to a cluster's score;
	// 20 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector selects clusters.
type ClusterSelector struct {
	// clusterSelectorTerms are alternatives: a cluster that matches one of them is selected; 10 at the most. Without any, every
	// cluster is.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// ClusterSelectorTerm selects clusters that have all that it names.
type ClusterSelectorTerm struct {
	// labelSelector is about the labels of the MemberCluster. Absent or empty it matches every cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// propertySelector is about the properties that the cluster's agent reports; for required terms alone.
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`
	// propertySorter ranks clusters by a property; for preferred terms alone.
	// +optional
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// PropertySelector selects clusters by what their agents report.
type PropertySelector struct {
	// matchExpressions must all hold; 20 at the most.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// PropertySelectorOperator compares a property with a value.
// +kubebuilder:validation:Enum=Gt;Ge;Eq;Ne;Lt;Le
type PropertySelectorOperator string

// The comparisons, of a cluster's property with the value that is given.
const (
	PropertyGreaterThan        PropertySelectorOperator = "Gt"
	PropertyGreaterThanOrEqual PropertySelectorOperator = "Ge"
	PropertyEqual              PropertySelectorOperator = "Eq"
	PropertyNotEqual           PropertySelectorOperator = "Ne"
	PropertyLessThan           PropertySelectorOperator = "Lt"
	PropertyLessThanOrEqual    PropertySelectorOperator = "Le"
)

// PropertySelectorRequirement compares one property with one value. A cluster that does not report the property, or reports
// something else than a quantity, does not match.
type PropertySelectorRequirement struct {
	// name is the property: a key of the cluster's status.properties, such as kubernetes-fleet.io/node-count, or
	// resources.kubernetes-fleet.io/, then total, allocatable or available, a dash and the name of a resource, such as
	// resources.kubernetes-fleet.io/available-cpu or resources.kubernetes-fleet.io/total-nvidia.com/gpu.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	Name string `json:"name"`
	// operator is Gt, Ge, Eq, Ne, Lt or Le.
	Operator PropertySelectorOperator `json:"operator"`
	// values holds one quantity, such as 4 or 16Gi.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(self) == 1",message="values must hold exactly one value"
	// +kubebuilder:validation:XValidation:rule="self.all(v, isQuantity(v))",message="values must be quantities, such as 4, 0.5 or 16Gi"
	// +listType=atomic
	Values []string `json:"values"`
}

// PropertySortOrder says which values of a property are the better ones.
// +kubebuilder:validation:Enum=Ascending;Descending
type PropertySortOrder string

const (
	// Ascending: the smaller the better.
	Ascending PropertySortOrder = "Ascending"
	// Descending: the greater the better.
	Descending PropertySortOrder = "Descending"
)

// PropertySorter ranks clusters by a property: the best of the fleet gets the whole weight of the term, the worst none, and
// others a share of it that goes by where between the two they are. A cluster without the property gets none.
type PropertySorter struct {
	// name is the property, as in a propertySelector.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	Name string `json:"name"`
	// sortOrder is Descending, the greater the better, or Ascending, the smaller the better.
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// PreferredClusterSelector makes some clusters better than others.
type PreferredClusterSelector struct {
	// weight is what a cluster that matches gains; -100 to 100. A negative weight makes it worse.
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// preference says which clusters match; a propertySorter divides the weight among them.
	// +kubebuilder:validation:XValidation:rule="!has(self.propertySelector)",message="propertySelector is not allowed in preferredDuringSchedulingIgnoredDuringExecution; use propertySorter, or require it with requiredDuringSchedulingIgnoredDuringExecution"
	Preference ClusterSelectorTerm `json:"preference"`
}

// UnsatisfiableConstraintAction says what a topology spread constraint does where it cannot be kept.
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableConstraintAction string

const (
	// DoNotSchedule chooses fewer clusters rather than break the constraint.
	DoNotSchedule UnsatisfiableConstraintAction = "DoNotSchedule"
	// ScheduleAnyway chooses clusters that break the constraint last.
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// TopologySpreadConstraint keeps the chosen clusters spread evenly over the values of a label.
type TopologySpreadConstraint struct {
	// maxSkew is how many clusters more one value may have than the value with the fewest; 1 or more, default 1. Values that
	// only clusters have which are not fit for the placement do not count.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxSkew *int32 `json:"maxSkew,omitempty"`
	// topologyKey is the label. Clusters without it are not chosen under DoNotSchedule, and are chosen last under
	// ScheduleAnyway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`
	// whenUnsatisfiable is DoNotSchedule, which chooses fewer clusters rather than break the constraint, or ScheduleAnyway.
	// Default: DoNotSchedule.
	// +optional
	// +kubebuilder:default=DoNotSchedule
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// Type returns how clusters are chosen; by a policy that is absent too.
func (p *PlacementPolicy) Type() PlacementType {
	if p == nil || p.PlacementType == "" {
		return PickAllPlacementType
	}
	return p.PlacementType
}

// TolerationOperator says how a toleration and a taint are compared.
// +kubebuilder:validation:Enum=Equal;Exists
type TolerationOperator string

const (
	// TolerationEqual: key and value must be those of the taint.
	TolerationEqual TolerationOperator = "Equal"
	// TolerationExists: the key must be that of the taint; without a key every taint is tolerated.
	TolerationExists TolerationOperator = "Exists"
)

// Toleration lets a placement choose clusters that have a taint.
// +kubebuilder:validation:XValidation:rule="self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",message="value must be empty when operator is Exists"
// +kubebuilder:validation:XValidation:rule="(has(self.key) && size(self.key) > 0) || self.operator == 'Exists'",message="operator must be Exists when key is empty"
type Toleration struct {
	// key is the key of the taints that are tolerated; empty, with operator Exists, for those of any key.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || !format.qualifiedName().validate(self).hasValue()",message="a toleration's key must be written like the key of a label, such as maintenance or example.com/maintenance"
	Key string `json:"key,omitempty"`
	// operator is Equal, which compares key and value, or Exists, which compares the key alone. Default: Equal.
	// +optional
	// +kubebuilder:default=Equal
	Operator TolerationOperator `json:"operator,omitempty"`
	// value is the value of the taints that are tolerated, with operator Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="a toleration's value must be written like the value of a label: letters, digits, dashes, underscores and dots, with a letter or digit at each end"
	Value string `json:"value,omitempty"`
	// effect is that of the taints that are tolerated, NoSchedule; empty for any.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule
	Effect string `json:"effect,omitempty"`
}
