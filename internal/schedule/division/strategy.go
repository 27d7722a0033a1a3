package division

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetwright/fleetwright/internal/schedule/division/webster"
)

// assign gives the clusters their shares. Those that are frozen have theirs, which counts.
func (d *divider) assign(members []*candidate) error {
	wanted := d.r.wanted()
	if d.r.strategy() == Duplicated {
		for _, c := range members {
			c.share = wanted
		}
		return nil
	}
	left := wanted
	for _, c := range d.all {
		if c.frozen {
			left -= c.before
		}
	}
	if left < 0 {
		d.notes = append(d.notes, fmt.Sprintf("suspended clusters keep %d replicas, which are %d more than are wanted", wanted-left, -left))
		left = 0
	}
	if d.r.strategy() == StaticWeights {
		return d.byWeights(left, members)
	}
	return d.byRoom(left, members)
}

// byWeights divides from scratch; in a release by going on from what there is, so that only what is added or taken moves.
func (d *divider) byWeights(wanted int64, members []*candidate) error {
	d.weigh()
	had := total(members)
	if d.r.InRelease && wanted <= had {
		d.shrinkGroup(wanted, members)
		return nil
	}
	parties, from := make([]webster.Party, len(members)), int64(0)
	for i, c := range members {
		parties[i] = webster.Party{Name: c.Name, Weight: c.weight}
		if d.r.InRelease {
			parties[i].Seats = c.before
			from += c.before
		}
	}
	seats := webster.Divide(wanted-from, parties, d.r.UID)
	for i, c := range members {
		c.share = seats[i]
	}
	if total(members) < wanted {
		return &NoFit{fmt.Sprintf("%s wanted, and every cluster of those with a weight is suspended or out of reach of the policy: give others a weight, or lift the suspension",
			count(wanted, "replica is", "replicas are"))}
	}
	return nil
}

// weigh finds the clusters' static weights.
func (d *divider) weigh() {
	none := true
	for _, c := range d.all {
		if !c.selected && !c.frozen {
			continue
		}
		for _, w := range d.r.Policy.Weights {
			if w.Matches == nil || w.Matches(c.Cluster) {
				c.weight, none = max(c.weight, w.Weight), false
			}
		}
	}
	for _, c := range d.all {
		if none && (c.selected || c.frozen) {
			c.weight = 1
		}
	}
}

// byRoom keeps what there is, and adds or takes what is more or less.
func (d *divider) byRoom(wanted int64, members []*candidate) error {
	if d.r.Rebalance && !d.r.InRelease {
		for _, c := range members {
			c.room, c.share = c.room+c.share, 0
		}
	}
	has := total(members)
	if wanted <= has {
		d.shrink(wanted, members)
		return nil
	}
	var room int64
	for _, c := range members {
		room += c.room
	}
	if room < wanted-has {
		return d.shortage(members)
	}
	d.grow(wanted-has, members)
	return nil
}

func (d *divider) shortage(members []*candidate) error {
	if d.r.Rebalance && !d.r.InRelease {
		for _, c := range members {
			c.room -= c.before
		}
	}
	counted := slices.Clone(members)
	for _, c := range d.all {
		if c.frozen {
			counted = append(counted, c)
		}
	}
	return shortage(d.r.wanted(), counted)
}

// grow adds replicas by room, group after group.
func (d *divider) grow(by int64, members []*candidate) {
	for _, group := range byGroup(members) {
		var room int64
		for _, c := range group {
			room += c.room
		}
		part := min(by, room)
		by -= part
		if d.r.strategy() == Aggregated {
			group = fewest(part, group, func(c *candidate) int64 { return c.room }, !d.r.Rebalance)
		}
		parties := make([]webster.Party, len(group))
		for i, c := range group {
			parties[i] = webster.Party{Name: c.Name, Weight: c.room}
		}
		for i, more := range webster.Divide(part, parties, d.r.UID) {
			group[i].share += more
		}
	}
}

// shrink takes replicas, from the last group first.
func (d *divider) shrink(wanted int64, members []*candidate) {
	for _, group := range byGroup(members) {
		part := min(wanted, total(group))
		wanted -= part
		d.shrinkGroup(part, group)
	}
}

// shrinkGroup leaves some replicas, in proportion to what each has.
func (d *divider) shrinkGroup(wanted int64, group []*candidate) {
	if wanted == total(group) {
		return
	}
	stay := group
	if d.r.strategy() == Aggregated {
		stay = fewest(wanted, group, func(c *candidate) int64 { return c.share }, false)
	}
	parties := make([]webster.Party, len(stay))
	for i, c := range stay {
		parties[i] = webster.Party{Name: c.Name, Weight: c.share}
	}
	shares := webster.Divide(wanted, parties, d.r.UID)
	for _, c := range group {
		c.share = 0
	}
	for i, c := range stay {
		c.share = shares[i]
	}
}

// fewest are the first clusters that hold a number together: those used already, where that counts first, and then the
// greatest.
func fewest(n int64, of []*candidate, holds func(*candidate) int64, usedFirst bool) []*candidate {
	sorted := slices.Clone(of)
	unused := func(c *candidate) int {
		if c.before > 0 {
			return 0
		}
		return 1
	}
	slices.SortFunc(sorted, func(a, b *candidate) int {
		bigger, used := cmp.Compare(holds(b), holds(a)), cmp.Compare(unused(a), unused(b))
		if usedFirst {
			bigger, used = used, bigger
		}
		return cmp.Or(bigger, used, cmp.Compare(a.Name, b.Name))
	})
	for i, c := range sorted {
		if n <= 0 {
			return sorted[:i]
		}
		n -= holds(c)
	}
	return sorted
}

// byGroup are the clusters of each group, in order.
func byGroup(members []*candidate) [][]*candidate {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b *candidate) int { return cmp.Compare(a.group(), b.group()) })
	var groups [][]*candidate
	for i, c := range sorted {
		if i == 0 || c.group() != sorted[i-1].group() {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], c)
	}
	return groups
}

func total(of []*candidate) int64 {
	var sum int64
	for _, c := range of {
		sum += c.share
	}
	return sum
}

// reason says why a cluster gets what it gets.
func (d *divider) reason(c *candidate) string {
	switch {
	case c.frozen:
		return reasonFrozen
	case d.r.Replicas == nil:
		return "the policy selects the cluster"
	case d.r.strategy() == Duplicated:
		return "each cluster gets all replicas"
	case c.fixed:
		return "keeps the object until the release in progress is over"
	case d.r.strategy() == StaticWeights:
		return fmt.Sprintf("%d of %d by weight %d", c.share, d.r.wanted(), c.weight)
	case d.r.Rebalance && !d.r.InRelease:
		return fmt.Sprintf("%d of %d, divided anew by room for %d", c.share, d.r.wanted(), c.room)
	case c.share > c.before:
		return fmt.Sprintf("%d of %d, %d more by room for %d", c.share, d.r.wanted(), c.share-c.before, c.room)
	case c.share < c.before:
		return fmt.Sprintf("%d of %d, in proportion to the %d it had", c.share, d.r.wanted(), c.before)
	case c.share > 0:
		return fmt.Sprintf("%d of %d, as before", c.share, d.r.wanted())
	case c.held:
		return "keeps the object with 0 replicas: scaling up again then is no new placement"
	default:
		return "gets the object with 0 replicas, since none are wanted yet"
	}
}

// passedOver says why a cluster gets nothing that might.
func (d *divider) passedOver(c *candidate) string {
	switch {
	case d.r.strategy() == StaticWeights && c.weight == 0:
		return "no weight of the policy matches the cluster"
	case d.r.strategy() == StaticWeights:
		return fmt.Sprintf("its weight of %d is too small for one of %s", c.weight, count(d.r.wanted(), "replica", "replicas"))
	case c.group() > d.firstGroup():
		return "the clusters of affinities before its own hold all replicas"
	case c.room == 0:
		return "it has no room for a replica"
	case d.r.strategy() == Aggregated:
		return "fewer clusters hold all replicas"
	default:
		return fmt.Sprintf("its room for %d is too small for one of %s", c.room, count(d.r.wanted(), "replica", "replicas"))
	}
}
