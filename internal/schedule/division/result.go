package division

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Share is what a cluster gets.
type Share struct {
	// Cluster is its name.
	Cluster string
	// Replicas is how many it gets; 0 for an object without replicas.
	Replicas int32
}

// Decision is why a cluster gets what it gets.
type Decision struct {
	// Cluster is its name.
	Cluster string
	// Selected tells whether it gets the object, and Replicas with how many replicas.
	Selected bool
	Replicas int32
	// Reason says why, for a person.
	Reason string
}

// Result is the answer.
type Result struct {
	// Shares are the clusters that get the object, sorted by name.
	Shares []Share
	// Decisions are for every cluster of the fleet, sorted by name.
	Decisions []Decision
	// Affinity is the name of the group of clusters that is used: of several, the last one with a replica.
	Affinity string
	// Frozen tells that nothing is decided until the release is over.
	Frozen bool
	// Problem says why nothing could be decided: a *PolicyError, *NoFit or *Shortage. Shares then are what was there before.
	Problem error
	// Notes are what else there is to say to a person.
	Notes []string
}

const (
	reasonRelease = "stays as it is until the release in progress is over; a change of the wanted replicas is followed all the same"
	reasonLeaving = "cluster has left the fleet, or is leaving it"
	reasonFrozen  = "the policy suspends the cluster: it keeps exactly what it has"
)

// PolicyError is a mistake in a policy that only the person who wrote it can put right.
type PolicyError struct{ Message string }

// Error says what the mistake is.
func (e *PolicyError) Error() string { return e.Message }

// NoFit says that no cluster may be given the object, or that too few groups of clusters are there.
type NoFit struct{ Message string }

// Error says why.
func (e *NoFit) Error() string { return e.Message }

// Shortage says that clusters do not hold all replicas that are wanted.
type Shortage struct {
	// Wanted is how many are, Missing how many of them do not fit anywhere.
	Wanted, Missing int64
	// Fits is how many each cluster could hold, with those it has, the greatest first.
	Fits []Fit
}

// Fit is how many replicas a cluster could hold.
type Fit struct {
	Cluster  string
	Replicas int64
}

// mostNamed is how many clusters a message names.
const mostNamed = 10

// Error says it in one sentence, and how to go on.
func (e *Shortage) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", count(e.Wanted, "replica is wanted", "replicas are wanted"), count(e.Wanted-e.Missing, "fits", "fit"))
	for i, f := range e.Fits[:min(len(e.Fits), mostNamed)] {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&b, "%s%s %d", separator, f.Cluster, f.Replicas)
	}
	if more := len(e.Fits) - mostNamed; more > 0 {
		var rest int64
		for _, f := range e.Fits[mostNamed:] {
			rest += f.Replicas
		}
		fmt.Fprintf(&b, " and %d in %d more", rest, more)
	}
	fmt.Fprintf(&b, "; %s: add nodes or free capacity in these clusters, let the policy select further ones, or ask for %d at most; until then nothing is changed",
		count(e.Missing, "is missing", "are missing"), e.Wanted-e.Missing)
	return b.String()
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shortage tells what a list of clusters could hold.
func shortage(wanted int64, of []*candidate) *Shortage {
	s := &Shortage{Wanted: wanted, Missing: wanted}
	for _, c := range of {
		fit := c.before
		if !c.frozen {
			fit += c.room
		}
		s.Fits = append(s.Fits, Fit{c.Name, fit})
		s.Missing -= fit
	}
	slices.SortFunc(s.Fits, func(a, b Fit) int {
		return cmp.Or(cmp.Compare(b.Replicas, a.Replicas), cmp.Compare(a.Cluster, b.Cluster))
	})
	return s
}

// keep is what is there now, in clusters that are still in the fleet, because of a problem or of a release.
func keep(r *Request, problem error, reason string) Result {
	result := Result{Problem: problem, Affinity: r.Affinity, Frozen: problem == nil}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		share, held := r.Current[c.Name]
		d := Decision{Cluster: c.Name, Reason: "not selected so far; " + reason}
		switch {
		case c.Leaving:
			d.Reason = reasonLeaving
		case held:
			d = Decision{Cluster: c.Name, Selected: true, Replicas: share, Reason: reason}
			result.Shares = append(result.Shares, Share{c.Name, share})
		}
		result.Decisions = append(result.Decisions, d)
	}
	result.finish(r)
	return result
}

// finish sorts, and says what is to be said of clusters that are gone.
func (result *Result) finish(r *Request) {
	slices.SortFunc(result.Shares, func(a, b Share) int { return cmp.Compare(a.Cluster, b.Cluster) })
	slices.SortFunc(result.Decisions, func(a, b Decision) int { return cmp.Compare(a.Cluster, b.Cluster) })
	known := make(map[string]bool, len(r.Clusters))
	for i := range r.Clusters {
		known[r.Clusters[i].Name] = !r.Clusters[i].Leaving
	}
	var gone []string
	var lost int64
	for name, share := range r.Current {
		if !known[name] {
			gone = append(gone, name)
			lost += int64(share)
		}
	}
	if len(gone) > 0 && lost > 0 && (result.Frozen || result.Problem != nil) {
		slices.Sort(gone)
		result.Notes = append(result.Notes, fmt.Sprintf("%s went with %s, and %s not placed elsewhere yet",
			count(lost, "replica", "replicas"), names(gone), map[bool]string{true: "is", false: "are"}[lost == 1]))
	}
}

// names lists names, up to a number.
func names(all []string) string {
	if len(all) <= mostNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:mostNamed], ", "), len(all)-mostNamed)
}

// result puts the shares together.
func (d *divider) result() Result {
	result := Result{Affinity: d.affinity(), Notes: d.notes}
	for _, c := range d.all {
		decision := Decision{Cluster: c.Name, Reason: c.refused}
		if d.placed(c) {
			decision = Decision{Cluster: c.Name, Selected: true, Replicas: int32(c.share), Reason: d.reason(c)} //nolint:gosec // no more than were wanted or there
			result.Shares = append(result.Shares, Share{c.Name, decision.Replicas})
		} else if c.refused == "" {
			decision.Reason = d.passedOver(c)
		}
		if !decision.Selected && c.held {
			decision.Reason = "what was placed there is removed: " + decision.Reason
		}
		result.Decisions = append(result.Decisions, decision)
	}
	result.finish(d.r)
	return result
}

// explainRefused tells, beside a problem, why each cluster that does not have the object may not be given it.
func (d *divider) explainRefused(result *Result) {
	refused := make(map[string]string)
	for _, c := range d.all {
		if c.refused != "" {
			refused[c.Name] = c.refused
		}
	}
	for i := range result.Decisions {
		decision := &result.Decisions[i]
		why := refused[decision.Cluster]
		switch {
		case why == "":
		case decision.Selected:
			decision.Reason += "; otherwise it would be taken away: " + why
		default:
			decision.Reason = why
		}
	}
}

// Total is how many replicas the shares have together.
func (result *Result) Total() int64 {
	var total int64
	for _, s := range result.Shares {
		total += int64(s.Replicas)
	}
	return total
}

// ByCluster is the shares by the cluster's name.
func (result *Result) ByCluster() map[string]int32 {
	all := make(map[string]int32, len(result.Shares))
	for _, s := range result.Shares {
		all[s.Cluster] = s.Replicas
	}
	return all
}

// summary says how many clusters were refused by what, the most frequent first.
func summary(by map[string]int) string {
	whats := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b))
	})
	for i, what := range whats {
		whats[i] = fmt.Sprintf("%d %s", by[what], what)
	}
	return strings.Join(whats, ", ")
}
