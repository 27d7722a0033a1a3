// Package rolling plans rolling updates: which bindings of a placement move to the newest resource snapshot now, which
// are removed, and why. It does no I/O.
package rolling

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// Binding is what the planner sees of a binding.
type Binding struct {
	// Name and Cluster identify it.
	Name, Cluster string
	// State and Snapshot are what it says is wanted.
	State    placementv1.BindingState
	Snapshot string
	// OverridesDiffer tells whether the cluster is to get other overrides than it has.
	OverridesDiffer bool
	// Deleting tells whether it is being deleted already.
	Deleting bool
}

// Action is what is to be done to a binding.
type Action string

const (
	// Bind gives a cluster its first snapshot.
	Bind Action = "Bind"
	// Move gives a cluster another snapshot.
	Move Action = "Move"
	// Remove deletes the binding, and with it what the cluster was given.
	Remove Action = "Remove"
)

// Step is one thing to do.
type Step struct {
	// Binding is the binding's name, Cluster its cluster.
	Binding, Cluster string
	Action           Action
	// Reason says why, for a person.
	Reason string
}

// Plan says what to do now so that every wanted cluster runs the latest snapshot, in the order of the bindings. Without a
// latest snapshot only removals are planned.
func Plan(latest string, bindings []Binding) []Step {
	var steps []Step
	for _, b := range bindings {
		action, reason := decide(latest, b)
		if action != "" {
			steps = append(steps, Step{Binding: b.Name, Cluster: b.Cluster, Action: action, Reason: reason})
		}
	}
	return steps
}

func decide(latest string, b Binding) (Action, string) {
	switch {
	case b.Deleting:
		return "", ""
	case b.State == placementv1.BindingStateUnscheduled:
		return Remove, fmt.Sprintf("cluster %q is no longer chosen", b.Cluster)
	case latest == "":
		return "", ""
	case b.State == placementv1.BindingStateScheduled:
		return Bind, fmt.Sprintf("cluster %q was chosen; %s is its first snapshot", b.Cluster, latest)
	case b.State == placementv1.BindingStateBound && b.Snapshot != latest:
		return Move, fmt.Sprintf("cluster %q is on %s, and %s is newer", b.Cluster, b.Snapshot, latest)
	case b.State == placementv1.BindingStateBound && b.OverridesDiffer:
		return Move, fmt.Sprintf("cluster %q has other overrides than it is to get now", b.Cluster)
	default:
		return "", ""
	}
}
