package rolling

import (
	"fmt"
	"strings"
	"time"
)

// shownClusters is how many clusters a reason names.
const shownClusters = 3

// explain says what each binding that waits waits for, and when time alone will change that.
func (p *planner) explain() {
	if len(p.held) == 0 {
		return
	}
	budget := p.budgetSpent()
	for i, o := range p.held {
		wait := &p.plan.Waits[i]
		switch {
		case o.fare.Health == Unknown:
			wait.Reason = "the hub has yet to tell how the cluster fares with what it has"
		case wait.Action == Bind:
			wait.Reason = p.surgeSpent()
		case wait.Action == Remove:
			wait.Reason = "the cluster keeps what it has until others have it in its place: " + budget
		default:
			wait.Reason = o.outdated + "; " + budget
		}
	}
	for _, o := range p.bindings {
		if after := o.readyAt.Sub(p.in.Now); o.fare.Health == Untracked && !o.ready && o.going == "" && !o.deleting {
			if p.plan.RequeueAfter == 0 || after < p.plan.RequeueAfter {
				p.plan.RequeueAfter = after
			}
		}
	}
}

// budgetSpent says what the budget of unavailable clusters is, and who takes it up.
func (p *planner) budgetSpent() string {
	if p.unavailable == 0 {
		return fmt.Sprintf("maxUnavailable is %s, so that no cluster may become unavailable; raise it to let the update go on", p.unavailableText)
	}
	var taken []*observed
	for _, o := range p.bindings {
		if o.wanted() && (!o.ready || o.deleting || o.going != "") {
			taken = append(taken, o)
		}
	}
	verb := "are"
	if len(taken) == 1 {
		verb = "is"
	}
	return fmt.Sprintf("at most %d of %d clusters may be unavailable at once (maxUnavailable %s), and %d %s: %s; the update goes on when fewer are, or when maxUnavailable is raised",
		p.unavailable, p.target, p.unavailableText, len(taken), verb, p.name(taken))
}

// surgeSpent says how many clusters may hold the objects, and who is to let go of them.
func (p *planner) surgeSpent() string {
	text := fmt.Sprintf("at most %d clusters may hold the objects at once (%d wanted, and maxSurge %s), and %d do", p.target+p.surge, p.target, p.surgeText, p.placed)
	var leaving []*observed
	for _, o := range p.bindings {
		if !o.wanted() && o.holds() && o.going == "" {
			leaving = append(leaving, o)
		}
	}
	if len(leaving) == 0 {
		return text + "; the cluster is given them when one lets go of them, or when maxSurge is raised"
	}
	return fmt.Sprintf("%s; the cluster is given them when one that is no longer chosen lets go of them (%s), or when maxSurge is raised", text, p.name(leaving))
}

// name names the first of some clusters and says how each is.
func (p *planner) name(clusters []*observed) string {
	var parts []string
	for i, o := range clusters {
		if i == shownClusters {
			parts = append(parts, fmt.Sprintf("and %d more", len(clusters)-shownClusters))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", o.cluster, o.how()))
	}
	return strings.Join(parts, ", ")
}

// how says how a cluster is. It names moments and no durations, so that the same state always reads the same.
func (o *observed) how() string {
	switch {
	case o.deletedAt != nil:
		return "being removed since " + moment(o.deletedAt.Time)
	case o.deleting:
		return "being removed"
	case o.going != "":
		return "being updated"
	}
	switch o.fare.Health {
	case Empty:
		return "has nothing yet"
	case Unknown:
		return "not reported on yet"
	case Failing:
		return o.fare.Trouble
	case Untracked:
		if o.ready {
			return "available"
		}
		return "counts as available from " + moment(o.readyAt) + " on, since nothing tells whether it is"
	case Available:
		return "available"
	case InProgress:
	}
	if o.outdated == "" && !o.moved.IsZero() {
		return "being updated since " + moment(o.moved)
	}
	return "not available"
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
