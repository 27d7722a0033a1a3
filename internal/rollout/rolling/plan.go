// Package rolling plans rolling updates: which bindings of a placement are given what is newest now, which are removed, which
// have to wait and what for, within the budget that the placement allows. It does no I/O.
package rolling

import (
	"cmp"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// Input is all that a plan is made from. Nothing in it is changed.
type Input struct {
	// Config is the budget; nil stands for its defaults.
	Config *placementv1.RollingUpdateConfig
	// Bindings are those of the placement.
	Bindings []placementv1.BindingObject
	// Want says what a binding is to give its cluster.
	Want func(placementv1.BindingObject) Wanted
	// Deleted tells of a binding that is being deleted though it does not say so yet. It may be nil.
	Deleted func(placementv1.BindingObject) bool
	// Now is the time.
	Now time.Time
}

// Action is what is to be done to a binding.
type Action string

const (
	// Bind gives a cluster something for the first time.
	Bind Action = "Bind"
	// Move gives a cluster something else.
	Move Action = "Move"
	// Remove deletes the binding, and with it what the cluster was given.
	Remove Action = "Remove"
)

// Step is one thing to do, or to be done later.
type Step struct {
	// Binding is the binding's name, Cluster its cluster.
	Binding, Cluster string
	Action           Action
	// Reason says, for a person, why it is done, or what it waits for.
	Reason string
}

// Plan is what is to be done now, and what has to wait.
type Plan struct {
	// Steps are to be done now, Waits when there is room for them.
	Steps, Waits []Step
	// RequeueAfter is when time alone will let a step go that waits; 0 means never.
	RequeueAfter time.Duration
}

// planner is the work on one plan.
type planner struct {
	limits
	in       Input
	bindings []*observed // by cluster
	// target is the number of clusters that the placement wants. ready are those available, of bindings given up too, and
	// placed those that hold something or soon will.
	target, ready, placed int
	// flying is the number of clusters that are not available and keep what they have.
	flying int
	// held are the bindings that wait, each as long as the Waits.
	held []*observed
	plan Plan
}

// Make plans. Every cluster that is not available takes up a place in the budget of unavailable ones, whatever the reason:
//   - one that is available is updated or removed only while there is a place for it;
//   - one that is not available is updated while fewer of those that are not are up to date than there are places, so that it
//     keeps its place, and at least one at a time; one that fails is always updated;
//   - one that is not available and not wanted any more is removed at once;
//   - a new one is given something while no more hold something than are wanted, and the surge beyond.
func Make(in Input) Plan {
	p := newPlanner(in)
	for _, o := range p.bindings {
		if o.state == placementv1.BindingStateUnscheduled && !o.deleting {
			p.remove(o)
		}
	}
	for _, o := range p.bindings {
		if o.outdated != "" && o.wanted() && !o.deleting && !o.ready {
			p.moveAgain(o)
		}
	}
	for _, o := range p.bindings {
		if o.outdated != "" && o.wanted() && !o.deleting && o.ready {
			p.move(o)
		}
	}
	for _, o := range p.bindings {
		if o.fare.Health == Empty && o.wanted() && !o.deleting && o.next != "" {
			p.bind(o)
		}
	}
	p.explain()
	return p.plan
}

func newPlanner(in Input) *planner {
	p := &planner{in: in}
	period := periodOf(in.Config)
	for _, b := range in.Bindings {
		o := observe(b, &in, period)
		p.bindings = append(p.bindings, o)
		if o.wanted() {
			p.target++
			if !o.ready && !o.deleting && o.fare.Health != Empty && o.outdated == "" {
				p.flying++
			}
		}
		if o.ready && !o.deleting {
			p.ready++
		}
		if o.holds() {
			p.placed++
		}
	}
	slices.SortFunc(p.bindings, byCluster)
	p.limits = limitsOf(in.Config, p.target)
	return p
}

func byCluster(a, b *observed) int {
	return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.name, b.name))
}

// room is how many available clusters may become unavailable now.
func (p *planner) room() int { return p.ready - (p.target - p.unavailable) }

// remove deals with a cluster that is not wanted any more.
func (p *planner) remove(o *observed) {
	switch {
	case o.ready && p.room() > 0:
		p.ready--
	case o.ready || o.fare.Health == Unknown:
		p.wait(o, Remove)
		return
	}
	if o.holds() {
		p.placed--
	}
	p.do(o, Remove, "the cluster is no longer chosen")
}

// moveAgain deals with a cluster that is out of date and not available.
func (p *planner) moveAgain(o *observed) {
	if o.fare.Health == Unknown || (o.fare.Health != Failing && p.flying >= max(p.unavailable, 1)) {
		p.wait(o, Move)
		return
	}
	p.flying++
	p.do(o, Move, o.outdated)
}

// move deals with a cluster that is out of date and available.
func (p *planner) move(o *observed) {
	if p.room() <= 0 {
		p.wait(o, Move)
		return
	}
	p.ready--
	p.flying++
	p.do(o, Move, o.outdated)
}

// bind deals with a cluster that has nothing yet.
func (p *planner) bind(o *observed) {
	if p.placed >= p.target+p.surge {
		p.wait(o, Bind)
		return
	}
	p.placed++
	p.do(o, Bind, "the cluster was chosen; "+o.next+" is its first snapshot")
}

func (p *planner) do(o *observed, action Action, why string) {
	o.going = action
	p.plan.Steps = append(p.plan.Steps, Step{Binding: o.name, Cluster: o.cluster, Action: action, Reason: why})
}

func (p *planner) wait(o *observed, action Action) {
	p.held = append(p.held, o)
	p.plan.Waits = append(p.plan.Waits, Step{Binding: o.name, Cluster: o.cluster, Action: action})
}
