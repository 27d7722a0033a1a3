package rollup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// state is how far a cluster is, those first that a reader looks for first.
type state int

const (
	stateFailed state = iota
	stateUnderWay
	stateDone
)

// cluster is a selected cluster as the status tells of it.
type cluster struct {
	name  string
	index string // of the resource snapshot that it is on, or is being moved to
	state state
	// conditions are Scheduled, and then the chain up to the first that is not True.
	conditions []metav1.Condition
	failed     []placementv1.FailedResourcePlacement
	// reports tells that nothing is written there; its chain ends with DiffReported.
	reports   bool
	drifted   []placementv1.DriftedResourcePlacement
	diffed    []placementv1.DiffedResourcePlacement
	overrides placementv1.AppliedOverrides
}

// observeClusters finds the selected clusters: those that have a binding which is wanted, and those that were chosen and
// have none yet.
func (r *rollup) observeClusters() {
	seen := map[string]bool{}
	for _, b := range r.Bindings {
		spec := b.BindingSpec()
		seen[spec.TargetCluster] = true
		if b.GetDeletionTimestamp().IsZero() && spec.State != placementv1.BindingStateUnscheduled {
			r.clusters = append(r.clusters, r.observe(b))
		}
	}
	if r.Policy != nil {
		status := r.Policy.PolicySnapshotStatus()
		for i := range status.ClusterDecisions {
			if decision := &status.ClusterDecisions[i]; decision.Selected && !seen[decision.ClusterName] {
				r.clusters = append(r.clusters, r.unbound(decision))
			}
		}
	}
	slices.SortFunc(r.clusters, func(a, b *cluster) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.name, b.name))
	})
}

// unbound is a cluster that was chosen a moment ago.
func (r *rollup) unbound(decision *placementv1.ClusterDecision) *cluster {
	since := r.Policy.GetCreationTimestamp()
	if scheduled := meta.FindStatusCondition(r.Policy.PolicySnapshotStatus().Conditions, placementv1.ConditionScheduled); scheduled != nil {
		since = scheduled.LastTransitionTime
	}
	c := &cluster{name: decision.ClusterName, state: stateUnderWay, reports: r.Placement.PlacementSpec().Strategy.ApplyStrategy.ReportsOnly()}
	c.conditions = []metav1.Condition{r.scheduled(decision, since), r.notGivenYet(since)}
	return c
}

func (r *rollup) scheduled(decision *placementv1.ClusterDecision, since metav1.Time) metav1.Condition {
	return r.condition(placementv1.ConditionScheduled, metav1.ConditionTrue, placementv1.ReasonScheduled, decision.Reason, since)
}

// observe tells how far the cluster of a binding is.
func (r *rollup) observe(b placementv1.BindingObject) *cluster {
	spec, status := b.BindingSpec(), b.BindingStatus()
	c := &cluster{name: spec.TargetCluster, state: stateUnderWay, reports: spec.ApplyStrategy.ReportsOnly(), overrides: spec.AppliedOverrides}
	if spec.ResourceSnapshotName == "" { // it has none yet, and gets the placement's
		c.reports = r.Placement.PlacementSpec().Strategy.ApplyStrategy.ReportsOnly()
	}
	if index, ok := placement.ResourceSnapshotIndex(r.Placement.GetName(), spec.ResourceSnapshotName); ok {
		c.index = strconv.Itoa(index)
	}
	c.conditions = append(c.conditions, r.scheduled(&spec.ClusterDecision, b.GetCreationTimestamp()))
	for _, kind := range chainOf(c.reports) {
		condition := r.current(b, kind)
		if kind == placementv1.ConditionRolloutStarted {
			condition = r.rolloutStarted(b, c, condition)
		} else if condition == nil {
			condition = r.unknown(kind, b)
		}
		c.conditions = append(c.conditions, *condition)
		if kind == placementv1.ConditionOverridden && condition.Status == metav1.ConditionFalse {
			c.failed = status.FailedPlacements
		}
		if kind == placementv1.ConditionWorkSynchronized && condition.Status == metav1.ConditionTrue {
			c.failed, c.drifted, c.diffed = status.FailedPlacements, status.DriftedPlacements, status.DiffedPlacements
		}
		if condition.Status != metav1.ConditionTrue {
			if isFailure(condition) {
				c.state = stateFailed
			}
			return c
		}
	}
	c.state = stateDone
	return c
}

// isFailure tells what failed from what is under way.
func isFailure(condition *metav1.Condition) bool {
	if condition.Status != metav1.ConditionFalse {
		return false
	}
	switch condition.Type {
	case placementv1.ConditionWorkSynchronized:
		return condition.Reason != placementv1.ReasonWorkNotSynchronizedYet
	case placementv1.ConditionApplied:
		return condition.Reason != placementv1.ReasonApplyInProgress
	case placementv1.ConditionDiffReported:
		return condition.Reason != placementv1.ReasonDiffReportInProgress
	case placementv1.ConditionOverridden:
		return true
	}
	return false
}

// current returns a binding's condition as the placement shows it, if it is about the binding as it is now.
func (r *rollup) current(b placementv1.BindingObject, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, kind)
	if c == nil || c.ObservedGeneration != b.GetGeneration() {
		return nil
	}
	copied := r.condition(kind, c.Status, c.Reason, c.Message, c.LastTransitionTime)
	return &copied
}

// rolloutStarted tells whether a cluster may have the snapshot that it is to have. That follows from the binding's spec,
// so that it is known before the hub has acted on it.
func (r *rollup) rolloutStarted(b placementv1.BindingObject, c *cluster, reported *metav1.Condition) *metav1.Condition {
	var condition metav1.Condition
	held, waits := r.held[b.GetName()]
	switch {
	case r.Waiting != "" && !r.external && r.Latest != nil && b.BindingSpec().State != placementv1.BindingStateUnscheduled && c.index != strconv.Itoa(r.Latest.Index):
		condition = r.condition(placementv1.ConditionRolloutStarted, metav1.ConditionFalse, placementv1.ReasonRolloutNotStartedYet,
			"The rollout waits: "+r.Waiting, r.heldSince(b))
	case waits:
		condition = r.condition(placementv1.ConditionRolloutStarted, metav1.ConditionFalse, placementv1.ReasonRolloutNotStartedYet,
			"The rollout is being blocked by the rollout strategy: "+held.Reason, r.heldSince(b))
	case b.BindingSpec().State != placementv1.BindingStateBound || c.index == "":
		condition = r.notGivenYet(b.GetCreationTimestamp())
	case !r.external && r.Latest != nil && c.index != strconv.Itoa(r.Latest.Index):
		condition = r.condition(placementv1.ConditionRolloutStarted, metav1.ConditionFalse, placementv1.ReasonRolloutNotStartedYet,
			fmt.Sprintf("The rollout is being blocked by the rollout strategy: the cluster is on resource snapshot %s, the latest is %d",
				c.index, r.Latest.Index), r.Latest.Created)
	case r.want != nil && r.want(b).Differs(b) != "":
		condition = r.condition(placementv1.ConditionRolloutStarted, metav1.ConditionFalse, placementv1.ReasonRolloutNotStartedYet,
			"The rollout is being blocked by the rollout strategy: "+r.want(b).Differs(b), lastKnown(b, placementv1.ConditionRolloutStarted))
	case reported != nil && reported.Status == metav1.ConditionTrue:
		return reported
	default:
		condition = r.condition(placementv1.ConditionRolloutStarted, metav1.ConditionTrue, placementv1.ReasonRolloutStarted,
			"Detected the new changes on the resources and started the rollout process, resourceSnapshotIndex: "+c.index,
			lastKnown(b, placementv1.ConditionRolloutStarted))
	}
	return &condition
}

// heldSince is since when a cluster waits: since there is something newer than it has, or else since it last got something.
func (r *rollup) heldSince(b placementv1.BindingObject) metav1.Time {
	if b.BindingSpec().ResourceSnapshotName != placement.ResourceSnapshotName(r.Placement.GetName(), r.Latest.Index) &&
		r.Latest.Created.After(b.GetCreationTimestamp().Time) {
		return r.Latest.Created
	}
	return lastKnown(b, placementv1.ConditionRolloutStarted)
}

// notGivenYet is RolloutStarted of a cluster that has no resource snapshot yet.
func (r *rollup) notGivenYet(since metav1.Time) metav1.Condition {
	reason := placementv1.ReasonRolloutStartedUnknown
	message := "The cluster has not been given a resource snapshot yet"
	switch {
	case r.external:
		reason = placementv1.ReasonRolloutControlledByExternalController
		message = fmt.Sprintf("The cluster waits for a %s: no run has given it a resource snapshot of this placement yet", r.Kinds.UpdateRun)
	case r.Latest == nil:
		message += ": there is none so far"
	}
	return r.condition(placementv1.ConditionRolloutStarted, metav1.ConditionUnknown, reason, message, since)
}

// unknown is a condition that the hub has not found out yet for the binding as it is now.
func (r *rollup) unknown(kind string, b placementv1.BindingObject) *metav1.Condition {
	text := texts[kind]
	c := r.condition(kind, metav1.ConditionUnknown, text.unknownReason, text.clusterUnknown, lastKnown(b, kind))
	return &c
}

// lastKnown is a time that is the same whenever the same is observed: the last known transition, or the binding's making.
func lastKnown(b placementv1.BindingObject, kind string) metav1.Time {
	if c := meta.FindStatusCondition(b.BindingStatus().Conditions, kind); c != nil {
		return c.LastTransitionTime
	}
	return b.GetCreationTimestamp()
}

// condition makes a condition of a cluster's row. Its time is one that was observed, never the present: a row that is
// left out now and shown later is the same row.
func (r *rollup) condition(kind string, status metav1.ConditionStatus, reason, message string, since metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: since, ObservedGeneration: r.generation,
	}
}
