package eviction

import (
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func placed(cluster string, words ...string) placementv1.BindingObject {
	b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster, Generation: 2}}
	b.Spec = placementv1.ResourceBindingSpec{TargetCluster: cluster, State: placementv1.BindingStateBound, ResourceSnapshotName: "web-0-snapshot"}
	say := func(conditionType string, status metav1.ConditionStatus, reason string) {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: conditionType, Status: status, Reason: reason, ObservedGeneration: 2})
	}
	for _, word := range words {
		switch word {
		case "scheduled":
			b.Spec.State, b.Spec.ResourceSnapshotName = placementv1.BindingStateScheduled, ""
		case "unscheduled":
			b.Spec.State = placementv1.BindingStateUnscheduled
		case "deleting":
			b.DeletionTimestamp = ptr.To(metav1.Now())
		case "up":
			say(placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonAllWorkAreAvailable)
		case "progressing":
			say(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonApplyInProgress)
		case "failing":
			say(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied)
		case "stale":
			b.Generation++
		}
	}
	return b
}

func TestDecide(t *testing.T) {
	t.Parallel()
	type bindings = []placementv1.BindingObject
	place := func(kind placementv1.PlacementType) *placementv1.ClusterResourcePlacement {
		p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		if kind != "" {
			p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: kind, NumberOfClusters: ptr.To[int32](3)}
		}
		return p
	}
	deleting := place("")
	deleting.DeletionTimestamp = ptr.To(metav1.Now())
	budget := func(maxUnavailable, minAvailable string) *placementv1.ClusterResourcePlacementDisruptionBudget {
		b := &placementv1.ClusterResourcePlacementDisruptionBudget{}
		if maxUnavailable != "" {
			b.Spec.MaxUnavailable = ptr.To(intstr.Parse(maxUnavailable))
		}
		if minAvailable != "" {
			b.Spec.MinAvailable = ptr.To(intstr.Parse(minAvailable))
		}
		return b
	}
	three := bindings{placed("a", "up"), placed("b", "up"), placed("c", "up")}
	const counts = ", availablePlacements: 3, totalPlacements: 3"
	tests := map[string]struct {
		placement *placementv1.ClusterResourcePlacement
		bindings  bindings
		budget    *placementv1.ClusterResourcePlacementDisruptionBudget
		first     bool
		want      string
		deletes   string
	}{
		"no placement":           {first: true, want: "Valid=False: " + messageNoPlacement},
		"a placement that goes":  {first: true, placement: deleting, bindings: three, want: "Valid=False: " + messageDeleting},
		"clusters by name":       {first: true, placement: place("PickFixed"), bindings: three, want: "Valid=False: " + messagePickFixed},
		"not on the cluster":     {first: true, placement: place(""), bindings: three[1:], want: "Valid=False: " + messageNoBinding},
		"twice on the cluster":   {first: true, placement: place(""), bindings: bindings{placed("a", "deleting"), placed("a")}, want: "Valid=False: " + messageTwoBindings},
		"valid":                  {first: true, placement: place(""), bindings: three, want: "Valid=True: " + messageValid},
		"going already":          {placement: place(""), bindings: bindings{placed("a", "up", "deleting")}, want: "Executed=True: " + messageRemoving},
		"gone after a crash":     {placement: place(""), bindings: three[1:], want: "Executed=True: " + messageRemoving},
		"has nothing yet":        {placement: place(""), bindings: bindings{placed("a", "scheduled")}, want: "Executed=False: " + messageNotThereYet},
		"fails":                  {placement: place(""), bindings: bindings{placed("a", "failing")}, budget: budget("", "1"), want: "Executed=True: " + messageFailed, deletes: "web-a"},
		"no budget":              {placement: place(""), bindings: three, want: "Executed=True: " + messageNoBudget, deletes: "web-a"},
		"given up":               {placement: place(""), bindings: bindings{placed("a", "up", "unscheduled")}, want: "Executed=True: " + messageNoBudget, deletes: "web-a"},
		"an empty budget":        {placement: place(""), bindings: three, budget: budget("", ""), want: "Executed=True: " + messageAllowed + counts, deletes: "web-a"},
		"enough are left":        {placement: place("PickAll"), bindings: three, budget: budget("", "2"), want: "Executed=True: " + messageAllowed + counts, deletes: "web-a"},
		"too few are left":       {placement: place("PickAll"), bindings: three, budget: budget("", "3"), want: "Executed=False: " + messageBlocked + counts},
		"in progress is not up":  {placement: place(""), bindings: bindings{placed("a", "progressing"), three[1]}, budget: budget("", "1"), want: "Executed=False: " + messageBlocked + ", availablePlacements: 1, totalPlacements: 2"},
		"what was up before":     {placement: place(""), bindings: bindings{placed("a", "up"), placed("b", "up", "stale")}, budget: budget("", "1"), want: "Executed=False: " + messageBlocked + ", availablePlacements: 1, totalPlacements: 2"},
		"one is being removed":   {placement: place(""), bindings: bindings{placed("a", "up"), placed("b", "up", "deleting")}, budget: budget("", "1"), want: "Executed=False: " + messageBlocked + ", availablePlacements: 1, totalPlacements: 2"},
		"of all, a maximum":      {placement: place("PickAll"), bindings: three, budget: budget("1", ""), want: "Executed=False: " + messageMisfit + ": a PickAll placement has no number of clusters that maxUnavailable could be counted from; use minAvailable with a number"},
		"of all, a percentage":   {placement: place(""), bindings: three, budget: budget("", "50%"), want: "Executed=False: " + messageMisfit + ": a PickAll placement has no number of clusters that minAvailable could be a percentage of; use a number"},
		"of three, one may go":   {placement: place("PickN"), bindings: three, budget: budget("1", ""), want: "Executed=True: " + messageAllowed + counts, deletes: "web-a"},
		"of three, 1 % may go":   {placement: place("PickN"), bindings: three, budget: budget("1%", ""), want: "Executed=True: " + messageAllowed + counts, deletes: "web-a"},
		"of three, none may go":  {placement: place("PickN"), bindings: three, budget: budget("0%", ""), want: "Executed=False: " + messageBlocked + counts},
		"of three, all must be":  {placement: place("PickN"), bindings: three, budget: budget("", "67%"), want: "Executed=False: " + messageBlocked + counts},
		"of three, half must be": {placement: place("PickN"), bindings: three, budget: budget("", "50%"), want: "Executed=True: " + messageAllowed + counts, deletes: "web-a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &placementv1.ClusterResourcePlacementEviction{}
			e.Spec = placementv1.PlacementEvictionSpec{PlacementName: "web", ClusterName: "a"}
			if !tc.first {
				e.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionValid, Status: metav1.ConditionTrue}}
			}
			in := Input{Eviction: e, Bindings: tc.bindings, Budget: tc.budget}
			if tc.placement != nil {
				in.Placement = tc.placement
			}
			got := Decide(in)
			// What is refused has a remedy after the words that users of the public system know: TestResults has those.
			said := got.Condition.Type + "=" + string(got.Condition.Status) + ": " + got.Condition.Message
			remedy, known := strings.CutPrefix(said, tc.want)
			if refused := got.Condition.Status == metav1.ConditionFalse; !known || strings.HasPrefix(remedy, "; ") != refused || (remedy != "") != refused {
				t.Errorf("outcome %q, want %q", said, tc.want)
			}
			deletes := ""
			if got.Delete != nil {
				deletes = got.Delete.GetName()
			}
			if deletes != tc.deletes {
				t.Errorf("deletes %q, want %q", deletes, tc.deletes)
			}
		})
	}
}

// What operators are told of an eviction: what became of it, by what it was blocked, and the remedy.
func TestResults(t *testing.T) {
	t.Parallel()
	two := []placementv1.BindingObject{placed("a", "up"), placed("b", "up")}
	limits := func(spec placementv1.PlacementDisruptionBudgetSpec) *placementv1.ClusterResourcePlacementDisruptionBudget {
		return &placementv1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec}
	}
	pickN := &placementv1.ClusterResourcePlacement{}
	pickN.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](2)}
	all := &placementv1.ClusterResourcePlacement{}
	deleting := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
	named := &placementv1.ClusterResourcePlacement{}
	named.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType}
	tests := map[string]struct {
		in   Input
		want string
	}{
		"valid":   {in: Input{Placement: all, Bindings: two}, want: ""},
		"invalid": {in: Input{}, want: `Invalid: there is no ClusterResourcePlacement "web": make another eviction with the right placementName`},
		"invalid, being deleted": {
			in:   Input{Placement: deleting, Bindings: two},
			want: `Invalid: ClusterResourcePlacement "web" is being deleted, and takes its objects from cluster "a" without an eviction`,
		},
		"invalid, named": {in: Input{Placement: named, Bindings: two}, want: `Invalid: take cluster "a" out of the clusterNames of ClusterResourcePlacement "web" instead`},
		"invalid, not there": {
			in: Input{Placement: all, Bindings: two[1:]},
			want: `Invalid: ClusterResourcePlacement "web" has nothing in cluster "a": its status has the clusters where it has; ` +
				`make another eviction with the right clusterName`,
		},
		"invalid, twice there": {
			in: Input{Placement: all, Bindings: []placementv1.BindingObject{two[0], two[0]}},
			want: "Invalid: `kubectl get clusterresourcebindings -l kubernetes-fleet.io/parent-CRP=web` lists those of ClusterResourcePlacement \"web\"; " +
				`delete the one to cluster "a" that is not the hub's, and evict again`,
		},
		"allowed": {in: Input{Placement: all, Bindings: two, Budget: limits(placementv1.PlacementDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))})}, want: "Executed"},
		"too few are left": {
			in:   Input{Placement: all, Bindings: two, Budget: limits(placementv1.PlacementDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2))})},
			want: "Blocked minAvailable: ClusterResourcePlacementDisruptionBudget web has minAvailable 2: evict again when more clusters are available, or change it",
		},
		"too many would be down": {
			in:   Input{Placement: pickN, Bindings: two, Budget: limits(placementv1.PlacementDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromString("0%"))})},
			want: "Blocked maxUnavailable: ClusterResourcePlacementDisruptionBudget web has maxUnavailable 0%: evict again when more clusters are available, or change it",
		},
		"cannot be counted": {
			in:   Input{Placement: all, Bindings: two, Budget: limits(placementv1.PlacementDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})},
			want: "Blocked misconfiguredBudget: use minAvailable with a number; correct ClusterResourcePlacementDisruptionBudget web, and evict again",
		},
		"has nothing yet": {
			in:   Input{Placement: all, Bindings: []placementv1.BindingObject{placed("a", "scheduled")}},
			want: "Blocked nothingPlaced: taint the cluster, or change the placement's policy, to keep the placement from it",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.in.Eviction = &placementv1.ClusterResourcePlacementEviction{}
			tc.in.Eviction.Spec = placementv1.PlacementEvictionSpec{PlacementName: "web", ClusterName: "a"}
			if name != "valid" && !strings.HasPrefix(name, "invalid") {
				tc.in.Eviction.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionValid, Status: metav1.ConditionTrue}}
			}
			o := Decide(tc.in)
			got := string(o.Result)
			if o.Block != "" {
				got += " " + string(o.Block)
			}
			if _, remedy, told := strings.Cut(o.Condition.Message, "; "); told {
				got += ": " + remedy
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}
