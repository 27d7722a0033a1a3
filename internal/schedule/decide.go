package schedule

import (
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// maxDecisions is how many decisions a policy snapshot lists.
	maxDecisions = 1000
	// maxUnselected is how many of them are of clusters that were not chosen.
	maxUnselected = 20
)

// reasonLeft is why a cluster that leaves, or is not there any more, is not chosen.
const reasonLeft = "cluster has left the fleet"

// Request is what is asked of the scheduler.
type Request struct {
	// Policy is the placement's; nil means every cluster.
	Policy *placementv1.PlacementPolicy
	// Holders are the clusters that the placement has been given before, and that nothing has taken from it since. A
	// cluster that is merely cut off keeps what it holds.
	Holders sets.Set[string]
}

// Result is the answer, each part sorted by cluster.
type Result struct {
	Selected, Unselected []placementv1.ClusterDecision
}

// Filter is one rule on which clusters a placement may be given.
type Filter interface {
	// Refuse says, for a person, why the cluster may not be chosen; it is empty where it may.
	Refuse(*Request, *Cluster) string
}

// filters are all rules, in the order in which they are asked: the first refusal is the reason that is given.
var filters = []Filter{staysInFleet{}, isConnected{}}

// staysInFleet refuses clusters that are leaving.
type staysInFleet struct{}

func (staysInFleet) Refuse(_ *Request, c *Cluster) string {
	if c.Leaving {
		return reasonLeft
	}
	return ""
}

// isConnected refuses clusters that have not joined or are not healthy, unless they hold the placement already.
type isConnected struct{}

func (isConnected) Refuse(r *Request, c *Cluster) string {
	if c.Disconnected == "" || r.Holders.Has(c.Name) {
		return ""
	}
	return "cluster is not connected to the fleet: " + c.Disconnected
}

// Decide chooses clusters of the fleet. Holders that the fleet does not know any more are among those not chosen.
func Decide(r Request, fleet Fleet) (Result, error) {
	if r.Policy != nil && r.Policy.PlacementType != "" && r.Policy.PlacementType != placementv1.PickAllPlacementType {
		return Result{}, fmt.Errorf("placement type %q is not known to this hub", r.Policy.PlacementType)
	}
	var result Result
	for i := range fleet.clusters {
		c := &fleet.clusters[i]
		if reason := refusal(&r, c); reason != "" {
			result.Unselected = append(result.Unselected, placementv1.ClusterDecision{ClusterName: c.Name, Reason: reason})
			continue
		}
		result.Selected = append(result.Selected, placementv1.ClusterDecision{
			ClusterName: c.Name,
			Selected:    true,
			Reason:      fmt.Sprintf("Successfully scheduled resources for placement in %q: picked by scheduling policy", c.Name),
		})
	}
	for _, name := range sets.List(r.Holders) {
		if fleet.Cluster(name) == nil {
			result.Unselected = append(result.Unselected, placementv1.ClusterDecision{ClusterName: name, Reason: reasonLeft})
		}
	}
	slices.SortFunc(result.Unselected, byCluster)
	return result, nil
}

func refusal(r *Request, c *Cluster) string {
	for _, f := range filters {
		if reason := f.Refuse(r, c); reason != "" {
			return reason
		}
	}
	return ""
}

// Message sums the result up.
func (r *Result) Message() string {
	return fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", len(r.Selected))
}

// Listed are the decisions that a policy snapshot shows: those chosen, then a few of the others.
func (r *Result) Listed() []placementv1.ClusterDecision {
	listed := slices.Concat(r.Selected, r.Unselected[:min(len(r.Unselected), maxUnselected)])
	return listed[:min(len(listed), maxDecisions)]
}

// refused is why a cluster was not chosen.
func (r *Result) refused(cluster string) string {
	if i, found := slices.BinarySearchFunc(r.Unselected, placementv1.ClusterDecision{ClusterName: cluster}, byCluster); found {
		return r.Unselected[i].Reason
	}
	return reasonLeft
}

func byCluster(a, b placementv1.ClusterDecision) int {
	switch {
	case a.ClusterName < b.ClusterName:
		return -1
	case a.ClusterName > b.ClusterName:
		return 1
	default:
		return 0
	}
}
