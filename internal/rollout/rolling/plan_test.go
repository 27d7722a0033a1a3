package rolling

import (
	"fmt"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// binding makes a binding of a cluster from words: a state, a snapshot such as "v1", a health, "deleting", or "moved" at noon.
// Its status is as the hub writes it.
func binding(cluster string, words ...string) placementv1.BindingObject {
	b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster, Generation: 2, Annotations: map[string]string{}}}
	b.Spec.TargetCluster, b.Spec.State = cluster, placementv1.BindingStateBound
	say := func(conditionType, status, reason string) {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(noon),
		})
	}
	for _, word := range words {
		if word != "unknown" && b.Spec.ResourceSnapshotName != "" && len(b.Status.Conditions) == 0 {
			say(placementv1.ConditionRolloutStarted, "True", placementv1.ReasonRolloutStarted)
		}
		switch word {
		case "scheduled":
			b.Spec.State = placementv1.BindingStateScheduled
		case "unscheduled":
			b.Spec.State = placementv1.BindingStateUnscheduled
		case "deleting":
			b.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		case "moved":
			b.Annotations[placementv1.AnnotationUpdateStarted] = noon.Format(time.RFC3339)
		case "available":
			say(placementv1.ConditionAvailable, "True", placementv1.ReasonAllWorkAreAvailable)
		case "untracked":
			say(placementv1.ConditionAvailable, "True", placementv1.ReasonNotAllWorkAreAvailabilityTrackable)
		case "progressing":
			say(placementv1.ConditionAvailable, "False", placementv1.ReasonNotAllWorkAreAvailable)
		case "applying":
			say(placementv1.ConditionApplied, "False", placementv1.ReasonApplyInProgress)
		case "failing":
			say(placementv1.ConditionApplied, "False", placementv1.ReasonNotAllWorkHaveBeenApplied)
		case "unknown":
			b.Status.Conditions, b.Generation = nil, 3
			say(placementv1.ConditionAvailable, "True", placementv1.ReasonAllWorkAreAvailable)
		default:
			b.Spec.ResourceSnapshotName = word
		}
	}
	return b
}

func budget(maxUnavailable, maxSurge string) *placementv1.RollingUpdateConfig {
	return &placementv1.RollingUpdateConfig{
		MaxUnavailable: ptr.To(intstr.Parse(maxUnavailable)), MaxSurge: ptr.To(intstr.Parse(maxSurge)), UnavailablePeriodSeconds: ptr.To[int32](60),
	}
}

func to(snapshot string) func(placementv1.BindingObject) Wanted {
	return func(placementv1.BindingObject) Wanted { return Wanted{Snapshot: snapshot} }
}

// lines writes a plan as lines.
func lines(p Plan) []string {
	var all []string
	for _, s := range p.Steps {
		all = append(all, fmt.Sprintf("%s %s: %s", strings.ToLower(string(s.Action)), s.Cluster, s.Reason))
	}
	for _, s := range p.Waits {
		all = append(all, fmt.Sprintf("wait %s, to %s: %s", s.Cluster, strings.ToLower(string(s.Action)), s.Reason))
	}
	if p.RequeueAfter != 0 {
		all = append(all, "again in "+p.RequeueAfter.String())
	}
	return all
}

// TestPlan has what users are told, word for word.
func TestPlan(t *testing.T) {
	t.Parallel()
	const newer = "the cluster is on v1, and v2 is newer"
	type bindings = []placementv1.BindingObject
	four := func(words ...string) bindings {
		all := bindings{binding("a", words...)}
		for _, c := range []string{"b", "c", "d"} {
			all = append(all, binding(c, "v1", "available"))
		}
		return all
	}
	oneOfFour := "at most 1 of 4 clusters may be unavailable at once (maxUnavailable 25%), and 1 is: a "
	rest := "; the update goes on when fewer are, or when maxUnavailable is raised"
	waits := func(who string, clusters ...string) []string {
		var all []string
		for _, c := range clusters {
			all = append(all, "wait "+c+", to move: "+newer+"; "+oneOfFour+"("+who+")"+rest)
		}
		return all
	}
	tests := map[string]struct {
		config   *placementv1.RollingUpdateConfig
		latest   string
		bindings bindings
		now      time.Duration
		want     []string
	}{
		"nothing":                     {latest: "v2"},
		"up to date":                  {latest: "v1", bindings: four("v1", "available")},
		"no snapshot yet":             {bindings: bindings{binding("a", "scheduled"), binding("b", "v1", "available")}},
		"no snapshot, one not wanted": {config: budget("1", "0"), bindings: bindings{binding("a", "v1", "available", "unscheduled")}, want: []string{"remove a: the cluster is no longer chosen"}},
		"the first of four":           {latest: "v2", bindings: four("v1", "available"), want: append([]string{"move a: " + newer}, waits("being updated", "b", "c", "d")...)},
		"all at once":                 {config: budget("100%", "0"), latest: "v2", bindings: four("v1", "available"), want: []string{"move a: " + newer, "move b: " + newer, "move c: " + newer, "move d: " + newer}},
		"two at once":                 {config: budget("2", "0"), latest: "v1", bindings: four("v0", "available"), want: []string{"move a: the cluster is on v0, and v1 is newer"}},
		"one is on its way":           {latest: "v2", bindings: four("v2", "applying", "moved"), want: waits("being updated since 2026-01-01T12:00:00Z", "b", "c", "d")},
		"one is not reported on":      {latest: "v2", bindings: four("v2", "unknown"), want: waits("not reported on yet", "b", "c", "d")},
		"one fails":                   {latest: "v2", bindings: four("v2", "failing"), want: waits("applying failed there and is tried again", "b", "c", "d")},
		"one fails on what is old":    {latest: "v2", bindings: four("v1", "failing"), want: append([]string{"move a: " + newer}, waits("being updated", "b", "c", "d")...)},
		"one is on its way to what is old": {latest: "v3", bindings: bindings{binding("a", "v2", "progressing"), binding("b", "v3", "available")}, want: []string{
			"move a: the cluster is on v2, and v3 is newer"}},
		"unavailable by themselves, more than the budget": {config: budget("1", "0"), latest: "v2", bindings: bindings{binding("a", "v1", "progressing"), binding("b", "v1", "progressing")}, want: []string{
			"move a: " + newer,
			"wait b, to move: " + newer + "; at most 1 of 2 clusters may be unavailable at once (maxUnavailable 1), and 2 are: a (being updated), b (not available)" + rest}},
		"all fail": {config: budget("1", "0"), latest: "v2", bindings: bindings{binding("a", "v1", "failing"), binding("b", "v1", "failing")}, want: []string{"move a: " + newer, "move b: " + newer}},
		"may be available for all that is known": {config: budget("100%", "0"), latest: "v2", bindings: bindings{binding("a", "v1", "unknown")}, want: []string{
			"wait a, to move: the hub has yet to tell how the cluster fares with what it has"}},
		"nothing may be unavailable": {config: budget("0", "1"), latest: "v2", bindings: bindings{binding("a", "v1", "available")}, want: []string{
			"wait a, to move: " + newer + "; maxUnavailable is 0, so that no cluster may become unavailable; raise it to let the update go on"}},
		"nothing may be unavailable, and one is": {config: budget("0%", "1"), latest: "v2", bindings: bindings{binding("a", "v1", "progressing"), binding("b", "v2", "available")}, want: []string{"move a: " + newer}},
		"new ones":                               {latest: "v2", bindings: bindings{binding("a", "scheduled"), binding("b", "scheduled"), binding("c", "v2", "available")}, want: []string{"bind a: the cluster was chosen; v2 is its first snapshot", "bind b: the cluster was chosen; v2 is its first snapshot"}},
		"new ones, one never up": {latest: "v2", bindings: append(four("v1", "available"), binding("e", "scheduled")), want: []string{"move a: " + newer, "bind e: the cluster was chosen; v2 is its first snapshot",
			"wait b, to move: " + newer + "; at most 2 of 5 clusters may be unavailable at once (maxUnavailable 25%), and 2 are: a (being updated), e (being updated)" + rest,
			"wait c, to move: " + newer + "; at most 2 of 5 clusters may be unavailable at once (maxUnavailable 25%), and 2 are: a (being updated), e (being updated)" + rest,
			"wait d, to move: " + newer + "; at most 2 of 5 clusters may be unavailable at once (maxUnavailable 25%), and 2 are: a (being updated), e (being updated)" + rest}},
		"one in place of another, first the new": {config: budget("0", "1"), latest: "v1", bindings: bindings{binding("a", "v1", "available", "unscheduled"), binding("b", "scheduled")}, want: []string{
			"bind b: the cluster was chosen; v1 is its first snapshot",
			"wait a, to remove: the cluster keeps what it has until others have it in its place: maxUnavailable is 0, so that no cluster may become unavailable; raise it to let the update go on"}},
		"one in place of another, the new is up": {config: budget("0", "1"), latest: "v1", bindings: bindings{binding("a", "v1", "available", "unscheduled"), binding("b", "v1", "available")}, want: []string{"remove a: the cluster is no longer chosen"}},
		"one in place of another, first the old": {config: budget("1", "0"), latest: "v1", bindings: bindings{binding("a", "v1", "available", "unscheduled"), binding("b", "scheduled")}, want: []string{
			"remove a: the cluster is no longer chosen", "bind b: the cluster was chosen; v1 is its first snapshot"}},
		"neither may go first": {config: budget("0", "0"), latest: "v1", bindings: bindings{binding("a", "v1", "available", "unscheduled"), binding("b", "scheduled")}, want: []string{
			"wait a, to remove: the cluster keeps what it has until others have it in its place: maxUnavailable is 0, so that no cluster may become unavailable; raise it to let the update go on",
			"wait b, to bind: at most 1 clusters may hold the objects at once (1 wanted, and maxSurge 0), and 1 do; the cluster is given them when one that is no longer chosen lets go of them (a (available)), or when maxSurge is raised"}},
		"what is not wanted and not up goes at once": {config: budget("0", "0"), latest: "v1", bindings: bindings{
			binding("a", "v1", "progressing", "unscheduled"), binding("b", "v1", "failing", "unscheduled"), binding("c", "unscheduled")}, want: []string{
			"remove a: the cluster is no longer chosen", "remove b: the cluster is no longer chosen", "remove c: the cluster is no longer chosen"}},
		"not wanted, and nobody knows how it is": {latest: "v1", bindings: bindings{binding("a", "v1", "unknown", "unscheduled")}, want: []string{
			"wait a, to remove: the hub has yet to tell how the cluster fares with what it has"}},
		"shrinks to nothing": {latest: "v1", config: budget("0", "0"), bindings: bindings{binding("a", "v1", "available", "unscheduled"), binding("b", "v1", "applying", "unscheduled")}, want: []string{"remove a: the cluster is no longer chosen", "remove b: the cluster is no longer chosen"}},
		"removals come first": {latest: "v2", config: budget("1", "0"), bindings: bindings{binding("a", "v1", "available"), binding("b", "v1", "available"), binding("z", "v1", "available", "unscheduled")}, want: []string{
			"remove z: the cluster is no longer chosen", "move a: " + newer,
			"wait b, to move: " + newer + "; at most 1 of 2 clusters may be unavailable at once (maxUnavailable 1), and 1 is: a (being updated)" + rest}},
		"being removed":        {latest: "v2", bindings: four("v1", "available", "deleting"), want: waits("being removed since 2026-01-01T12:00:00Z", "b", "c", "d")},
		"given up and removed": {latest: "v1", bindings: four("v1", "available", "unscheduled", "deleting")},
		"nothing tells, yet":   {latest: "v2", bindings: four("v2", "untracked"), now: 20 * time.Second, want: append(waits("counts as available from 2026-01-01T12:01:00Z on, since nothing tells whether it is", "b", "c", "d"), "again in 40s")},
		"nothing tells, for long": {latest: "v2", bindings: four("v2", "untracked"), now: time.Minute, want: []string{"move b: " + newer,
			strings.ReplaceAll(waits("being updated", "c")[0], ": a (", ": b ("), strings.ReplaceAll(waits("being updated", "d")[0], ": a (", ": b (")}},
		"nothing waits, nothing to look at again": {latest: "v2", bindings: bindings{binding("a", "v2", "untracked")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Input{Config: tc.config, Bindings: tc.bindings, Want: to(tc.latest), Now: noon.Add(tc.now)}
			if diff := cmp.Diff(tc.want, lines(Make(in))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// What was taken up so fast that nobody saw it unavailable counts from when it was given.
func TestUntrackedSince(t *testing.T) {
	t.Parallel()
	b := binding("a", "v2", "untracked")
	b.GetAnnotations()[placementv1.AnnotationUpdateStarted] = noon.Add(time.Hour).Format(time.RFC3339)
	in := Input{Config: budget("1", "0"), Bindings: []placementv1.BindingObject{b, binding("b", "v1", "available")}, Want: to("v2"), Now: noon.Add(time.Hour + 10*time.Second)}
	if got := Make(in); len(got.Steps) > 0 || got.RequeueAfter != 50*time.Second {
		t.Errorf("got %v, want it to look again in 50s", lines(got))
	}
}

// A binding that was deleted a moment ago takes up its place, though the cache does not show it.
func TestDeletedAMomentAgo(t *testing.T) {
	t.Parallel()
	in := Input{Config: budget("1", "0"), Want: to("v2"), Now: noon, Bindings: []placementv1.BindingObject{binding("a", "v1", "available"), binding("b", "v1", "available")}}
	in.Deleted = func(b placementv1.BindingObject) bool { return b.GetName() == "web-a" }
	want := []string{"wait b, to move: the cluster is on v1, and v2 is newer; at most 1 of 2 clusters may be unavailable at once (maxUnavailable 1), and 1 is: a (being removed); the update goes on when fewer are, or when maxUnavailable is raised"}
	if diff := cmp.Diff(want, lines(Make(in))); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string][2]int{ // of 10 and of 3 clusters
		"0": {0, 0}, "1": {1, 1}, "1000000": {1000000, 1000000}, "0%": {0, 0}, "1%": {1, 1}, "25%": {3, 1}, "34%": {4, 2}, "100%": {10, 3}, "-1": {0, 0}, "half": {0, 0},
	} {
		for i, clusters := range []int{10, 3} {
			value := intstr.Parse(limit)
			if got, _ := Scale(&value, "", clusters); got != want[i] {
				t.Errorf("%s of %d: got %d, want %d", limit, clusters, got, want[i])
			}
			text := intstr.FromString(limit)
			if got, _ := Scale(&text, "", clusters); got != want[i] {
				t.Errorf("%q of %d: got %d, want %d", limit, clusters, got, want[i])
			}
		}
	}
	if got, _ := Scale(nil, "25%", 8); got != 2 {
		t.Errorf("the default of 8: got %d", got)
	}
}

// Edited overrides go by the same budget as a new snapshot; where nobody knows them, they make no difference.
func TestOverridesKeepToTheBudget(t *testing.T) {
	t.Parallel()
	edited := override.Applied{AppliedOverrides: placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{"cro-1"}}}
	in := Input{Config: budget("1", "0"), Now: noon, Bindings: []placementv1.BindingObject{binding("a", "v1", "available"), binding("b", "v1", "available")}}
	in.Want = func(placementv1.BindingObject) Wanted { return Wanted{Snapshot: "v1", Overrides: &edited} }
	plan := Make(in)
	if len(plan.Steps) != 1 || plan.Steps[0].Cluster != "a" || len(plan.Waits) != 1 || plan.Waits[0].Cluster != "b" {
		t.Errorf("got %v, want one cluster to move and the other to wait", lines(plan))
	}
	b := in.Bindings[0]
	in.Want(b).Give(b)
	if differs := in.Want(b).Differs(b); differs != "" {
		t.Errorf("what was given differs: %s", differs)
	}
	in.Want = to("v1")
	if plan := Make(in); len(plan.Steps)+len(plan.Waits) > 0 {
		t.Errorf("got %v, want nothing", lines(plan))
	}
}

// An edit of how clusters are written, or of what they report back, goes by the budget, too.
func TestStrategiesKeepToTheBudget(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Wanted{
		"apply strategy": {Snapshot: "v1", ApplyStrategy: &placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff}},
		"report back": {Snapshot: "v1", ReportBackStrategy: &placementv1.ReportBackStrategy{
			Type: placementv1.ReportBackStrategyTypeMirror, Destination: placementv1.ReportBackDestinationWorkAPI,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Input{Config: budget("1", "0"), Now: noon, Bindings: []placementv1.BindingObject{binding("a", "v1", "available"), binding("b", "v1", "available")}}
			in.Want = func(placementv1.BindingObject) Wanted { return want }
			plan := Make(in)
			if len(plan.Steps) != 1 || len(plan.Waits) != 1 {
				t.Errorf("got %v, want one cluster to move and the other to wait", lines(plan))
			}
			b := in.Bindings[0]
			want.Give(b)
			if differs := want.Differs(b); differs != "" {
				t.Errorf("what was given differs: %s", differs)
			}
			if differs := (Wanted{Snapshot: "v1"}).Differs(b); differs == "" {
				t.Error("to take it back is no change")
			}
		})
	}
}
