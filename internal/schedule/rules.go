package schedule

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// Rule is one rule on which clusters a placement may be given. Rules are asked in turn; the first that refuses a cluster says
// why.
type Rule interface {
	// Allows tells whether the cluster may be chosen.
	Allows(*Cluster) bool
	// Reason says, for a person, why a cluster that is not allowed may not be chosen.
	Reason(*Cluster) string
	// Summary says the same of a number of clusters, as what follows the number, and how that can be changed.
	Summary() (what, remedy string)
}

// reasonLeft is why a cluster that leaves, or is not there any more, is not chosen.
const reasonLeft = "cluster has left the fleet"

// staysInFleet refuses clusters that are leaving.
type staysInFleet struct{}

func (staysInFleet) Allows(c *Cluster) bool { return !c.Leaving }
func (staysInFleet) Reason(*Cluster) string { return reasonLeft }
func (staysInFleet) Summary() (what, remedy string) {
	return "left the fleet", "join other clusters"
}

// isConnected refuses clusters that have not joined or are not healthy, unless they hold the placement already.
type isConnected struct{ r *Request }

func (p isConnected) Allows(c *Cluster) bool { return c.Disconnected == "" || p.r.holds(c.Name) }
func (isConnected) Reason(c *Cluster) string {
	return "cluster is not connected to the fleet: " + c.Disconnected
}
func (isConnected) Summary() (what, remedy string) {
	return "not connected to the fleet", "see to their agents"
}

// hasNamespace refuses, for a namespaced placement, clusters that are known not to have its namespace. PickAll asks that again
// of clusters that have been chosen.
type hasNamespace struct{ r *Request }

func (p hasNamespace) Allows(c *Cluster) bool {
	if p.r.Namespace == "" || !c.NamespacesKnown {
		return true
	}
	_, found := c.Namespaces[p.r.Namespace]
	return found || (p.r.keeps(c.Name) && p.r.Policy.Type() != placementv1.PickAllPlacementType)
}

func (p hasNamespace) Reason(*Cluster) string {
	return fmt.Sprintf("cluster has no namespace %q; a ClusterResourcePlacement that selects the namespace creates it there", p.r.Namespace)
}

func (p hasNamespace) Summary() (what, remedy string) {
	return fmt.Sprintf("without namespace %q", p.r.Namespace), "place the namespace with a ClusterResourcePlacement"
}

// isFound refuses clusters that are named and are not in the fleet.
type isFound struct{}

func (isFound) Allows(*Cluster) bool { return false }
func (isFound) Reason(c *Cluster) string {
	return fmt.Sprintf("Specified cluster %q is not found", c.Name)
}
func (isFound) Summary() (what, remedy string) {
	return "not found in the fleet", "join them or correct clusterNames"
}

// isEligible refuses clusters that are named and that another rule refuses.
type isEligible struct{ Rule }

func (p isEligible) Reason(c *Cluster) string {
	return fmt.Sprintf("Cluster %q is not eligible for resource placement yet: %s", c.Name, p.Rule.Reason(c))
}

// isNamed refuses clusters that a PickFixed policy does not name.
type isNamed struct{}

func (isNamed) Allows(*Cluster) bool   { return false }
func (isNamed) Reason(*Cluster) string { return "cluster is not among the clusterNames of the policy" }
func (isNamed) Summary() (what, remedy string) {
	return "not named", "name them"
}
