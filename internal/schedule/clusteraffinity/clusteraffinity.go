// Package clusteraffinity tells which clusters the affinities of policies mean.
package clusteraffinity

import (
	"fmt"
	"slices"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// LabelProvider, on a MemberCluster, says who runs the machines of the cluster.
const LabelProvider = "fleetwright.io/provider"

// Cluster is what an affinity can look at.
type Cluster struct {
	// Name and Labels are the MemberCluster's.
	Name   string
	Labels map[string]string
	// Provider, Region and Zones say where the cluster is; empty is unknown.
	Provider, Region string
	Zones            []string
}

// Locate is the cluster with a name and labels. Where it is, the labels say.
func Locate(name string, of map[string]string) Cluster {
	c := Cluster{Name: name, Labels: of, Provider: of[LabelProvider], Region: of[corev1.LabelTopologyRegion]}
	if zone := of[corev1.LabelTopologyZone]; zone != "" {
		c.Zones = []string{zone}
	}
	return c
}

// Affinity is an affinity that was read.
type Affinity struct {
	affinity *policyv1alpha1.ClusterAffinity
	selector labels.Selector
}

// Read reads an affinity; nil means every cluster. field is where it stands, for errors: one names the part that cannot be understood.
func Read(a *policyv1alpha1.ClusterAffinity, field string) (*Affinity, error) {
	if a == nil {
		a = &policyv1alpha1.ClusterAffinity{}
	}
	read := &Affinity{affinity: a, selector: labels.Everything()}
	if a.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("%s.labelSelector cannot be understood: %w; correct it", field, err)
		}
		read.selector = selector
	}
	if a.FieldSelector == nil {
		return read, nil
	}
	for i := range a.FieldSelector.MatchExpressions {
		r := &a.FieldSelector.MatchExpressions[i]
		at := fmt.Sprintf("%s.fieldSelector.matchExpressions[%d]", field, i)
		if _, known := values(r.Key, &Cluster{}); !known {
			return nil, fmt.Errorf("%s.key is %q; it can be provider, region or zone", at, r.Key)
		}
		if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			return nil, fmt.Errorf("%s.operator is %q; it can be In or NotIn", at, r.Operator)
		}
	}
	return read, nil
}

// Matches tells whether an affinity means a cluster; nil means every one. What excludes the cluster by its name settles it, whether the
// rest can be understood or not. field is where the affinity stands, for errors.
func Matches(a *policyv1alpha1.ClusterAffinity, c *Cluster, field string) (bool, error) {
	if a != nil && !named(a, c.Name) {
		return false, nil
	}
	read, err := Read(a, field)
	if err != nil {
		return false, err
	}
	return read.Matches(c), nil
}

// Matches tells whether the affinity means a cluster.
func (a *Affinity) Matches(c *Cluster) bool {
	if !named(a.affinity, c.Name) || !a.selector.Matches(labels.Set(c.Labels)) {
		return false
	}
	if a.affinity.FieldSelector == nil {
		return true
	}
	for i := range a.affinity.FieldSelector.MatchExpressions {
		r := &a.affinity.FieldSelector.MatchExpressions[i]
		has, _ := values(r.Key, c)
		in := slices.ContainsFunc(has, func(v string) bool { return v != "" && slices.Contains(r.Values, v) })
		if in != (r.Operator == corev1.NodeSelectorOpIn) {
			return false
		}
	}
	return true
}

func named(a *policyv1alpha1.ClusterAffinity, name string) bool {
	return !slices.Contains(a.ExcludeClusters, name) && (len(a.ClusterNames) == 0 || slices.Contains(a.ClusterNames, name))
}

// values are what a cluster has under a key of a field selector; known tells whether there is such a key.
func values(key string, c *Cluster) (has []string, known bool) {
	switch key {
	case "provider":
		return []string{c.Provider}, true
	case "region":
		return []string{c.Region}, true
	case "zone":
		return c.Zones, true
	default:
		return nil, false
	}
}
