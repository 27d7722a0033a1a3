package schedule

import (
	"cmp"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/utils/ptr"
)

// candidate is a cluster that may be chosen.
type candidate struct {
	*Cluster
	holder   Holder
	affinity int32
	topology int32
	domains  []int // by topology spread constraint
	chosen   bool
	refusal  Rule // nil where it is fit
}

// ranking is the choice of the best clusters.
type ranking struct {
	r        *Request
	affinity *hasAffinity
	spreads  spreads
	all      []candidate  // every cluster of the fleet
	kept     []*candidate // chosen before, under the same policy
	free     []*candidate // the others that are fit
	result   Result
}

// pickN chooses as many clusters as are asked for. What was chosen under the same policy stays, whatever has become of it, as
// long as it is in the fleet; then the best of the others are chosen, one after the other.
func pickN(r *Request, fleet Fleet, affinity *hasAffinity, rules []Rule) Result {
	k := &ranking{r: r, affinity: affinity, result: Result{wanted: r.Number}}
	affinity.measure(fleet)
	k.divide(fleet, rules)
	k.result.Settled = len(k.kept) == r.Number
	for len(k.kept) > r.Number {
		k.drop()
	}
	for _, c := range k.kept {
		k.result.Selected = append(k.result.Selected, c.decision())
	}
	k.fill()
	k.refuseRest()
	return k.result
}

// divide tells the clusters apart that are kept, those that may be chosen, and those that a rule refuses.
func (k *ranking) divide(fleet Fleet, rules []Rule) {
	k.all = make([]candidate, len(fleet.clusters))
	fit := make([]*Cluster, 0, len(fleet.clusters))
	k.free = make([]*candidate, 0, len(fleet.clusters))
	for i := range fleet.clusters {
		one := &k.all[i]
		one.Cluster = &fleet.clusters[i]
		keeps := k.r.keeps(one.Name) && !one.Leaving
		if one.refusal = refusal(rules, one.Cluster); one.refusal != nil && !keeps {
			continue
		}
		one.refusal, one.holder, one.affinity = nil, k.r.Holders[one.Name], k.affinity.score(i, one.Cluster)
		fit = append(fit, one.Cluster)
		if keeps {
			one.chosen = true
			k.kept = append(k.kept, one)
		} else {
			k.free = append(k.free, one)
		}
	}
	k.spreads = newSpreads(k.r.Policy, fit)
	if len(k.spreads) == 0 {
		return
	}
	for _, c := range slices.Concat(k.kept, k.free) {
		c.domains = k.spreads.domains(c.Cluster)
	}
	for _, c := range k.kept {
		k.spreads.add(c.domains, 1)
	}
}

// drop gives up the cluster that is missed least: one that has not been given anything yet, then one without which the others
// are spread better, then the one of the lowest score.
func (k *ranking) drop() {
	worst := slices.MinFunc(k.kept, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.heldFirmly(), b.heldFirmly()),
			cmp.Compare(k.spreads.relief(b.domains), k.spreads.relief(a.domains)),
			cmp.Compare(a.scoreThen(), b.scoreThen()),
			cmp.Compare(a.Name, b.Name))
	})
	k.spreads.add(worst.domains, -1)
	k.kept = slices.DeleteFunc(k.kept, func(c *candidate) bool { return c == worst })
	worst.chosen = false
	k.free = append(k.free, worst)
}

// fill chooses the best of the free clusters until there are enough. Without constraints on how they are spread, one is as good
// whatever the others are.
func (k *ranking) fill() {
	if len(k.spreads) > 0 {
		for len(k.result.Selected) < k.r.Number {
			if !k.choose() {
				break
			}
		}
		return
	}
	slices.SortFunc(k.free, func(a, b *candidate) int { return b.compare(a) })
	for _, c := range k.free[:min(len(k.free), k.r.Number-len(k.kept))] {
		c.chosen = true
		k.result.Selected = append(k.result.Selected, c.decision())
	}
}

// choose takes the best of the free clusters; it returns false where there is none that may be taken.
func (k *ranking) choose() bool {
	var best *candidate
	for _, c := range k.free {
		if c.chosen {
			continue
		}
		var allowed bool
		if c.topology, allowed = k.spreads.score(c.domains); !allowed {
			continue
		}
		if best == nil || c.compare(best) > 0 {
			best = c
		}
	}
	if best == nil {
		return false
	}
	best.chosen = true
	k.result.Selected = append(k.result.Selected, best.decision())
	k.spreads.add(best.domains, 1)
	return true
}

// refuseRest says of the clusters that were not chosen why they were not.
func (k *ranking) refuseRest() {
	short := len(k.result.Selected) < k.r.Number
	k.result.unselected = make([]refused, 0, len(k.all)-len(k.result.Selected))
	for i := range k.all {
		c := &k.all[i]
		switch {
		case c.chosen:
		case c.refusal != nil:
			k.result.refuse(c.Cluster, c.refusal)
		default:
			var allowed bool
			var rule Rule = scoresEnough{c}
			if c.topology, allowed = k.spreads.score(c.domains); !allowed && short {
				rule = k.spreads
			}
			k.result.unselected = append(k.result.unselected, refused{c.Cluster, rule, c})
		}
	}
}

// compare is positive where c is the better choice. What is being removed from a cluster was taken from it on purpose, so
// that it comes last; a cluster that has what is placed, under an earlier policy, goes before its equals.
func (c *candidate) compare(other *candidate) int {
	return cmp.Or(
		-cmp.Compare(number(c.holder.Removing), number(other.holder.Removing)),
		cmp.Compare(c.topology, other.topology),
		cmp.Compare(c.affinity, other.affinity),
		cmp.Compare(number(c.has()), number(other.has())),
		cmp.Compare(c.Name, other.Name))
}

// has tells whether the cluster has a binding.
func (c *candidate) has() bool { return c.holder.State != "" && !c.holder.Removing }

// heldFirmly is 1 for a cluster that may have been given something.
func (c *candidate) heldFirmly() int { return number(c.holder.State == placementv1.BindingStateBound) }

// scoreThen is the affinity score that the cluster was chosen with.
func (c *candidate) scoreThen() int32 {
	if then := c.holder.Decision.ClusterScore; then != nil && then.AffinityScore != nil {
		return *then.AffinityScore
	}
	return c.affinity
}

func (c *candidate) score() *placementv1.ClusterScore {
	return &placementv1.ClusterScore{AffinityScore: ptr.To(c.affinity), TopologySpreadScore: ptr.To(c.topology)}
}

// decision is that the cluster is chosen. One that was chosen before keeps the words in which that was said.
func (c *candidate) decision() placementv1.ClusterDecision {
	if then := c.holder.Decision; c.holder.Current && then.Selected && then.ClusterName == c.Name && then.Reason != "" {
		return then
	}
	return placementv1.ClusterDecision{
		ClusterName: c.Name, Selected: true, ClusterScore: c.score(),
		Reason: fmt.Sprintf("Successfully scheduled resources for placement in %q (affinity score: %d, topology spread score: %d): picked by scheduling policy",
			c.Name, c.affinity, c.topology),
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scoresEnough refuses a cluster that others are better than.
type scoresEnough struct{ c *candidate }

func (scoresEnough) Allows(*Cluster) bool { return false }

func (p scoresEnough) Reason(*Cluster) string {
	return fmt.Sprintf("Cluster %q does not score high enough (affinity score: %d, topology spread score: %d)", p.c.Name, p.c.affinity, p.c.topology)
}

func (scoresEnough) Summary() (what, remedy string) {
	return "not scoring high enough", "ask for more"
}
