package rollup_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	external = placementv1.ExternalRolloutStrategyType
	rolling  = placementv1.RollingUpdateRolloutStrategyType
)

// TestHeldBack has what users are told of clusters that a rolling update has to leave alone for now.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	one := intstr.FromInt32(1)
	none := intstr.FromInt32(0)
	in := input(rolling)
	in.Latest = &rollup.Revision{Index: 1, Created: metav1.NewTime(later)}
	in.Placement.PlacementSpec().Strategy.RollingUpdate = &placementv1.RollingUpdateConfig{MaxUnavailable: &one, MaxSurge: &none}
	in.Bindings = []placementv1.BindingObject{binding("a", "on1", synced[0]), binding("b", "on0", "done"), binding("c", "scheduled"), binding("d", "on0", "done", "unscheduled")}
	status := rollup.Status(in)
	want := []string{
		"Scheduled=True/SchedulingPolicyFulfilled: found all",
		"RolloutStarted=False/RolloutNotStartedYet: The rollout is being blocked by the rollout strategy in 2 cluster(s): b, c; 1 on resource snapshot 1, 1 on resource snapshot 0; 1 cluster(s) that are no longer chosen keep what they have until others are available in their place: d",
	}
	if diff := cmp.Diff(want, summarize(status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	got := map[string]string{}
	for _, row := range status.PlacementStatuses {
		if c := meta.FindStatusCondition(row.Conditions, placementv1.ConditionRolloutStarted); c.Status != metav1.ConditionTrue {
			got[row.ClusterName] = c.Message + " @" + c.LastTransitionTime.Format("15:04")
		}
	}
	const blocked = "The rollout is being blocked by the rollout strategy: "
	wantRows := map[string]string{
		"b": blocked + "the cluster is on web-0-snapshot, and web-1-snapshot is newer; at most 1 of 3 clusters may be unavailable at once (maxUnavailable 1), and 2 are: a (not available), c (has nothing yet); the update goes on when fewer are, or when maxUnavailable is raised @13:00",
		"c": blocked + "at most 3 clusters may hold the objects at once (3 wanted, and maxSurge 0), and 3 do; the cluster is given them when one that is no longer chosen lets go of them (d (available)), or when maxSurge is raised @13:00",
	}
	if diff := cmp.Diff(wantRows, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		strategy placementv1.RolloutStrategyType
		bindings []placementv1.BindingObject
		change   func(*rollup.Input)

		wantConditions []string
		wantRows       []string
		wantIndex      string
		wantSummary    placementv1.ClusterSummary
	}{
		"not scheduled yet": {
			strategy:       external,
			change:         func(in *rollup.Input) { in.Policy = nil },
			wantConditions: []string{"Scheduled=Unknown/SchedulePending: Scheduling has not completed"},
		},
		"scheduled for an older generation": {
			strategy:       external,
			bindings:       []placementv1.BindingObject{binding("a", "on0", "done")},
			change:         func(in *rollup.Input) { in.Policy.PolicySnapshotStatus().ObservedCRPGeneration = 2 },
			wantConditions: []string{"Scheduled=Unknown/SchedulePending: Scheduling has not completed"},
			wantRows:       []string{"a@0 Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=True/NoOverrideSpecified WorkSynchronized=True/AllWorkSynced Applied=True/AllWorkHaveBeenApplied Available=True/AllWorkAreAvailable"},
			wantIndex:      "0",
			wantSummary:    placementv1.ClusterSummary{Selected: 1, Available: 1, ByResourceIndex: counts("0", 1)},
		},
		"scheduled to no cluster": {
			strategy:       rolling,
			wantConditions: []string{"Scheduled=True/SchedulingPolicyFulfilled: found all"},
		},
		"external, before the first run": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "scheduled"), binding("b", "scheduled")},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=Unknown/RolloutControlledByExternalController: No cluster has been given a resource snapshot yet: 2 cluster(s) wait for a ClusterStagedUpdateRun of this placement",
			},
			wantRows: []string{
				"a@ Scheduled=True/Scheduled RolloutStarted=Unknown/RolloutControlledByExternalController",
				"b@ Scheduled=True/Scheduled RolloutStarted=Unknown/RolloutControlledByExternalController",
			},
			wantSummary: placementv1.ClusterSummary{Selected: 2},
		},
		"external, chosen a moment ago": {
			strategy: external,
			change: func(in *rollup.Input) {
				in.Policy.PolicySnapshotStatus().ClusterDecisions = []placementv1.ClusterDecision{{ClusterName: "a", Selected: true, Reason: "picked"}, {ClusterName: "b", Reason: "full"}}
			},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=Unknown/RolloutControlledByExternalController: No cluster has been given a resource snapshot yet: 1 cluster(s) wait for a ClusterStagedUpdateRun of this placement",
			},
			wantRows:    []string{"a@ Scheduled=True/Scheduled RolloutStarted=Unknown/RolloutControlledByExternalController"},
			wantSummary: placementv1.ClusterSummary{Selected: 1},
		},
		"external, in the middle of a run: conditions go on": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "on1", "done"), binding("b", "on0", "done"), binding("c", "on0", "done")},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=True/RolloutStarted: All 3 cluster(s) have a resource snapshot, but not the same one: 1 on resource snapshot 1, 2 on resource snapshot 0",
				"Overridden=True/NoOverrideSpecified: No override rules are configured for the selected resources",
				"WorkSynchronized=True/WorkSynchronized: Work(s) are successfully created or updated in 3 target cluster(s)' namespaces",
				"Applied=True/ApplySucceeded: The selected resources are successfully applied to 3 cluster(s)",
				"Available=True/ResourceAvailable: The selected resources in 3 cluster(s) are available now",
			},
			wantRows:    []string{done("a@1"), done("b@0"), done("c@0")},
			wantSummary: placementv1.ClusterSummary{Selected: 3, Available: 3, ByResourceIndex: counts("0", 2, "1", 1)},
		},
		"external, a newcomer waits": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "on2", "done"), binding("z", "scheduled")},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=Unknown/RolloutControlledByExternalController: 1 of 2 cluster(s) wait for a ClusterStagedUpdateRun to give them a resource snapshot: z; of the others, 1 on resource snapshot 2",
			},
			wantRows:    []string{"z@ Scheduled=True/Scheduled RolloutStarted=Unknown/RolloutControlledByExternalController", done("a@2")},
			wantSummary: placementv1.ClusterSummary{Selected: 2, Available: 1, ByResourceIndex: counts("2", 1)},
		},
		"selectors that find nothing": {
			strategy: rolling,
			change: func(in *rollup.Input) {
				in.Unmatched = selectors(threeSelectors(in.Placement))[1:2]
				in.Latest = &rollup.Revision{Index: 0}
			},
			wantConditions: []string{`Scheduled=True/SchedulingPolicyFulfilled: found all; nothing on the hub is selected by resourceSelectors[1] (apps.example.com/v1 Widget with labels a=b): create what they are to select, or correct them`},
			wantIndex:      "0",
		},
		"selectors of which it is not known what they find": {
			strategy: rolling,
			change: func(in *rollup.Input) {
				in.Unmatched = selectors(threeSelectors(in.Placement))
				in.Problem = &rollup.Problem{Status: metav1.ConditionUnknown, Reason: placementv1.ReasonResourceSelectionIncomplete, Message: "unread"}
			},
			wantConditions: []string{"Scheduled=Unknown/ResourceSelectionIncomplete: unread"},
		},
		"external, selectors of which there is nothing in the snapshot": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "on1", synced[0])},
			change: func(in *rollup.Input) {
				threeSelectors(in.Placement)
				in.Selected = rollup.Selected{Count: 2, Resources: []placementv1.ResourceIdentifier{
					{Version: "v1", Kind: "Namespace", Name: "two"}, {Version: "v1", Kind: "Namespace", Name: "one", Namespace: "two"},
				}}
			},
			wantConditions: []string{
				`Scheduled=True/SchedulingPolicyFulfilled: found all; nothing in resource snapshot 1 is selected by resourceSelectors[0] (v1 Namespace "one"), resourceSelectors[1] (apps.example.com/v1 Widget with labels a=b): create what they are to select, or correct them, and make a ClusterStagedUpdateRun without resourceSnapshotIndex`,
				"RolloutStarted=True/RolloutStarted: All 1 cluster(s) start rolling out resource snapshot 1",
				"Overridden=Unknown/OverriddenPending: There are still 1 cluster(s) in the process of computing overrides: a",
			},
			wantRows:    []string{"a@1 Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=Unknown/OverriddenPending"},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 1, ByResourceIndex: counts("1", 1)},
		},
		"external, a snapshot with more than the status lists": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "on1", synced[0])},
			change: func(in *rollup.Input) {
				threeSelectors(in.Placement)
				in.Selected = rollup.Selected{Count: 2, Resources: []placementv1.ResourceIdentifier{{Version: "v1", Kind: "Namespace", Name: "two"}}}
			},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=True/RolloutStarted: All 1 cluster(s) start rolling out resource snapshot 1",
				"Overridden=Unknown/OverriddenPending: There are still 1 cluster(s) in the process of computing overrides: a",
			},
			wantRows:    []string{"a@1 Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=Unknown/OverriddenPending"},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 1, ByResourceIndex: counts("1", 1)},
		},
		"external, all on one snapshot, which is empty": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "on1", "done")},
			change:   func(in *rollup.Input) { in.Selected = rollup.Selected{} },
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=True/RolloutStarted: All 1 cluster(s) start rolling out resource snapshot 1",
				"Overridden=True/NoOverrideSpecified: No override rules are configured for the selected resources",
				"WorkSynchronized=True/WorkSynchronized: Work(s) are successfully created or updated in 1 target cluster(s)' namespaces",
				"Applied=True/ApplySucceeded: The selected resources are successfully applied to 1 cluster(s)",
				"Available=True/ResourceAvailable: The selected resources in 1 cluster(s) are available now; but resource snapshot 1 is empty: the selectors found nothing on the hub when it was made",
			},
			wantRows:    []string{done("a@1")},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 1, Available: 1, ByResourceIndex: counts("1", 1)},
		},
		"a cluster was moved and the hub has not acted on it": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "on1", "done", "stale")},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=True/RolloutStarted: All 1 cluster(s) start rolling out resource snapshot 1",
				"Overridden=Unknown/OverriddenPending: There are still 1 cluster(s) in the process of computing overrides: a",
			},
			wantRows:    []string{"a@1 Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=Unknown/OverriddenPending"},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 1, ByResourceIndex: counts("1", 1)},
		},
		"in progress is not failed": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", append([]string{"on1", "Applied=False/ApplyInProgress"}, synced...)...), binding("b", "on1", "done")},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=True/RolloutStarted: All 2 cluster(s) start rolling out resource snapshot 1",
				"Overridden=True/NoOverrideSpecified: No override rules are configured for the selected resources",
				"WorkSynchronized=True/WorkSynchronized: Work(s) are successfully created or updated in 2 target cluster(s)' namespaces",
				"Applied=Unknown/ApplyPending: There are still 1 cluster(s) in the process of applying the selected resources: a",
			},
			wantRows: []string{
				"a@1 Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=True/NoOverrideSpecified WorkSynchronized=True/AllWorkSynced Applied=False/ApplyInProgress",
				done("b@1"),
			},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 2, Available: 1, ByResourceIndex: counts("1", 2)},
		},
		"a failure comes first": {
			strategy: rolling,
			bindings: []placementv1.BindingObject{
				binding("a", "on1", "done"),
				binding("b", append([]string{"on1", "Applied=False/ApplyInProgress"}, synced...)...),
				binding("c", append([]string{"on1", "Applied=False/NotAllWorkHaveBeenApplied", "failed:refused"}, synced...)...),
			},
			change: func(in *rollup.Input) { in.Latest = &rollup.Revision{Index: 1} },
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=True/RolloutStarted: All 3 cluster(s) start rolling out the latest resource",
				"Overridden=True/NoOverrideSpecified: No override rules are configured for the selected resources",
				"WorkSynchronized=True/WorkSynchronized: Work(s) are successfully created or updated in 3 target cluster(s)' namespaces",
				"Applied=False/ApplyFailed: Failed to apply resources to 1 cluster(s), please check the `failedPlacements` status: c",
			},
			wantRows: []string{
				"c@1 Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=True/NoOverrideSpecified WorkSynchronized=True/AllWorkSynced Applied=False/NotAllWorkHaveBeenApplied",
				"b@1 Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=True/NoOverrideSpecified WorkSynchronized=True/AllWorkSynced Applied=False/ApplyInProgress",
				done("a@1"),
			},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 3, Available: 1, Failed: 1, ByResourceIndex: counts("1", 3)},
		},
		"rolling update, a cluster is behind": {
			strategy: rolling,
			bindings: []placementv1.BindingObject{binding("a", "on1", "done"), binding("b", "on0", "done")},
			change:   func(in *rollup.Input) { in.Latest = &rollup.Revision{Index: 1} },
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=False/RolloutNotStartedYet: The rollout is being blocked by the rollout strategy in 1 cluster(s): b; 1 on resource snapshot 1, 1 on resource snapshot 0",
			},
			wantRows:    []string{"b@0 Scheduled=True/Scheduled RolloutStarted=False/RolloutNotStartedYet", done("a@1")},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 2, Available: 1, ByResourceIndex: counts("0", 1, "1", 1)},
		},
		"rolling update, without a snapshot so far": {
			strategy: rolling,
			bindings: []placementv1.BindingObject{binding("a", "scheduled")},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=Unknown/RolloutStartedUnknown: There are still 1 cluster(s) in the process of being given the latest resource: a; there is no resource snapshot so far",
			},
			wantRows:    []string{"a@ Scheduled=True/Scheduled RolloutStarted=Unknown/RolloutStartedUnknown"},
			wantSummary: placementv1.ClusterSummary{Selected: 1},
		},
		"clusters that are not wanted any more do not count": {
			strategy: external,
			bindings: []placementv1.BindingObject{binding("a", "on1", "done"), binding("b", "on1", "done", "unscheduled"), binding("c", "on0", "done", "deleting")},
			wantConditions: []string{
				"Scheduled=True/SchedulingPolicyFulfilled: found all",
				"RolloutStarted=True/RolloutStarted: All 1 cluster(s) start rolling out resource snapshot 1",
				"Overridden=True/NoOverrideSpecified: No override rules are configured for the selected resources",
				"WorkSynchronized=True/WorkSynchronized: Work(s) are successfully created or updated in 1 target cluster(s)' namespaces",
				"Applied=True/ApplySucceeded: The selected resources are successfully applied to 1 cluster(s)",
				"Available=True/ResourceAvailable: The selected resources in 1 cluster(s) are available now",
			},
			wantRows:    []string{done("a@1")},
			wantIndex:   "1",
			wantSummary: placementv1.ClusterSummary{Selected: 1, Available: 1, ByResourceIndex: counts("1", 1)},
		},
		"selectors that are wrong leave no condition that pretends": {
			strategy: rolling,
			bindings: []placementv1.BindingObject{binding("a", "on1", "done")},
			change: func(in *rollup.Input) {
				in.Latest = &rollup.Revision{Index: 1}
				in.Problem = &rollup.Problem{Status: metav1.ConditionFalse, Reason: placementv1.ReasonInvalidResourceSelectors, Message: "The resource selectors are invalid: x"}
			},
			wantConditions: []string{"Scheduled=False/InvalidResourceSelectors: The resource selectors are invalid: x"},
			wantRows:       []string{done("a@1")},
			wantIndex:      "1",
			wantSummary:    placementv1.ClusterSummary{Selected: 1, Available: 1, ByResourceIndex: counts("1", 1)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(tc.strategy)
			in.Bindings = tc.bindings
			if tc.change != nil {
				tc.change(&in)
			}
			status := rollup.Status(in)
			if diff := cmp.Diff(tc.wantConditions, summarize(status.Conditions)); diff != "" {
				t.Errorf("unexpected conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantRows, rows(status)); diff != "" {
				t.Errorf("unexpected rows (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tc.wantSummary, status.ClusterSummary); diff != "" {
				t.Errorf("unexpected summary (-want +got):\n%s", diff)
			}
			if status.ObservedResourceIndex != tc.wantIndex || rollup.ObservedIndex(in) != tc.wantIndex {
				t.Errorf("observed index %q, want %q", status.ObservedResourceIndex, tc.wantIndex)
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != 3 {
					t.Errorf("%s is about generation %d, want 3", c.Type, c.ObservedGeneration)
				}
			}
			// A second look, an hour later, changes nothing.
			*in.Placement.PlacementStatus() = status
			in.Now = in.Now.Add(3600)
			if again := rollup.Status(in); !equality.Semantic.DeepEqual(status, again) {
				t.Errorf("a second look at the same differs (-first +second):\n%s", cmp.Diff(status, again))
			}
		})
	}
}

func done(cluster string) string {
	return cluster + " Scheduled=True/Scheduled RolloutStarted=True/RolloutStarted Overridden=True/NoOverrideSpecified " +
		"WorkSynchronized=True/AllWorkSynced Applied=True/AllWorkHaveBeenApplied Available=True/AllWorkAreAvailable"
}

func counts(pairs ...any) []placementv1.ResourceIndexCount {
	var all []placementv1.ResourceIndexCount
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, placementv1.ResourceIndexCount{ResourceIndex: pairs[i].(string), Clusters: int32(pairs[i+1].(int))})
	}
	return all
}

func TestTransitionTimes(t *testing.T) {
	in := input(external)
	in.Bindings = []placementv1.BindingObject{binding("a", "on1", "done")}
	first := rollup.Status(in)
	*in.Placement.PlacementStatus() = first
	in.Now = later.Add(3600)
	in.Bindings = []placementv1.BindingObject{binding("a", append([]string{"on1", "Applied=False/NotAllWorkHaveBeenApplied"}, synced...)...)}
	second := rollup.Status(in)
	for _, c := range second.Conditions {
		want := later
		if c.Type == placementv1.ClusterPlacementConditionPrefix+placementv1.ConditionApplied {
			want = in.Now
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s: transition at %s, want %s", c.Type, c.LastTransitionTime, want)
		}
	}
}

func TestRemoving(t *testing.T) {
	in := input(external)
	trouble := func(cluster string) string {
		if cluster == "b" {
			return "no heartbeat"
		}
		return ""
	}
	status := rollup.Removing(placement.ClusterKinds(), in.Placement, []string{"a", "b", "c", "d", "e", "f", "g"}, trouble, later)
	want := []string{"Removed=False/RemovalInProgress: Waiting for 7 cluster(s) to remove what was placed there: a, b (no heartbeat), c, d, e, and 2 more"}
	if diff := cmp.Diff(want, summarize(status.Conditions)); diff != "" {
		t.Errorf("unexpected conditions (-want +got):\n%s", diff)
	}
	in.Placement.PlacementSpec().Strategy.DeleteStrategy = &placementv1.DeleteStrategy{PropagationPolicy: placementv1.DeletePropagationPolicyAbandon}
	status = rollup.Removing(placement.ClusterKinds(), in.Placement, []string{"a"}, trouble, later)
	want = []string{"Removed=False/RemovalInProgress: Waiting for 1 cluster(s) to let go of what was placed there: a"}
	if diff := cmp.Diff(want, summarize(status.Conditions)); diff != "" {
		t.Errorf("of one that abandons (-want +got):\n%s", diff)
	}
}

// The row of a cluster has what could not be overridden there, though nothing that follows is told.
func TestFailedOverridesInARow(t *testing.T) {
	t.Parallel()
	in := input(placementv1.RollingUpdateRolloutStrategyType)
	in.Latest = &rollup.Revision{Index: 1}
	in.Bindings = []placementv1.BindingObject{binding("a", "on1", "failed:no such path", "RolloutStarted=True/RolloutStarted", "Overridden=False/OverriddenFailed")}
	status := rollup.Status(in)
	if rows := status.PlacementStatuses; len(rows) != 1 || len(rows[0].FailedPlacements) != 1 || rows[0].FailedPlacements[0].Condition.Message != "no such path" {
		t.Errorf("rows: %+v", rows)
	}
}
