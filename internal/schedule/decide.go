package schedule

import (
	"cmp"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// Request is what is asked of the scheduler.
type Request struct {
	// Policy is the placement's; nil means every cluster.
	Policy *placementv1.PlacementPolicy
	// Number is how many clusters a PickN policy asks for.
	Number int
	// Namespace is that of a namespaced placement.
	Namespace string
	// Holders is, by cluster, what the placement's bindings say.
	Holders map[string]Holder
}

// Holder is a cluster that the placement has a binding to.
type Holder struct {
	// State is the binding's; Removing tells that it is being deleted.
	State    placementv1.BindingState
	Removing bool
	// Current tells that this very cluster was chosen under the policy as it is now.
	Current bool
	// Decision is why it was.
	Decision placementv1.ClusterDecision
}

// holds tells whether a cluster has been given the placement, and nothing has taken it since. A cluster that is merely cut
// off keeps what it holds.
func (r *Request) holds(cluster string) bool {
	h, found := r.Holders[cluster]
	return found && !h.Removing && h.State != placementv1.BindingStateUnscheduled
}

// keeps tells whether a cluster holds the placement under the policy as it is now, so that what made it fit is not asked
// again.
func (r *Request) keeps(cluster string) bool { return r.Holders[cluster].Current && r.holds(cluster) }

// PolicyError is a mistake in a policy that only the person who wrote it can put right.
type PolicyError struct{ Problem string }

// Error says what the mistake is.
func (e *PolicyError) Error() string { return e.Problem }

// Decide chooses clusters of the fleet. Holders that the fleet does not know any more are among those not chosen.
func Decide(r Request, fleet Fleet) (Result, error) {
	affinity, err := newAffinity(&r)
	if err != nil {
		return Result{}, err
	}
	rules := []Rule{staysInFleet{}, isConnected{&r}, affinity, hasNamespace{&r}, isTolerated{&r}}
	var result Result
	switch t := r.Policy.Type(); t {
	case placementv1.PickAllPlacementType:
		result = pickAll(fleet, rules)
	case placementv1.PickNPlacementType:
		result = pickN(&r, fleet, affinity, rules)
	case placementv1.PickFixedPlacementType:
		result = pickFixed(&r, fleet)
	default:
		return Result{}, &PolicyError{fmt.Sprintf("placement type %q is not known to this hub", t)}
	}
	for name := range r.Holders {
		if fleet.Cluster(name) == nil && !result.refuses(name) {
			result.refuse(&Cluster{Name: name, Leaving: true}, staysInFleet{})
		}
	}
	result.sort()
	return result, nil
}

// pickAll chooses every cluster that no rule refuses.
func pickAll(fleet Fleet, rules []Rule) Result {
	result := Result{wanted: -1, Selected: make([]placementv1.ClusterDecision, 0, len(fleet.clusters))}
	for i := range fleet.clusters {
		c := &fleet.clusters[i]
		if rule := refusal(rules, c); rule != nil {
			result.refuse(c, rule)
		} else {
			result.Selected = append(result.Selected, picked(c.Name))
		}
	}
	return result
}

// pickFixed chooses the clusters that are named, whatever their labels, properties and taints.
func pickFixed(r *Request, fleet Fleet) Result {
	var result Result
	rules := []Rule{staysInFleet{}, isConnected{r}}
	named := slices.Compact(slices.Sorted(slices.Values(r.Policy.ClusterNames)))
	result.wanted = len(named)
	for _, name := range named {
		c := fleet.Cluster(name)
		if c == nil {
			result.refuse(&Cluster{Name: name}, isFound{})
		} else if rule := refusal(rules, c); rule != nil {
			result.refuse(c, isEligible{rule})
		} else {
			result.Selected = append(result.Selected, picked(name))
		}
	}
	for i := range fleet.clusters {
		c := &fleet.clusters[i]
		if _, found := slices.BinarySearch(named, c.Name); !found {
			result.others = append(result.others, refused{c, isNamed{}, nil})
		}
	}
	return result
}

// refusal is the first rule that refuses a cluster; nil where none does.
func refusal(rules []Rule, c *Cluster) Rule {
	for _, rule := range rules {
		if !rule.Allows(c) {
			return rule
		}
	}
	return nil
}

// picked is the decision for a cluster, where clusters are not compared.
func picked(cluster string) placementv1.ClusterDecision {
	return placementv1.ClusterDecision{
		ClusterName: cluster, Selected: true,
		Reason: `Successfully scheduled resources for placement in "` + cluster + `": picked by scheduling policy`,
	}
}

func byCluster(a, b placementv1.ClusterDecision) int {
	return cmp.Compare(a.ClusterName, b.ClusterName)
}
