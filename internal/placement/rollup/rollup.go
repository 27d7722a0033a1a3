// Package rollup tells, from what was observed, how far a placement has come: the status of the placement as a function
// of its policy snapshot, its bindings and the time. It does no I/O.
package rollup

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/rolling"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Input is all that a placement's status follows from. It is not changed.
type Input struct {
	Kinds *placement.Kinds
	// Placement has the spec, and the status as it was.
	Placement placementv1.PlacementObject
	// Policy is the latest policy snapshot; nil while there is none.
	Policy placementv1.PolicySnapshotObject
	// Bindings are those of this very placement.
	Bindings []placementv1.BindingObject
	// Latest is the newest resource snapshot; nil while there is none.
	Latest *Revision
	// Overrides are those that there are for the clusters, with what is newest; nil where they are not known. They make no
	// difference where update runs move the clusters.
	Overrides override.ByCluster
	// Waiting is what all clusters that are to be given something new wait for; empty where that is their turn alone.
	Waiting string
	// Problem is what keeps the hub from knowing what is selected; nil while it knows.
	Problem *Problem
	// Unmatched are the selectors that now find nothing on the hub, where that is known: not where update runs move the
	// clusters.
	Unmatched []placement.Selector
	// Selected are the contents of the resource snapshot that ObservedIndex names.
	Selected Selected
	// Now is the time of transitions.
	Now time.Time
}

// Revision is a resource snapshot.
type Revision struct {
	Index   int
	Created metav1.Time
}

// Problem is why it is not known what a placement selects.
type Problem struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Selected are the contents of a resource snapshot, the first of them, and how many there are.
type Selected struct {
	Resources []placementv1.ResourceIdentifier
	Count     int32
	// Unreadable tells that they could not be read, so that nothing is said of them.
	Unreadable bool
}

// chain are the conditions that follow one another: what comes after one that is not True is not known.
var chain = []string{
	placementv1.ConditionRolloutStarted,
	placementv1.ConditionOverridden,
	placementv1.ConditionWorkSynchronized,
	placementv1.ConditionApplied,
	placementv1.ConditionAvailable,
}

// reportChain is the chain of clusters in which nothing is written.
var reportChain = []string{
	placementv1.ConditionRolloutStarted,
	placementv1.ConditionOverridden,
	placementv1.ConditionWorkSynchronized,
	placementv1.ConditionDiffReported,
}

func chainOf(reports bool) []string {
	if reports {
		return reportChain
	}
	return chain
}

// rollup is the work on one status.
type rollup struct {
	Input
	external   bool
	generation int64
	clusters   []*cluster
	// held are the steps of a rolling update that have to wait, by binding, with the reason.
	held map[string]rolling.Step
	// want says what a cluster is to have; nil where a rolling update does not say.
	want func(placementv1.BindingObject) rolling.Wanted
}

func newRollup(in Input) *rollup {
	r := &rollup{Input: in, external: in.Placement.PlacementSpec().IsExternal(), generation: in.Placement.GetGeneration()}
	r.held = r.heldBack()
	r.observeClusters()
	return r
}

// heldBack asks the planner of rolling updates, which tells the controller what to do, what has to wait.
func (r *rollup) heldBack() map[string]rolling.Step {
	if r.external || r.Latest == nil {
		return nil
	}
	in := rolling.InputFor(r.Placement, placement.ResourceSnapshotName(r.Placement.GetName(), r.Latest.Index), r.Overrides, r.Bindings, r.Now)
	r.want = in.Want
	plan := rolling.Make(in)
	held := map[string]rolling.Step{}
	for _, step := range plan.Waits {
		held[step.Binding] = step
	}
	return held
}

// ObservedIndex is the index of the resource snapshot that the status describes: the latest or, where update runs move
// the clusters, the one that all are on; "" where there is none such.
func ObservedIndex(in Input) string { return newRollup(in).observedIndex() }

func (r *rollup) observedIndex() string {
	if !r.external {
		if r.Latest == nil {
			return ""
		}
		return strconv.Itoa(r.Latest.Index)
	}
	if len(r.clusters) == 0 {
		return ""
	}
	index := r.clusters[0].index
	if slices.ContainsFunc(r.clusters, func(c *cluster) bool { return c.index != index }) {
		return ""
	}
	return index
}

// Status returns the placement's status.
func Status(in Input) placementv1.PlacementStatus {
	r := newRollup(in)
	status := placementv1.PlacementStatus{ClusterSummary: r.summary()}
	if !in.Selected.Unreadable {
		status.ObservedResourceIndex = r.observedIndex()
	}
	if status.ObservedResourceIndex != "" {
		status.SelectedResources, status.SelectedResourceCount = in.Selected.Resources, in.Selected.Count
	}
	status.Conditions = r.conditions(status.ObservedResourceIndex)
	fit(&status, r.clusters, r.unfilled())
	return status
}

// Available tells whether all clusters have all of the snapshot with the index that the status observes.
func Available(prefix string, status *placementv1.PlacementStatus) bool {
	return status.ObservedResourceIndex != "" && status.ClusterSummary != nil && status.ClusterSummary.Selected > 0 &&
		meta.IsStatusConditionTrue(status.Conditions, prefix+placementv1.ConditionAvailable)
}

func (r *rollup) summary() *placementv1.ClusterSummary {
	s := &placementv1.ClusterSummary{Selected: int32(len(r.clusters))} //nolint:gosec // a fleet has fewer than 2^31 clusters
	for _, c := range r.clusters {
		switch c.state {
		case stateFailed:
			s.Failed++
		case stateDone:
			if !c.reports {
				s.Available++
			}
		case stateUnderWay:
		}
	}
	s.ByResourceIndex = r.byIndex()
	return s
}

// byIndex counts the clusters on each resource snapshot, the oldest first.
func (r *rollup) byIndex() []placementv1.ResourceIndexCount {
	counts := map[string]int32{}
	for _, c := range r.clusters {
		if c.index != "" {
			counts[c.index]++
		}
	}
	var all []placementv1.ResourceIndexCount
	for index, count := range counts {
		all = append(all, placementv1.ResourceIndexCount{ResourceIndex: index, Clusters: count})
	}
	slices.SortFunc(all, func(a, b placementv1.ResourceIndexCount) int {
		return cmp.Or(cmp.Compare(len(a.ResourceIndex), len(b.ResourceIndex)), cmp.Compare(a.ResourceIndex, b.ResourceIndex))
	})
	return all
}
