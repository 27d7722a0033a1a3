package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldSelector selects clusters by what they are reported to be.
type FieldSelector struct {
	// matchExpressions must all hold; 10 at the most. Keys are provider, region and zone, operators In and NotIn. A cluster in
	// several zones is In where one of them is named, and NotIn where none is.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	MatchExpressions []FieldRequirement `json:"matchExpressions,omitempty"`
}

// FieldRequirement is one condition of a FieldSelector.
type FieldRequirement struct {
	// key is provider, region or zone.
	// +kubebuilder:validation:Enum=provider;region;zone
	Key string `json:"key"`
	// operator is In or NotIn.
	// +kubebuilder:validation:Enum=In;NotIn
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// values are what is compared with; 1 to 50.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	Values []string `json:"values"`
}

// ClusterAffinity means clusters: those to which all of its parts apply. One without parts means every cluster.
type ClusterAffinity struct {
	// clusterNames are the clusters that can be meant; none is any. 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	ClusterNames []string `json:"clusterNames,omitempty"`
	// exclude are clusters that are never meant, whatever the rest says. 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	ExcludeClusters []string `json:"exclude,omitempty"`
	// labelSelector selects by the labels of MemberClusters.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// fieldSelector selects by provider, region and zone.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`
}

// ClusterAffinityTerm is a ClusterAffinity with a name.
type ClusterAffinityTerm struct {
	// affinityName names it in messages and in status; it looks like a label's key and has 32 characters at the most.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// SpreadFieldValue is what groups of clusters are made by.
// +kubebuilder:validation:Enum=cluster;region;zone;provider
type SpreadFieldValue string

// SpreadConstraint limits over how many groups of clusters an object is spread. One that says nothing asks for one cluster at least.
// +kubebuilder:validation:XValidation:rule="!has(self.spreadByField) || !has(self.spreadByLabel)",message="spreadByField and spreadByLabel exclude each other; write two constraints"
// +kubebuilder:validation:XValidation:rule="!has(self.maxGroups) || self.maxGroups == 0 || self.maxGroups >= (has(self.minGroups) ? self.minGroups : 1)",message="maxGroups is smaller than minGroups; raise the one or lower the other"
type SpreadConstraint struct {
	// spreadByField makes groups by cluster, region, zone or provider. Default, without spreadByLabel: cluster.
	// +optional
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`
	// spreadByLabel makes groups by the values of a label of the MemberClusters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	SpreadByLabel string `json:"spreadByLabel,omitempty"`
	// minGroups is how many groups there must be at the least. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MinGroups int32 `json:"minGroups,omitempty"`
	// maxGroups is how many there may be at the most; 0 is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxGroups int32 `json:"maxGroups,omitempty"`
}

// ReplicaSchedulingType says whether clusters have all replicas, or a share.
// +kubebuilder:validation:Enum=Duplicated;Divided
type ReplicaSchedulingType string

const (
	// Duplicated gives each cluster all replicas.
	Duplicated ReplicaSchedulingType = "Duplicated"
	// Divided gives each cluster a share.
	Divided ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference says how replicas are divided.
// +kubebuilder:validation:Enum=Weighted;Aggregated
type ReplicaDivisionPreference string

const (
	// Weighted divides by weights.
	Weighted ReplicaDivisionPreference = "Weighted"
	// Aggregated uses as few clusters as hold them all.
	Aggregated ReplicaDivisionPreference = "Aggregated"
)

// DynamicWeightFactor is what weights follow.
// +kubebuilder:validation:Enum=AvailableReplicas
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weighs clusters by how many replicas they have room for.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// StaticClusterWeight gives clusters a weight.
type StaticClusterWeight struct {
	// targetCluster means the clusters.
	TargetCluster ClusterAffinity `json:"targetCluster"`
	// weight is 1 or more. A cluster that several rules mean has the greatest of their weights, one that none means gets nothing.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Weight int64 `json:"weight"`
}

// ClusterPreferences weigh clusters.
type ClusterPreferences struct {
	// staticWeightList are rules, 30 at the most. Where none means any cluster, all weigh the same.
	// +optional
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`
	// dynamicWeight has weights follow what clusters have room for; staticWeightList does not count then.
	// +optional
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// ReplicaSchedulingStrategy says how many replicas each cluster has.
type ReplicaSchedulingStrategy struct {
	// replicaSchedulingType is Duplicated, each cluster has all, or Divided. Default: Divided; where the whole strategy is absent,
	// Duplicated.
	// +optional
	// +kubebuilder:default=Divided
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`
	// replicaDivisionPreference is, for Divided, Weighted or Aggregated. Default: Weighted.
	// +optional
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`
	// weightPreference is, for Weighted, what clusters weigh. Without it all weigh the same.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// Placement says which clusters objects go to, and how replicas are divided.
// +kubebuilder:validation:XValidation:rule="!has(self.clusterAffinity) || !has(self.clusterAffinities)",message="clusterAffinity and clusterAffinities exclude each other; put the one into the others"
// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || !self.spreadConstraints.exists(c, has(c.spreadByField) && c.spreadByField != 'cluster') || self.spreadConstraints.exists(c, has(c.spreadByField) ? c.spreadByField == 'cluster' : !has(c.spreadByLabel))",message="spreadConstraints by region, zone or provider need one with spreadByField cluster beside them, which says how many clusters there are to be in all"
// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || self.spreadConstraints.all(c, self.spreadConstraints.exists_one(d, has(c.spreadByLabel) ? has(d.spreadByLabel) && c.spreadByLabel == d.spreadByLabel : !has(d.spreadByLabel) && (has(c.spreadByField) ? c.spreadByField : 'cluster') == (has(d.spreadByField) ? d.spreadByField : 'cluster')))",message="spreadConstraints has two constraints by the same; make them one"
type Placement struct {
	// clusterAffinity means the clusters that objects may go to. Without it: every cluster.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
	// clusterAffinities are groups of clusters, in order, 10 at the most. Where replicas follow the room that clusters have, the
	// first group is filled, what does not fit goes to the next, and what is taken away is taken from the last one first. Else the
	// first group in which a cluster can have the object has it all.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.affinityName == b.affinityName))",message="clusterAffinities has two groups with one affinityName; name each differently"
	// +listType=atomic
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`
	// clusterTolerations let objects go to clusters that have taints; 100 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator in ['Exists', 'Equal', ''])",message="operator of a toleration must be Exists or Equal"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator != 'Exists' || !has(t.value) || t.value == '')",message="value of a toleration must be empty where its operator is Exists, which looks at no value"
	// +kubebuilder:validation:XValidation:rule="self.all(t, has(t.key) && t.key != '' || has(t.operator) && t.operator == 'Exists')",message="operator of a toleration without a key must be Exists, which tolerates every taint"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute', ''])",message="effect of a toleration must be NoSchedule, PreferNoSchedule or NoExecute; without one it is for every effect"
	// +listType=atomic
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`
	// spreadConstraints limit over how many groups of clusters objects are spread; 10 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`
	// replicaScheduling says how many replicas each cluster has. Without it: all.
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`
}
