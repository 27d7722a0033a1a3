package division

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Field is what groups of clusters are made by.
type Field string

// What groups are made by: each cluster is one, or those of a region, a zone, a provider, or of a value of a label.
const (
	ByCluster  Field = "cluster"
	ByRegion   Field = "region"
	ByZone     Field = "zone"
	ByProvider Field = "provider"
	ByLabel    Field = "label"
)

// Spread limits how many groups of clusters an object is placed in.
type Spread struct {
	// By is what groups are made by, and Label the label's key for ByLabel.
	By    Field
	Label string
	// Min is how many groups there must be at the least, Max at the most; 0 is no limit.
	Min, Max int
}

// groups are those that a cluster belongs to: of zones all that it has, else one, or none where it is not known.
func (s *Spread) groups(c *Cluster) []string {
	var of string
	switch s.By {
	case ByCluster:
		of = c.Name
	case ByRegion:
		of = c.Region
	case ByProvider:
		of = c.Provider
	case ByZone:
		return c.Zones
	case ByLabel:
		value, found := c.Labels[s.Label]
		if !found {
			return nil
		}
		return []string{value}
	}
	if of == "" {
		return nil
	}
	return []string{of}
}

// what is what groups are made by, for people.
func (s *Spread) what() string {
	if s.By == ByLabel {
		return fmt.Sprintf("label %q", s.Label)
	}
	return string(s.By)
}

func checkSpread(all []Spread) error {
	for _, s := range all {
		switch {
		case !slices.Contains([]Field{ByCluster, ByRegion, ByZone, ByProvider, ByLabel}, s.By):
			return &PolicyError{fmt.Sprintf("spreading by %q is not known to this hub; spread by cluster, region, zone, provider or a label", s.By)}
		case s.By == ByLabel && s.Label == "":
			return &PolicyError{"a spread constraint by label names no label"}
		case s.Min < 0 || s.Max < 0 || (s.Max > 0 && s.Max < s.Min):
			return &PolicyError{fmt.Sprintf("from %d to %d groups by %s is not possible; give a maxGroups of minGroups or more", s.Min, s.Max, s.what())}
		}
	}
	return nil
}

// spread are the constraints that count.
func (d *divider) spread() []Spread {
	if d.r.strategy() == StaticWeights {
		return nil
	}
	return d.r.Policy.Spread
}

// selectSpread leaves out clusters that the spread constraints have no place for. Where the clusters first selected, those
// that have the object before others, do not hold all replicas it looks for bigger ones.
func (d *divider) selectSpread() error {
	if d.r.strategy() == StaticWeights && len(d.r.Policy.Spread) > 0 {
		d.notes = append(d.notes, "spreadConstraints are not looked at where replicas are divided by static weights")
	}
	constraints := d.spread()
	if len(constraints) == 0 {
		return nil
	}
	var choices []*candidate
	for _, c := range d.all {
		if c.selected || c.fixed {
			choices = append(choices, c)
		}
	}
	best, missing := (*selection)(nil), ""
	for _, order := range orders(choices, constraints) {
		s := newSelection(constraints, order, d.needed())
		if missing = s.fill(); missing != "" {
			continue
		}
		s.swap()
		if best == nil || (s.room() < s.needed && s.room() > best.room()) || (s.room() >= s.needed && best.room() < best.needed) {
			best = s
		}
		if best.room() >= best.needed {
			break
		}
	}
	if best == nil {
		return &NoFit{missing}
	}
	for i, c := range best.order {
		if !best.in[i] {
			d.pass(c, "the clusters that the policy's spreadConstraints have a place for are others: "+describe(constraints))
		}
	}
	return nil
}

// needed is how many replicas the clusters have to hold; 0 where a strategy does not look at that.
func (d *divider) needed() int64 {
	if !d.r.strategy().LooksAtRoom() {
		return 0
	}
	return d.r.wanted()
}

func describe(constraints []Spread) string {
	parts := make([]string, len(constraints))
	for i, s := range constraints {
		most := "any number"
		if s.Max > 0 {
			most = fmt.Sprint(s.Max)
		}
		parts[i] = fmt.Sprintf("%d to %s by %s", s.Min, most, s.what())
	}
	return strings.Join(parts, ", ")
}

// holds is how many replicas a cluster holds with those that it has.
func (c *candidate) holds() int64 {
	if c.frozen {
		return c.before
	}
	return c.before + c.room
}

// orders are the orders in which clusters are looked at, one after the other until one gives enough room: those that have the
// object first; the greatest first; for each constraint by group, the greatest group first; and those that belong to the most
// groups first, as one cluster may be all that fits where one in several zones is needed.
func orders(choices []*candidate, constraints []Spread) [][]*candidate {
	pinned := func(c *candidate) int {
		if c.frozen || c.fixed {
			return 0
		}
		return 1
	}
	greatest := func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.holds(), a.holds()), cmp.Compare(b.before, a.before), cmp.Compare(a.Name, b.Name))
	}
	sorted := func(first func(a, b *candidate) int) []*candidate {
		order := slices.Clone(choices)
		slices.SortFunc(order, func(a, b *candidate) int {
			return cmp.Or(cmp.Compare(pinned(a), pinned(b)), first(a, b), greatest(a, b))
		})
		return order
	}
	all := [][]*candidate{sorted(func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(standing(a), standing(b)), cmp.Compare(a.group(), b.group()))
	}), sorted(func(*candidate, *candidate) int { return 0 })}
	for i := range constraints {
		s := &constraints[i]
		room := roomByGroup(s, choices, constraints)
		key := func(c *candidate) (int64, string) {
			var most int64
			name := ""
			for _, g := range s.groups(c.Cluster) {
				if room[g] > most || (room[g] == most && (name == "" || g < name)) {
					most, name = room[g], g
				}
			}
			return most, name
		}
		all = append(all, sorted(func(a, b *candidate) int {
			roomA, nameA := key(a)
			roomB, nameB := key(b)
			return cmp.Or(cmp.Compare(roomB, roomA), cmp.Compare(nameA, nameB))
		}))
	}
	reach := func(c *candidate) int {
		n := 0
		for i := range constraints {
			n += len(constraints[i].groups(c.Cluster))
		}
		return n
	}
	return append(all, sorted(func(a, b *candidate) int { return cmp.Compare(reach(b), reach(a)) }))
}

// roomByGroup is how many replicas each group holds: in as many of its greatest clusters as there may be clusters.
func roomByGroup(s *Spread, choices []*candidate, constraints []Spread) map[string]int64 {
	most := len(choices)
	for i := range constraints {
		if constraints[i].By == ByCluster && constraints[i].Max > 0 {
			most = constraints[i].Max
		}
	}
	sorted := slices.Clone(choices)
	slices.SortFunc(sorted, func(a, b *candidate) int { return cmp.Compare(b.holds(), a.holds()) })
	room, taken := map[string]int64{}, map[string]int{}
	for _, c := range sorted {
		for _, g := range s.groups(c.Cluster) {
			if taken[g] < most {
				room[g] += c.holds()
				taken[g]++
			}
		}
	}
	return room
}

// standing ranks clusters by what they have: replicas, the object, nothing.
func standing(c *candidate) int {
	switch {
	case c.before > 0:
		return 0
	case c.held:
		return 1
	default:
		return 2
	}
}

// selection is some of the clusters.
type selection struct {
	constraints []Spread
	order       []*candidate
	in          []bool
	used        []map[string]int // per constraint, how many selected clusters each group has
	needed      int64
}

func newSelection(constraints []Spread, order []*candidate, needed int64) *selection {
	s := &selection{constraints: constraints, order: order, in: make([]bool, len(order)), needed: needed}
	for range constraints {
		s.used = append(s.used, map[string]int{})
	}
	return s
}

func (s *selection) put(i, n int) {
	s.in[i] = n > 0
	for j := range s.constraints {
		for _, g := range s.constraints[j].groups(s.order[i].Cluster) {
			if s.used[j][g] += n; s.used[j][g] == 0 {
				delete(s.used[j], g)
			}
		}
	}
}

// fits tells whether one more cluster leaves every constraint's most as it has to be.
func (s *selection) fits(i int) bool {
	for j := range s.constraints {
		if limit := s.constraints[j].Max; limit > 0 && len(s.used[j])+s.fresh(j, i) > limit {
			return false
		}
	}
	return true
}

// fresh is how many groups a cluster would add.
func (s *selection) fresh(j, i int) int {
	n := 0
	for _, g := range s.constraints[j].groups(s.order[i].Cluster) {
		if s.used[j][g] == 0 {
			n++
		}
	}
	return n
}

// fill selects, in order, first those that bring groups which there have to be, and then all that there is a place for. It
// returns what is missing.
func (s *selection) fill() string {
	for i, c := range s.order {
		if c.frozen || c.fixed {
			s.put(i, 1)
		}
	}
	coarse := make([]int, len(s.constraints)) // few groups first: what is selected for them counts for the finer ones
	for j := range coarse {
		coarse[j] = j
	}
	groups := make([]int, len(s.constraints))
	for j := range s.constraints {
		all := map[string]bool{}
		for _, c := range s.order {
			for _, g := range s.constraints[j].groups(c.Cluster) {
				all[g] = true
			}
		}
		groups[j] = len(all)
		if groups[j] < s.constraints[j].Min {
			return fmt.Sprintf("the policy wants clusters of %d groups by %s at the least, and those that may be selected are of %d: join clusters of other groups, or lower minGroups",
				s.constraints[j].Min, s.constraints[j].what(), groups[j])
		}
	}
	slices.SortStableFunc(coarse, func(a, b int) int { return cmp.Compare(groups[a], groups[b]) })
	for _, j := range coarse {
		for i := 0; i < len(s.order) && len(s.used[j]) < s.constraints[j].Min; i++ {
			if !s.in[i] && s.fresh(j, i) > 0 && s.fits(i) {
				s.put(i, 1)
			}
		}
		if len(s.used[j]) < s.constraints[j].Min {
			return fmt.Sprintf("no selection of clusters was found that keeps to all spreadConstraints (%s): lower minGroups or raise maxGroups", describe(s.constraints))
		}
	}
	for i := range s.order {
		if !s.in[i] && s.fits(i) {
			s.put(i, 1)
		}
	}
	return ""
}

// enough tells whether every constraint's least is there.
func (s *selection) enough() bool {
	for j := range s.constraints {
		if len(s.used[j]) < s.constraints[j].Min {
			return false
		}
	}
	return true
}

func (s *selection) room() int64 {
	var room int64
	for i, c := range s.order {
		if s.in[i] {
			room += c.holds()
		}
	}
	return room
}

// swap puts bigger clusters in the place of smaller ones, as long as the constraints allow, until there is room for all.
func (s *selection) swap() {
	bySize := make([]int, len(s.order))
	for i := range bySize {
		bySize[i] = i
	}
	slices.SortFunc(bySize, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.order[b].holds(), s.order[a].holds()), cmp.Compare(s.order[a].Name, s.order[b].Name))
	})
	room := s.room()
	for _, big := range bySize {
		if room >= s.needed {
			return
		}
		if s.in[big] {
			continue
		}
		for _, small := range slices.Backward(bySize) {
			gain := s.order[big].holds() - s.order[small].holds()
			if !s.in[small] || s.order[small].frozen || s.order[small].fixed || gain <= 0 {
				continue
			}
			s.put(small, -1)
			if s.fits(big) {
				s.put(big, 1)
				if s.enough() {
					room += gain
					break
				}
				s.put(big, -1)
			}
			s.put(small, 1)
		}
	}
}
