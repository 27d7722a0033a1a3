package division

import (
	"fmt"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/schedule/clusteraffinity"
	"github.com/fleetwright/fleetwright/internal/schedule/division"
)

// asked translates what a policy says of the clusters. An error names what of it cannot be understood.
func asked(p *policyv1alpha1.Placement) (division.Policy, error) {
	policy := division.Policy{Strategy: strategy(p.ReplicaScheduling), Tolerations: p.ClusterTolerations}
	if p.ClusterAffinity != nil {
		matches, err := matches(p.ClusterAffinity, "spec.placement.clusterAffinity")
		if err != nil {
			return policy, err
		}
		policy.Groups = append(policy.Groups, division.Group{Matches: matches})
	}
	for i := range p.ClusterAffinities {
		term := &p.ClusterAffinities[i]
		matches, err := matches(&term.ClusterAffinity, fmt.Sprintf("spec.placement.clusterAffinities[%d]", i))
		if err != nil {
			return policy, err
		}
		policy.Groups = append(policy.Groups, division.Group{Name: term.AffinityName, Matches: matches})
	}
	if s := p.ReplicaScheduling; s != nil && s.WeightPreference != nil {
		for i := range s.WeightPreference.StaticWeightList {
			w := &s.WeightPreference.StaticWeightList[i]
			matches, err := matches(&w.TargetCluster, fmt.Sprintf("spec.placement.replicaScheduling.weightPreference.staticWeightList[%d].targetCluster", i))
			if err != nil {
				return policy, err
			}
			policy.Weights = append(policy.Weights, division.WeightRule{Matches: matches, Weight: w.Weight})
		}
	}
	for i := range p.SpreadConstraints {
		s := &p.SpreadConstraints[i]
		spread := division.Spread{By: division.Field(s.SpreadByField), Label: s.SpreadByLabel, Min: int(s.MinGroups), Max: int(s.MaxGroups)}
		switch {
		case s.SpreadByLabel != "":
			spread.By = division.ByLabel
		case s.SpreadByField == "":
			spread.By = division.ByCluster
		}
		policy.Spread = append(policy.Spread, spread)
	}
	return policy, nil
}

// strategy is how replicas are divided: not at all where a policy says nothing of it.
func strategy(s *policyv1alpha1.ReplicaSchedulingStrategy) division.Strategy {
	switch {
	case s == nil || s.ReplicaSchedulingType == policyv1alpha1.Duplicated:
		return division.Duplicated
	case s.ReplicaDivisionPreference == policyv1alpha1.Aggregated:
		return division.Aggregated
	case s.WeightPreference != nil && s.WeightPreference.DynamicWeight != "":
		return division.AvailableReplicas
	default:
		return division.StaticWeights
	}
}

// matches tells whether a cluster is one that an affinity means. field is where the affinity stands in the policy.
func matches(a *policyv1alpha1.ClusterAffinity, field string) (func(*division.Cluster) bool, error) {
	affinity, err := clusteraffinity.Read(a, field)
	if err != nil {
		return nil, &division.PolicyError{Message: err.Error()}
	}
	return func(c *division.Cluster) bool {
		return affinity.Matches(&clusteraffinity.Cluster{Name: c.Name, Labels: c.Labels, Provider: c.Provider, Region: c.Region, Zones: c.Zones})
	}, nil
}
