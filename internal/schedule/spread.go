package schedule

import (
	"fmt"
	"math"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/utils/ptr"
)

// brokenScore is what a cluster loses by each constraint that it would break and may.
const brokenScore = -1000

// noDomain is the domain of a cluster without the label.
const noDomain = -1

// spread is one topology spread constraint, and how many clusters are chosen in each domain: for each value of the label that
// a cluster has which is fit for the placement. Others are no domains, or nothing could be chosen beside them.
type spread struct {
	key     string
	maxSkew int
	hard    bool
	domains map[string]int // by value of the label, the position in counts
	counts  []int
	// unlabelled tells that a cluster which is fit has no such label.
	unlabelled bool

	least, second, most int // the smallest count, that of the next domain, and the greatest
}

// spreads are all constraints of a policy. As a rule they refuse clusters that would break one of them now.
type spreads []*spread

func newSpreads(policy *placementv1.PlacementPolicy, fit []*Cluster) spreads {
	var all spreads
	for i := range policy.TopologySpreadConstraints {
		from := &policy.TopologySpreadConstraints[i]
		s := &spread{
			key: from.TopologyKey, maxSkew: int(ptr.Deref(from.MaxSkew, 1)),
			hard: from.WhenUnsatisfiable != placementv1.ScheduleAnyway, domains: map[string]int{},
		}
		for _, c := range fit {
			value, found := c.Labels[s.key]
			if !found {
				s.unlabelled = true
			} else if _, known := s.domains[value]; !known {
				s.domains[value] = len(s.counts)
				s.counts = append(s.counts, 0)
			}
		}
		s.measure()
		all = append(all, s)
	}
	return all
}

// domains are a cluster's domains, one for each constraint.
func (all spreads) domains(c *Cluster) []int {
	domains := make([]int, len(all))
	for i, s := range all {
		domains[i] = noDomain
		if value, found := c.Labels[s.key]; found {
			if d, known := s.domains[value]; known {
				domains[i] = d
			}
		}
	}
	return domains
}

// add counts a cluster that is chosen, or, with -1, is not any more.
func (all spreads) add(domains []int, n int) {
	for i, s := range all {
		if domains[i] != noDomain {
			s.counts[domains[i]] += n
			s.measure()
		}
	}
}

// measure finds the extremes of the counts.
func (s *spread) measure() {
	s.least, s.second, s.most = math.MaxInt, math.MaxInt, 0
	for _, n := range s.counts {
		if n < s.least {
			s.least, s.second = n, s.least
		} else {
			s.second = min(s.second, n)
		}
		s.most = max(s.most, n)
	}
}

// breaks tells whether one cluster more in a domain breaks the constraint.
func (s *spread) breaks(domain int) bool {
	return domain == noDomain || s.counts[domain]+1-s.least > s.maxSkew
}

// gain is by how much one cluster more in a domain makes the clusters less even.
func (s *spread) gain(domain int) int {
	count, least := s.counts[domain], s.least
	if count == least {
		least = min(count+1, s.second)
	}
	return max(s.most, count+1) - least - (s.most - s.least)
}

// score is what choosing a cluster gives; allowed is false where a constraint would be broken that must not.
func (all spreads) score(domains []int) (score int32, allowed bool) {
	allowed = true
	for i, s := range all {
		switch breaks := s.breaks(domains[i]); {
		case breaks && s.hard:
			allowed = false
		case breaks:
			score += brokenScore
		default:
			score -= int32(s.gain(domains[i])) //nolint:gosec // one cluster changes that by one
		}
	}
	return score, allowed
}

// relief is by how much the clusters become more even without one that is chosen.
func (all spreads) relief(domains []int) int {
	relief := 0
	for i, s := range all {
		if domains[i] == noDomain {
			continue
		}
		before := s.most - s.least
		s.counts[domains[i]]--
		s.measure()
		relief += before - (s.most - s.least)
		s.counts[domains[i]]++
		s.measure()
	}
	return relief
}

// Allows tells whether the cluster breaks no constraint that must be kept.
func (all spreads) Allows(c *Cluster) bool {
	_, allowed := all.score(all.domains(c))
	return allowed
}

// Reason names the first constraint that the cluster breaks.
func (all spreads) Reason(c *Cluster) string {
	for i, domain := range all.domains(c) {
		s := all[i]
		switch {
		case !s.hard || !s.breaks(domain):
		case domain == noDomain:
			return fmt.Sprintf("cluster has no label %q, by which a doNotSchedule topology spread constraint spreads the clusters", s.key)
		default:
			return fmt.Sprintf("violated doNotSchedule topology spread constraint %q (max skew %d)", s.key, s.maxSkew)
		}
	}
	return ""
}

// Summary says that clusters break a constraint.
func (all spreads) Summary() (what, remedy string) {
	remedy = "add clusters where the fewest are, allow more skew or use ScheduleAnyway"
	for _, s := range all {
		if s.hard && s.unlabelled {
			remedy = fmt.Sprintf("label the clusters that have no label %q, ", s.key) + remedy
			break
		}
	}
	return "violating a doNotSchedule topology spread constraint", remedy
}
