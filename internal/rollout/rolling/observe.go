package rolling

import (
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/rollout/verdict"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Health is how a cluster fares with what its binding gives it.
type Health int

const (
	// Empty is a cluster that was given nothing so far.
	Empty Health = iota
	// Unknown is a cluster of which nothing was said since its binding was last written. It may well be available: nothing
	// is decided on it before the hub has looked.
	Unknown
	// InProgress is a cluster that does not have all of it yet, or of which not all is available.
	InProgress
	// Failing is a cluster that cannot have it.
	Failing
	// Untracked is a cluster that has all of it, where nothing tells of some of it whether it is available.
	Untracked
	// Available is a cluster in which all of it is available.
	Available
)

// Fare is how a cluster fares, and since when.
type Fare struct {
	Health Health
	// Trouble is what is wrong with one that is Failing.
	Trouble string
	// Since is, of one that is Untracked, when it came to have all of it.
	Since time.Time
}

// FareOf tells how a binding's cluster fares.
func FareOf(b placementv1.BindingObject) Fare {
	if b.BindingSpec().ResourceSnapshotName == "" || b.BindingSpec().State == placementv1.BindingStateScheduled {
		return Fare{Health: Empty}
	}
	switch how, trouble := verdict.Of(b); {
	case how == verdict.Done:
		return available(b)
	case how == verdict.Failing:
		return Fare{Health: Failing, Trouble: trouble}
	case verdict.Current(b, placementv1.ConditionRolloutStarted) == nil:
		return Fare{Health: Unknown}
	default:
		return Fare{Health: InProgress}
	}
}

func available(b placementv1.BindingObject) Fare {
	c := verdict.Current(b, placementv1.ConditionAvailable)
	if c == nil || c.Reason != placementv1.ReasonNotAllWorkAreAvailabilityTrackable {
		return Fare{Health: Available}
	}
	since := c.LastTransitionTime.Time
	// The transition is an earlier one where the cluster took up what it was given so fast that nobody saw it unavailable.
	if moved := movedAt(b); moved.After(since) {
		since = moved
	}
	return Fare{Health: Untracked, Since: since}
}

// movedAt is when a binding was last given something else; zero where it does not say.
func movedAt(b placementv1.BindingObject) time.Time {
	at, err := time.Parse(time.RFC3339, b.GetAnnotations()[placementv1.AnnotationUpdateStarted])
	if err != nil {
		return time.Time{}
	}
	return at
}

// observed is what the planner sees of a binding.
type observed struct {
	name, cluster string
	state         placementv1.BindingState
	deleting      bool
	deletedAt     *metav1.Time
	fare          Fare
	// next is the snapshot that it is to be given; outdated says in what the binding is not as wanted, empty where it is.
	next, outdated string
	moved          time.Time
	// readyAt is, of one that is Untracked, when it counts as available.
	readyAt time.Time
	ready   bool
	// going is what the plan does to it now; empty where it does nothing.
	going Action
}

func observe(b placementv1.BindingObject, in *Input, period time.Duration) *observed {
	spec := b.BindingSpec()
	o := &observed{
		name: b.GetName(), cluster: spec.TargetCluster, state: spec.State, fare: FareOf(b), moved: movedAt(b),
		deletedAt: b.GetDeletionTimestamp(), deleting: b.GetDeletionTimestamp() != nil || (in.Deleted != nil && in.Deleted(b)),
	}
	switch o.fare.Health {
	case Available:
		o.ready = true
	case Untracked:
		o.readyAt = o.fare.Since.Add(period)
		o.ready = !in.Now.Before(o.readyAt)
	case Empty, Unknown, InProgress, Failing:
	}
	want := in.Want(b)
	o.next = want.Snapshot
	if want.Snapshot != "" && o.fare.Health != Empty {
		o.outdated = want.Differs(b)
	}
	return o
}

// wanted tells whether the placement wants the cluster, as far as its binding tells. One that was taken away from a cluster
// that was wanted, by an eviction for example, counts until it is gone: its cluster may be chosen again.
func (o *observed) wanted() bool { return o.state != placementv1.BindingStateUnscheduled }

// holds tells whether the cluster holds, or soon will, what it was given.
func (o *observed) holds() bool {
	return !o.deleting && o.fare.Health != Empty && o.fare.Health != Failing
}
