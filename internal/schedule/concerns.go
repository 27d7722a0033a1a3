package schedule

import (
	"maps"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// Concerned tells whether a change of a member can make a difference to a placement with a policy, so that it has to be
// scheduled anew. settled says that a PickN policy has all its clusters: then only one that leaves makes any.
func Concerned(policy *placementv1.PlacementPolicy, namespace string, settled bool, before, after *Cluster) bool {
	if before.Leaving != after.Leaving || before.UID != after.UID {
		return true
	}
	if settled {
		return false
	}
	if policy.Type() == placementv1.PickFixedPlacementType {
		return before.Disconnected != after.Disconnected && slices.Contains(policy.ClusterNames, after.Name)
	}
	return before.Disconnected != after.Disconnected || !maps.Equal(before.Labels, after.Labels) || !slices.Equal(before.Taints, after.Taints) ||
		(namespace != "" && hasNamespaceChanged(namespace, before, after)) || propertiesChanged(policy, before, after)
}

func hasNamespaceChanged(namespace string, before, after *Cluster) bool {
	_, had := before.Namespaces[namespace]
	_, has := after.Namespaces[namespace]
	return had != has || before.NamespacesKnown != after.NamespacesKnown
}

// propertiesChanged tells whether a property that the policy speaks of has changed.
func propertiesChanged(policy *placementv1.PlacementPolicy, before, after *Cluster) bool {
	for _, name := range propertiesOf(policy) {
		p := parseProperty(name)
		was, hadIt := p.of(before)
		is, hasIt := p.of(after)
		if was != is || hadIt != hasIt {
			return true
		}
	}
	return false
}

// propertiesOf are the names of the properties that a policy speaks of.
func propertiesOf(policy *placementv1.PlacementPolicy) []string {
	if policy == nil || policy.Affinity == nil || policy.Affinity.ClusterAffinity == nil {
		return nil
	}
	var names []string
	affinity := policy.Affinity.ClusterAffinity
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for _, t := range required.ClusterSelectorTerms {
			if t.PropertySelector == nil {
				continue
			}
			for _, e := range t.PropertySelector.MatchExpressions {
				names = append(names, e.Name)
			}
		}
	}
	for _, p := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		if p.Preference.PropertySorter != nil {
			names = append(names, p.Preference.PropertySorter.Name)
		}
	}
	return names
}
