package updaterun

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// PlanInput is all that a plan is made from.
type PlanInput struct {
	// Kinds are the kinds of the placement's scope.
	Kinds *placement.Kinds
	// Run is the run to be planned.
	Run placementv1.UpdateRunObject
	// Placement and Strategy are what the run names; nil where they do not exist.
	Placement placementv1.PlacementObject
	Strategy  *placementv1.UpdateStrategySpec
	// Policies are the policy snapshots under the placement's name.
	Policies []placementv1.PolicySnapshotObject
	// Bindings are those under the placement's name.
	Bindings []placementv1.BindingObject
	// Fleet is the member clusters.
	Fleet schedule.Fleet
	// Snapshot is the answer about the resource snapshot; nil until a plan asked for it.
	Snapshot *Snapshot
	// Overrides are those that matter to the placement with that snapshot.
	Overrides override.Matching
}

// Snapshot is what is known of the resource snapshot that a run is to roll out.
type Snapshot struct {
	// Index is its index, where there is no problem.
	Index int
	// Missing says why there is none yet; it may still come.
	Missing string
	// Refused says why there will be none.
	Refused string
}

// Verdict is how planning ended.
type Verdict int

const (
	// Pending: something that may still come is missing.
	Pending Verdict = iota
	// Failed: no plan can be made, whatever comes.
	Failed
	// NeedsSnapshot: all is well but for the resource snapshot, which is to be looked up, or made where the run names none.
	NeedsSnapshot
	// Planned: the plan is made.
	Planned
)

// Plan is the outcome of planning a run.
type Plan struct {
	// Verdict is how it ended.
	Verdict Verdict
	// Message says, while Pending or Failed, what is missing or wrong, and what to do.
	Message string
	// Status, when Planned, is the plan as the run's status shows it, without conditions.
	Status placementv1.UpdateRunStatus
}

func pending(missing ...string) Plan {
	return Plan{Verdict: Pending, Message: strings.Join(missing, "; ")}
}

func failed(format string, args ...any) Plan {
	return Plan{Verdict: Failed, Message: fmt.Sprintf(format, args...)}
}

// MakePlan plans a run.
func MakePlan(in PlanInput) Plan {
	if p := in.Placement; p != nil && p.GetDeletionTimestamp().IsZero() && !p.PlacementSpec().IsExternal() {
		return failed("%s %q has rollout strategy %q, so that the hub moves its clusters by itself; "+
			"set its spec.strategy.type to External and create the run anew", in.Kinds.Placement, p.GetName(), p.PlacementSpec().Strategy.Type)
	}
	policy, chosen, dropped, missing := in.scheduled()
	strategy := in.Run.UpdateRunSpec().StagedUpdateStrategyName
	if in.Strategy == nil {
		missing = append(missing, fmt.Sprintf("%s %q does not exist; create it, and the run goes on", in.Kinds.UpdateStrategy, strategy))
	}
	if len(missing) > 0 {
		return pending(missing...)
	}
	stages, err := divide(in.Run.GetName(), in.Strategy, chosen)
	if err != nil {
		return failed("%s %q: %v", in.Kinds.UpdateStrategy, strategy, err)
	}
	status := placementv1.UpdateRunStatus{
		PlacementUID:                 in.Placement.GetUID(),
		PolicySnapshotIndexUsed:      policy.GetLabels()[placementv1.LabelPolicyIndex],
		PolicyObservedClusterCount:   int32(len(chosen)), //nolint:gosec // a fleet has fewer than 2^31 clusters
		StagedUpdateStrategySnapshot: in.Strategy.DeepCopy(),
		ApplyStrategy:                in.Placement.PlacementSpec().Strategy.ApplyStrategy.DeepCopy(),
		ReportBackStrategy:           in.Placement.PlacementSpec().Strategy.ReportBackStrategy.DeepCopy(),
		StagesStatus:                 stages,
		DeletionStageStatus:          newStage(placementv1.DeletionStageName, dropped),
	}
	if size := largestSize(&status); size > maxStatusBytes {
		return failed("the plan for %d clusters would take up to %d KB of the run's status, which holds %d KB; "+
			"divide the clusters among several placements", len(chosen)+len(dropped), kilobytes(size), kilobytes(maxStatusBytes))
	}
	return in.withSnapshot(status)
}

// scheduled returns the clusters to be updated, the names of those to be cleared, and the policy snapshot by which they
// were chosen, or what is missing.
func (in *PlanInput) scheduled() (policy placementv1.PolicySnapshotObject, chosen []*schedule.Cluster, dropped, missing []string) {
	name := in.Run.UpdateRunSpec().PlacementName
	if in.Placement == nil {
		return nil, nil, nil, []string{fmt.Sprintf("%s %q does not exist; create it, and the run goes on", in.Kinds.Placement, name)}
	}
	if !in.Placement.GetDeletionTimestamp().IsZero() {
		return nil, nil, nil, []string{fmt.Sprintf("%s %q is being deleted; create it anew when it is gone, or delete this run", in.Kinds.Placement, name)}
	}
	policy, wait := in.policy()
	if wait == "" {
		chosen, dropped, wait = in.clusters(policy)
	}
	if wait != "" {
		missing = []string{wait}
	}
	return policy, chosen, dropped, missing
}

// policy returns the policy snapshot whose clusters are to be updated, or what is waited for.
func (in *PlanInput) policy() (latest placementv1.PolicySnapshotObject, wait string) {
	latestIndex := -1
	for _, s := range in.Policies {
		index, err := strconv.Atoi(s.GetLabels()[placementv1.LabelPolicyIndex])
		if err == nil && index > latestIndex && s.GetLabels()[placementv1.LabelIsLatestSnapshot] == "true" && in.owns(s) {
			latest, latestIndex = s, index
		}
	}
	name := in.Placement.GetName()
	if latest == nil {
		return nil, fmt.Sprintf("%s %q has not been scheduled yet: it has no policy snapshot", in.Kinds.Placement, name)
	}
	status := latest.PolicySnapshotStatus()
	scheduled := meta.FindStatusCondition(status.Conditions, placementv1.ConditionScheduled)
	if scheduled == nil || scheduled.ObservedGeneration != latest.GetGeneration() || status.ObservedCRPGeneration < in.Placement.GetGeneration() {
		return nil, fmt.Sprintf("scheduling of %s %q, generation %d, is not finished", in.Kinds.Placement, name, in.Placement.GetGeneration())
	}
	if scheduled.Status != metav1.ConditionTrue {
		return nil, fmt.Sprintf("scheduling of %s %q is not finished: %s", in.Kinds.Placement, name, scheduled.Message)
	}
	return latest, ""
}

// clusters returns the clusters to be updated and the names of those to be cleared, or what is waited for.
func (in *PlanInput) clusters(policy placementv1.PolicySnapshotObject) (chosen []*schedule.Cluster, dropped []string, wait string) {
	for _, b := range in.Bindings {
		spec := b.BindingSpec()
		switch {
		case !in.owns(b) || !b.GetDeletionTimestamp().IsZero():
			continue
		case spec.State == placementv1.BindingStateUnscheduled:
			dropped = append(dropped, spec.TargetCluster)
			continue
		case spec.SchedulingPolicySnapshotName != policy.GetName():
			return nil, nil, fmt.Sprintf("scheduling is not finished: cluster %q was chosen by policy snapshot %q, which %q has replaced",
				spec.TargetCluster, spec.SchedulingPolicySnapshotName, policy.GetName())
		}
		c := in.Fleet.Cluster(spec.TargetCluster)
		if c == nil || c.Leaving {
			return nil, nil, fmt.Sprintf("scheduling is not finished: cluster %q was chosen and is leaving the fleet", spec.TargetCluster)
		}
		chosen = append(chosen, c)
	}
	slices.Sort(dropped)
	if want := int(policy.PolicySnapshotStatus().SelectedCount); want != len(chosen) {
		return nil, nil, fmt.Sprintf("scheduling is not finished: %d clusters were chosen and %d have bindings", want, len(chosen))
	}
	if len(chosen)+len(dropped) == 0 {
		return nil, nil, in.noClusters()
	}
	return chosen, dropped, ""
}

// noClusters says why there are no clusters to be updated, where scheduling is finished.
func (in *PlanInput) noClusters() string {
	what := fmt.Sprintf("%s %q ", in.Kinds.Placement, in.Placement.GetName())
	policy := in.Placement.PlacementSpec().Policy
	switch t := policy.Type(); {
	case t == placementv1.PickNPlacementType && ptr.Deref(policy.NumberOfClusters, 0) == 0:
		return what + "asks for no clusters: its policy is PickN with numberOfClusters 0; the run goes on when that is raised"
	case t == placementv1.PickFixedPlacementType && len(policy.ClusterNames) == 0:
		return what + "asks for no clusters: its policy is PickFixed with no clusterNames; the run goes on when some are named"
	default:
		return what + "has no clusters yet; the run goes on when clusters that its policy chooses have joined"
	}
}

// owns tells whether an object was made for this very placement, and not for an earlier one of its name.
func (in *PlanInput) owns(o metav1.Object) bool {
	return o.GetAnnotations()[placementv1.AnnotationPlacementUID] == string(in.Placement.GetUID())
}

// withSnapshot completes the plan with the resource snapshot.
func (in *PlanInput) withSnapshot(status placementv1.UpdateRunStatus) Plan {
	if index := in.Run.UpdateRunSpec().ResourceSnapshotIndex; index != "" {
		if n, err := strconv.ParseInt(index, 10, 32); err != nil || n < 0 {
			return failed("invalid resource snapshot index %q: it must be an integer >= 0; "+
				"leave spec.resourceSnapshotIndex out to roll out what the selectors find now", index)
		}
	}
	switch s := in.Snapshot; {
	case s == nil:
		return Plan{Verdict: NeedsSnapshot}
	case s.Refused != "":
		return failed("%s", s.Refused)
	case s.Missing != "":
		return pending(s.Missing)
	default:
		status.ResourceSnapshotIndexUsed = strconv.Itoa(s.Index)
		if in.Overrides.Empty() {
			return Plan{Verdict: Planned, Status: status}
		}
		in.freezeOverrides(&status)
		if size := largestSize(&status); size > maxStatusBytes {
			return failed("the plan, with the overrides of each cluster, would take up to %d KB of the run's status, which holds %d KB; "+
				"divide the clusters among several placements", kilobytes(size), kilobytes(maxStatusBytes))
		}
		return Plan{Verdict: Planned, Status: status}
	}
}

// freezeOverrides writes into a plan which overrides each cluster gets, so that one that is edited while the run is on its way
// does not reach some of its clusters.
func (in *PlanInput) freezeOverrides(status *placementv1.UpdateRunStatus) {
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			row := &status.StagesStatus[i].Clusters[j]
			if c := in.Fleet.Cluster(row.ClusterName); c != nil {
				row.AppliedOverrides = in.Overrides.For(c.Labels).AppliedOverrides
			}
		}
	}
}
