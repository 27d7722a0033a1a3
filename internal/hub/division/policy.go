package division

import (
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/schedule/division"
)

// asked translates what a policy says of the clusters.
func asked(p *policyv1alpha1.Placement) division.Policy {
	policy := division.Policy{Strategy: strategy(p.ReplicaScheduling), Tolerations: p.ClusterTolerations}
	if p.ClusterAffinity != nil {
		policy.Groups = append(policy.Groups, division.Group{Matches: matches(p.ClusterAffinity)})
	}
	for i := range p.ClusterAffinities {
		term := &p.ClusterAffinities[i]
		policy.Groups = append(policy.Groups, division.Group{Name: term.AffinityName, Matches: matches(&term.ClusterAffinity)})
	}
	if s := p.ReplicaScheduling; s != nil && s.WeightPreference != nil {
		for i := range s.WeightPreference.StaticWeightList {
			w := &s.WeightPreference.StaticWeightList[i]
			policy.Weights = append(policy.Weights, division.WeightRule{Matches: matches(&w.TargetCluster), Weight: w.Weight})
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
	return policy
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

// matches tells whether a cluster is one that an affinity means.
func matches(a *policyv1alpha1.ClusterAffinity) func(*division.Cluster) bool {
	return func(c *division.Cluster) bool {
		return len(a.ClusterNames) == 0 || contains(a.ClusterNames, c.Name)
	}
}

func contains(all []string, s string) bool {
	for _, one := range all {
		if one == s {
			return true
		}
	}
	return false
}
