// Package division decides which clusters get how many replicas of an object, and why. It does no I/O, and gives the same
// answer to the same question.
//
// Divide first asks of each cluster whether it may be given the object (filter.go), then selects by spread constraints
// (spread.go), then divides (strategy.go):
//
//   - Duplicated: each cluster has all replicas. So have objects without replicas, whatever the strategy.
//   - Static weights: from scratch each time, whatever the room.
//   - Available replicas: the first time, and of what is added later, by the room that clusters have now; of what is taken
//     later, in proportion to what each has. While the total stays, so does the division. What was in a cluster that is not
//     selected any more is added to the others.
//   - Aggregated: the same, over the fewest clusters that hold it.
//   - Rebalance: all anew, by room and what is there together.
//
// These are the rules of Karmada 1.19 and of ACK One, whose documentation speaks of Weighted, Aggregated and
// AvailableReplicas; the arithmetic is the method of Webster (package webster). In these points it differs from Karmada:
//
//   - An object stays in each cluster where it was placed, with 0 replicas if need be, as long as the cluster is selected: 8
//     divided into 7 and 1 and scaled to 2 is 2 and 0, and the second cluster keeps the object. Scaling from zero then is an
//     update, which a rollout in the member guards, and no creation, which nothing guards. With 0 replicas wanted all selected
//     clusters get the object.
//   - Cluster affinities of a strategy that looks at room spill over, as ACK One has it: the first group is filled, what does
//     not fit goes to the next, and what is taken is taken from the last one first. With other strategies the first group in
//     which a cluster can be selected has it all, and keeps it until a rebalance.
//   - A suspended cluster keeps exactly its share, whatever happens.
//   - While a release is in progress in a member nothing moves, apart from what a user adds or takes: each move makes a batch
//     begin again.
//   - Spread constraints count zones: a cluster in several zones counts in each of them, for the least and for the most, since
//     nobody knows in which of them its replicas will run.
package division

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Strategy is how replicas are divided.
type Strategy string

const (
	// Duplicated gives each cluster all replicas.
	Duplicated Strategy = "Duplicated"
	// StaticWeights divides by the weights that the policy gives clusters.
	StaticWeights Strategy = "StaticWeights"
	// AvailableReplicas divides by the room that clusters have.
	AvailableReplicas Strategy = "AvailableReplicas"
	// Aggregated divides by the room of the fewest clusters that hold all.
	Aggregated Strategy = "Aggregated"
)

// LooksAtRoom tells whether a strategy looks at the room that clusters have. Only what is divided so is ever moved because
// it does not fit.
func (s Strategy) LooksAtRoom() bool { return s == AvailableReplicas || s == Aggregated }

// Policy is what a person asks for.
type Policy struct {
	// Strategy is how replicas are divided.
	Strategy Strategy
	// Groups are the clusters to use, in order; none is every cluster.
	Groups []Group
	// Weights are the rules of StaticWeights. A cluster has the greatest weight of the rules that match it, and gets nothing where none
	// does. Where no rule matches any cluster, all weigh the same.
	Weights []WeightRule
	// Tolerations are the taints that do not keep the object off.
	Tolerations []corev1.Toleration
	// Spread limits over how many groups of clusters the object spreads. StaticWeights does not look at it.
	Spread []Spread
}

// Group is some clusters.
type Group struct {
	// Name is the affinity's, for people; empty where there is one only.
	Name string
	// Matches tells whether a cluster belongs to it. Nil is every cluster.
	Matches func(*Cluster) bool
}

// WeightRule gives clusters a weight.
type WeightRule struct {
	// Matches tells whether a cluster has it. Nil is every cluster.
	Matches func(*Cluster) bool
	// Weight is 1 or more.
	Weight int64
}

// Cluster is what division knows of a member.
type Cluster struct {
	// Name is the MemberCluster's.
	Name string
	// Labels are the MemberCluster's.
	Labels map[string]string
	// Provider, Region and Zones say where it is; empty is unknown.
	Provider, Region string
	Zones            []string
	// Taints of the effects NoSchedule and NoExecute keep objects off that do not tolerate them, apart from those that are there already.
	Taints []corev1.Taint
	// Kinds are those it serves; nil where that is unknown.
	Kinds sets.Set[schema.GroupVersionKind]
	// Leaving tells that its MemberCluster is being deleted. It has lost what it had.
	Leaving bool
	// Disconnected says why the cluster cannot be worked with now; empty for one that can. It keeps what it has, and is given
	// nothing because it has room: nobody knows that now.
	Disconnected string
	// Suspended tells that nothing is written to it.
	Suspended bool
	// Room is how many replicas it holds beside those that it has been given; UnknownRoom where nobody can say.
	Room int64
}

// UnknownRoom is the room of a cluster of which nobody knows any: it counts as enough for all that are wanted.
const UnknownRoom = -1

// Request is what is asked.
type Request struct {
	// UID is the object's: it settles ties.
	UID types.UID
	// Kind is the object's; empty where clusters need not be asked whether they serve it.
	Kind schema.GroupVersionKind
	// Policy is what the object is placed by.
	Policy Policy
	// Replicas is how many are wanted; nil for an object that has none.
	Replicas *int32
	// Clusters is the whole fleet, in any order.
	Clusters []Cluster
	// Current is how many replicas each cluster has been given where the object is placed, 0 included. They are what was decided last,
	// and not what the member has on the way there.
	Current map[string]int32
	// Decided is how many replicas were wanted when Current was decided; nil if it never was.
	Decided *int32
	// Affinity is the name of the group that Result named last.
	Affinity string
	// Rebalance asks to divide anew as if nothing had been.
	Rebalance bool
	// InRelease tells that a release of the object is in progress in a member.
	InRelease bool
}

// wanted is how many replicas are; 0 for an object without.
func (r *Request) wanted() int64 {
	if r.Replicas == nil {
		return 0
	}
	return int64(*r.Replicas)
}

// strategy is the one that is used.
func (r *Request) strategy() Strategy {
	if r.Replicas == nil {
		return Duplicated
	}
	return r.Policy.Strategy
}

// scaled tells whether a person has asked for another number since the division was made.
func (r *Request) scaled() bool {
	return r.Replicas != nil && (r.Decided == nil || *r.Decided != *r.Replicas)
}

// Divide says which clusters get how many replicas. Where that cannot be decided the Result has a Problem, and is what is there
// now.
func Divide(r Request) Result {
	if problem := check(&r); problem != nil {
		return keep(&r, problem, "stays as it is: "+problem.Error())
	}
	if r.InRelease && !r.scaled() && r.strategy() != Duplicated && len(r.Current) > 0 {
		return keep(&r, nil, reasonRelease)
	}
	d := newDivider(&r)
	if problem := d.divide(); problem != nil {
		result := keep(&r, problem, "stays as it is, since not all that is wanted can be placed")
		d.explainRefused(&result)
		return result
	}
	return d.result()
}
