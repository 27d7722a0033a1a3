package rolling

import (
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
)

// Wanted is what a binding is to give its cluster. A binding that says something else is out of date; what of it differs
// makes no difference to the budget.
type Wanted struct {
	// Snapshot is the name of the newest master resource snapshot; empty while there is none, and then nothing is given.
	Snapshot string
	// Overrides are those that the cluster is to get; nil where they are not known, and then they make no difference.
	Overrides *override.Applied
	// ApplyStrategy is how the objects are to be brought into the cluster; nil is the default.
	ApplyStrategy *placementv1.ApplyStrategy
	// ReportBackStrategy is what the cluster is to report back of the objects' statuses; nil is nothing.
	ReportBackStrategy *placementv1.ReportBackStrategy
}

// InputFor is the input of a plan for a placement, but for Deleted: what its clusters are to have follows from its spec, from
// the name of its newest master resource snapshot, "" where there is none, and from the overrides that there are for its
// clusters, nil where those are not known.
func InputFor(p placementv1.PlacementObject, latest string, overrides override.ByCluster, bindings []placementv1.BindingObject, now time.Time) Input {
	strategy := &p.PlacementSpec().Strategy
	return Input{
		Config: strategy.RollingUpdate, Bindings: bindings, Now: now,
		Want: func(b placementv1.BindingObject) Wanted {
			want := Wanted{Snapshot: latest, ApplyStrategy: strategy.ApplyStrategy, ReportBackStrategy: strategy.ReportBackStrategy}
			if overrides != nil {
				applied := overrides(b)
				want.Overrides = &applied
			}
			return want
		},
	}
}

// Differs says in what a binding that gives its cluster something is out of date, for a person; empty where it is not.
func (w Wanted) Differs(b placementv1.BindingObject) string {
	switch spec := b.BindingSpec(); {
	case spec.ResourceSnapshotName != w.Snapshot:
		return fmt.Sprintf("the cluster is on %s, and %s is newer", spec.ResourceSnapshotName, w.Snapshot)
	case w.Overrides != nil && !w.Overrides.Equal(override.AppliedTo(b)):
		return "the cluster has other overrides than it is to get now"
	case !w.ApplyStrategy.Same(spec.ApplyStrategy):
		return "the cluster is written with another apply strategy than the placement has now"
	case !w.ReportBackStrategy.Same(spec.ReportBackStrategy):
		return "the cluster reports statuses back by another reportBackStrategy than the placement has now"
	default:
		return ""
	}
}

// Give makes a binding give its cluster what is wanted.
func (w Wanted) Give(b placementv1.BindingObject) {
	spec := b.BindingSpec()
	spec.State = placementv1.BindingStateBound
	spec.ResourceSnapshotName = w.Snapshot
	spec.ApplyStrategy, spec.ReportBackStrategy = w.ApplyStrategy.DeepCopy(), w.ReportBackStrategy.DeepCopy()
	if w.Overrides != nil {
		w.Overrides.Give(b)
	}
}
