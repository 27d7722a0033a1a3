package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

const (
	// MaxDecisions is how many decisions a policy snapshot lists.
	MaxDecisions = 1000
	// maxUnselected is how many of them are of clusters that were not chosen.
	maxUnselected = 20
)

// Result is the answer to a Request.
type Result struct {
	// Selected are the clusters that are chosen, sorted by name.
	Selected []placementv1.ClusterDecision
	// Settled tells that all clusters that a PickN policy asks for had been chosen before: no change of a cluster, short of its
	// leaving, makes a difference.
	Settled bool

	wanted     int       // clusters that the policy asks for; -1 where it takes what there is
	unselected []refused // sorted by name; what each is refused for is put into words when somebody asks
	others     []refused // clusters that the policy is not about, sorted by name
}

// refused is a cluster that was not chosen.
type refused struct {
	cluster *Cluster
	rule    Rule
	ranked  *candidate // where it was compared with others
}

func (d refused) decision() placementv1.ClusterDecision {
	decision := placementv1.ClusterDecision{ClusterName: d.cluster.Name, Reason: d.rule.Reason(d.cluster)}
	if d.ranked != nil {
		decision.ClusterScore = d.ranked.score()
	}
	return decision
}

func (r *Result) refuse(c *Cluster, rule Rule) {
	r.unselected = append(r.unselected, refused{c, rule, nil})
}

func (r *Result) refuses(cluster string) bool {
	return slices.ContainsFunc(r.unselected, func(d refused) bool { return d.cluster.Name == cluster })
}

func (r *Result) sort() {
	slices.SortFunc(r.Selected, byCluster)
	byName := func(a, b refused) int { return cmp.Compare(a.cluster.Name, b.cluster.Name) }
	if !slices.IsSortedFunc(r.unselected, byName) {
		slices.SortFunc(r.unselected, byName)
	}
}

// Unselected are the decisions for the clusters that are not chosen, sorted by name; those are not among them that a
// PickFixed policy does not name.
func (r *Result) Unselected() []placementv1.ClusterDecision { return decisions(r.unselected) }

// All are the decisions for every cluster, sorted by name.
func (r *Result) All() []placementv1.ClusterDecision {
	all := slices.Concat(r.Selected, r.Unselected(), decisions(r.others))
	slices.SortStableFunc(all, byCluster)
	return slices.CompactFunc(all, func(a, b placementv1.ClusterDecision) bool { return a.ClusterName == b.ClusterName })
}

func decisions(of []refused) []placementv1.ClusterDecision {
	var all []placementv1.ClusterDecision
	for _, d := range of {
		all = append(all, d.decision())
	}
	return all
}

// Listed are the decisions that a policy snapshot shows: those chosen, then a few of the others.
func (r *Result) Listed() []placementv1.ClusterDecision {
	listed := slices.Concat(r.Selected, decisions(r.unselected[:min(len(r.unselected), maxUnselected)]))
	return listed[:min(len(listed), MaxDecisions)]
}

// Fulfilled tells whether all clusters were found that the policy asks for.
func (r *Result) Fulfilled() bool { return len(r.Selected) >= r.wanted }

// Message sums the result up: how many clusters were found and, where more are asked for, why there are no more, and what to
// do about it.
func (r *Result) Message() string {
	if r.Fulfilled() {
		message := fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", len(r.Selected))
		if r.wanted == 0 {
			message += "; the policy asks for none"
		}
		return message
	}
	message := fmt.Sprintf("could not find all clusters needed as specified by the scheduling policy, found %d cluster(s) instead; %d are asked for",
		len(r.Selected), r.wanted)
	if len(r.unselected) == 0 {
		return message + ", and there are no others in the fleet: join more, or ask for fewer"
	}
	return fmt.Sprintf("%s; of the others, %s", message, r.summary())
}

// summary says how many clusters were refused by what, the most frequent first, and what to do about that.
func (r *Result) summary() string {
	type group struct {
		count        int
		what, remedy string
	}
	var groups []group
	for _, d := range r.unselected {
		what, remedy := d.rule.Summary()
		i := slices.IndexFunc(groups, func(g group) bool { return g.what == what })
		if i < 0 {
			groups, i = append(groups, group{what: what, remedy: remedy}), len(groups)
		}
		groups[i].count++
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.what, b.what)) })
	var whats, remedies []string
	for _, g := range groups {
		whats, remedies = append(whats, fmt.Sprintf("%d %s", g.count, g.what)), append(remedies, g.remedy)
	}
	return fmt.Sprintf("%s: %s, or ask for fewer clusters", strings.Join(whats, ", "), strings.Join(remedies, ", "))
}

// refused is why a cluster was not chosen.
func (r *Result) refused(cluster string) string {
	for _, of := range [][]refused{r.unselected, r.others} {
		i, found := slices.BinarySearchFunc(of, cluster, func(d refused, name string) int { return cmp.Compare(d.cluster.Name, name) })
		if found {
			return of[i].rule.Reason(of[i].cluster)
		}
	}
	return reasonLeft
}
