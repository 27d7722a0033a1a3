package division

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// candidate is a cluster, and what becomes of it.
type candidate struct {
	*Cluster
	groups []int // those of the policy's that it belongs to, by number
	held   bool  // the object is placed there
	before int64 // what it has
	frozen bool  // and keeps it, whatever happens
	room   int64 // how many more it holds
	weight int64 // of the static weights
	share  int64 // what it gets
	// selected tells that it may be given replicas, fixed that it has the object until the release is over though it may not.
	selected, fixed bool
	refused         string
}

// group is the first of its groups.
func (c *candidate) group() int {
	if len(c.groups) == 0 {
		return math.MaxInt
	}
	return c.groups[0]
}

// divider is one division.
type divider struct {
	r       *Request
	all     []*candidate // the fleet, by name
	refused map[string]int
	chosen  int // the group that has it all, of a strategy that does not look at room
	notes   []string
}

// check looks for mistakes of a person.
func check(r *Request) error {
	switch s := r.Policy.Strategy; s {
	case Duplicated, StaticWeights, AvailableReplicas, Aggregated:
	default:
		return &PolicyError{fmt.Sprintf("the way %q of dividing replicas is not known to this hub", s)}
	}
	if r.Replicas != nil && *r.Replicas < 0 {
		return &PolicyError{fmt.Sprintf("%d replicas cannot be divided; ask for 0 or more", *r.Replicas)}
	}
	for _, w := range r.Policy.Weights {
		if w.Weight < 1 || w.Weight > math.MaxInt32 {
			return &PolicyError{fmt.Sprintf("a weight of %d is not possible; give 1 to %d", w.Weight, math.MaxInt32)}
		}
	}
	return checkSpread(r.Policy.Spread)
}

func newDivider(r *Request) *divider {
	d := &divider{r: r, refused: map[string]int{}}
	for i := range r.Clusters {
		c := &candidate{Cluster: &r.Clusters[i]}
		var share int32
		if share, c.held = r.Current[c.Name]; c.held && !c.Leaving {
			c.before, c.frozen = int64(share), c.Suspended
		}
		c.share = c.before
		c.groups = d.groupsOf(c.Cluster)
		c.room = d.room(c)
		why, what := d.refuse(c)
		switch {
		case why == "":
			c.selected = true
		case r.InRelease && c.held && !c.Leaving: // to take it away now would end the release there
			c.fixed, c.room = true, 0
		default:
			c.refused, c.share = why, 0
			d.refused[what]++
		}
		d.all = append(d.all, c)
	}
	slices.SortFunc(d.all, func(a, b *candidate) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

func (d *divider) groupsOf(c *Cluster) []int {
	if len(d.r.Policy.Groups) == 0 {
		return []int{0}
	}
	var groups []int
	for i, g := range d.r.Policy.Groups {
		if g.Matches == nil || g.Matches(c) {
			groups = append(groups, i)
		}
	}
	return groups
}

// room is how many more replicas a cluster is trusted with.
func (d *divider) room(c *candidate) int64 {
	switch {
	case c.Disconnected != "" || c.Suspended:
		return 0
	case c.Room < 0:
		return d.r.wanted()
	default:
		return min(c.Room, math.MaxInt32)
	}
}

// members are the clusters that may be given replicas.
func (d *divider) members() []*candidate {
	var members []*candidate
	for _, c := range d.all {
		if (c.selected || c.fixed) && !c.frozen {
			members = append(members, c)
		}
	}
	return members
}

// divide gives each cluster its share, or says why that cannot be.
func (d *divider) divide() error {
	if !slices.ContainsFunc(d.all, func(c *candidate) bool { return c.selected || c.fixed }) {
		return d.noFit()
	}
	if !d.r.strategy().LooksAtRoom() {
		d.choose()
	}
	if d.r.InRelease {
		return d.divideInRelease()
	}
	if problem := d.selectSpread(); problem != nil {
		return problem
	}
	return d.assign(d.members())
}

// divideInRelease follows a person who asks for another number. Clusters that have the object share it; others are given
// some of it only where these cannot hold it.
func (d *divider) divideInRelease() error {
	var holders []*candidate
	for _, c := range d.members() {
		if c.held {
			holders = append(holders, c)
		}
	}
	if d.r.strategy() == Duplicated || len(holders) == 0 || d.assign(holders) != nil {
		d.notes = nil
		for _, c := range d.all {
			if c.selected || c.fixed {
				c.share = c.before
			}
		}
		if problem := d.selectSpread(); problem != nil {
			return problem
		}
		return d.assign(d.members())
	}
	for _, c := range d.members() {
		if !c.held {
			d.pass(c, "a release is in progress: what is there is divided among the clusters that have the object")
		}
	}
	return nil
}

// pass leaves a cluster out that might be given the object.
func (d *divider) pass(c *candidate, why string) {
	c.selected, c.refused, c.share = false, why, 0
}

// choose finds the group that has it all, of a strategy that does not look at room: the one that had it, unless no cluster
// of it may be selected, or else the first one of which one may.
func (d *divider) choose() {
	groups := d.r.Policy.Groups
	if len(groups) < 2 {
		return
	}
	first := 0
	if i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == d.r.Affinity }); i >= 0 && !d.r.Rebalance && d.r.Affinity != "" {
		first = i
	}
	for i := range groups {
		d.chosen = (first + i) % len(groups)
		if slices.ContainsFunc(d.all, func(c *candidate) bool { return c.selected && slices.Contains(c.groups, d.chosen) }) {
			break
		}
	}
	for _, c := range d.all {
		switch {
		case !c.selected || c.frozen || slices.Contains(c.groups, d.chosen):
		case d.r.InRelease && c.held:
			c.selected, c.fixed = false, true
		default:
			d.pass(c, fmt.Sprintf("cluster affinity %q is used, which does not match the cluster", groups[d.chosen].Name))
		}
	}
}

func (d *divider) noFit() error {
	if len(d.all) == 0 {
		return &NoFit{"the fleet has no clusters; join some"}
	}
	return &NoFit{fmt.Sprintf("0/%d clusters are available: %s", len(d.all), summary(d.refused))}
}

// placed tells whether a cluster gets the object: with replicas, or because it has it, or because none are wanted and it is among
// the first to be given some.
func (d *divider) placed(c *candidate) bool {
	switch {
	case c.refused != "":
		return false
	case c.share > 0 || c.held || d.r.strategy() == Duplicated:
		return true
	case d.r.wanted() > 0:
		return false
	case d.r.strategy() == StaticWeights:
		return c.weight > 0
	}
	return c.group() == d.firstGroup()
}

// firstGroup is the first group with a cluster that is selected.
func (d *divider) firstGroup() int {
	first := math.MaxInt
	for _, c := range d.all {
		if c.selected {
			first = min(first, c.group())
		}
	}
	return first
}

// affinity is the name of the group that is used.
func (d *divider) affinity() string {
	groups := d.r.Policy.Groups
	if len(groups) == 0 {
		return ""
	}
	if !d.r.strategy().LooksAtRoom() {
		return groups[d.chosen].Name
	}
	last := -1
	for _, c := range d.all {
		if c.share > 0 && len(c.groups) > 0 {
			last = max(last, c.group())
		}
	}
	if last < 0 {
		if last = d.firstGroup(); last == math.MaxInt {
			return d.r.Affinity
		}
	}
	return groups[last].Name
}
