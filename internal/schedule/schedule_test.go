package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var noon = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func member(joined, healthy metav1.ConditionStatus, reason string) *clusterv1.MemberCluster {
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid", Labels: map[string]string{"a": "b"}}}
	if joined != "" {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: joined, Message: "joined or not"}}
	}
	agent := clusterv1.AgentStatus{Type: clusterv1.MemberAgent, LastReceivedHeartbeat: noon}
	if healthy != "" {
		agent.Conditions = []metav1.Condition{{Type: clusterv1.ConditionHealthy, Status: healthy, Reason: reason, LastTransitionTime: noon, Message: "readyz says no"}}
	}
	m.Status.AgentStatus = []clusterv1.AgentStatus{agent}
	return m
}

func TestObserve(t *testing.T) {
	t.Parallel()
	silent := member("", "", "")
	silent.Status.AgentStatus = nil
	tests := map[string]struct {
		member *clusterv1.MemberCluster
		want   string
	}{
		"never heard of":         {silent, "member agent not online yet"},
		"not joined":             {member("", "True", ""), "member agent not joined yet"},
		"refused":                {member("False", "True", ""), "member agent not joined yet: joined or not"},
		"health not known":       {member("True", "", ""), "health condition from member agent is not available"},
		"healthy":                {member("True", "True", ""), ""},
		"unhealthy":              {member("True", "False", clusterv1.ReasonUnhealthy), "unhealthy since 2026-01-02T12:00:00Z: readyz says no"},
		"another cluster's sign": {member("Unknown", "True", ""), "member agent not joined yet: joined or not"},
		"heartbeats are lost":    {member("Unknown", "Unknown", clusterv1.ReasonHeartbeatLost), "no recent heartbeat signals (last received at 2026-01-02T12:00:00Z)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := Cluster{Name: "c", UID: "uid", Labels: map[string]string{"a": "b"}, Disconnected: tc.want}
			if diff := cmp.Diff(want, Observe(tc.member)); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
	leaving := member("True", "True", "")
	leaving.DeletionTimestamp = &noon
	if c := Observe(leaving); !c.Leaving {
		t.Error("a deleted member is not seen to leave")
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		clusters []Cluster
		holders  []string
		want     []string
	}{
		"nobody": {},
		"all, by name": {
			clusters: []Cluster{{Name: "b"}, {Name: "a"}},
			want: []string{`+a Successfully scheduled resources for placement in "a": picked by scheduling policy`,
				`+b Successfully scheduled resources for placement in "b": picked by scheduling policy`},
		},
		"cut off, new": {
			clusters: []Cluster{{Name: "a", Disconnected: "member agent not online yet"}},
			want:     []string{"-a cluster is not connected to the fleet: member agent not online yet"},
		},
		"cut off, placed before": {
			clusters: []Cluster{{Name: "a", Disconnected: "no recent heartbeat signals"}}, holders: []string{"a"},
			want: []string{`+a Successfully scheduled resources for placement in "a": picked by scheduling policy`},
		},
		"leaving, placed before": {
			clusters: []Cluster{{Name: "a", Leaving: true, Disconnected: "unhealthy"}}, holders: []string{"a"},
			want: []string{"-a cluster has left the fleet"},
		},
		"gone, placed before": {
			clusters: []Cluster{{Name: "z", Leaving: true}}, holders: []string{"a"},
			want: []string{"-a cluster has left the fleet", "-z cluster has left the fleet"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Decide(Request{Holders: holding(tc.holders...)}, NewFleet(tc.clusters))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range r.Listed() {
				sign := "-"
				if d.Selected {
					sign = "+"
				}
				got = append(got, sign+d.ClusterName+" "+d.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Decide(Request{Policy: &placementv1.PlacementPolicy{PlacementType: "PickMost"}}, NewFleet(nil)); err == nil {
		t.Error("an unknown placement type is no error")
	}
}

// holding are clusters that were given the placement.
func holding(clusters ...string) map[string]Holder {
	holders := map[string]Holder{}
	for _, c := range clusters {
		holders[c] = Holder{State: placementv1.BindingStateBound, Current: true, Decision: selected(c)}
	}
	return holders
}

func TestListedIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 15, 990, 3000} {
		var clusters []Cluster
		for i := range n {
			clusters = append(clusters, Cluster{Name: fmt.Sprint("in", i)})
		}
		for i := range 50 {
			clusters = append(clusters, Cluster{Name: fmt.Sprint("out", i), Leaving: true})
		}
		r, err := Decide(Request{}, NewFleet(clusters))
		if err != nil {
			t.Fatal(err)
		}
		listed := r.Listed()
		if want := min(n+maxUnselected, MaxDecisions); len(listed) != want {
			t.Errorf("%d chosen, 50 not: %d are listed, want %d", n, len(listed), want)
		}
		if want := fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", n); r.Message() != want {
			t.Errorf("message %q, want %q", r.Message(), want)
		}
	}
}

var owner = Owner{Key: placement.Key{Name: "app"}, UID: "uid-app", PolicySnapshot: "app-1", Created: metav1.NewTime(time.Unix(1000, 0))}

func newBinding() placementv1.BindingObject { return &placementv1.ClusterResourceBinding{} }

// existing is a binding of the owner to a cluster with UID uid-<cluster>.
func existing(cluster string, state placementv1.BindingState, change func(*placementv1.ClusterResourceBinding)) placementv1.BindingObject {
	b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: placement.BindingName(owner.Key, cluster), Finalizers: []string{placementv1.FinalizerWorkCleanup}, CreationTimestamp: owner.Created,
		Labels: map[string]string{placementv1.LabelParentPlacement: "app"},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: "uid-app", placementv1.AnnotationClusterUID: "uid-" + cluster,
			placementv1.AnnotationUpdateRun: "run-1"},
	}}
	b.Spec = placementv1.ResourceBindingSpec{State: state, TargetCluster: cluster, SchedulingPolicySnapshotName: "app-1", ClusterDecision: selected(cluster)}
	if state != placementv1.BindingStateScheduled {
		b.Spec.ResourceSnapshotName = "app-0-snapshot"
	}
	if change != nil {
		change(b)
	}
	return b
}

func selected(cluster string) placementv1.ClusterDecision {
	return placementv1.ClusterDecision{ClusterName: cluster, Selected: true,
		Reason: fmt.Sprintf("Successfully scheduled resources for placement in %q: picked by scheduling policy", cluster)}
}

// Bindings that were given up are told apart by whether their cluster is there: those to clusters that are gone can go.
func TestGone(t *testing.T) {
	t.Parallel()
	given := func(c string) placementv1.BindingObject { return existing(c, placementv1.BindingStateUnscheduled, nil) }
	bindings := []placementv1.BindingObject{given("a"), given("b"), existing("c", placementv1.BindingStateBound, nil),
		existing("d", placementv1.BindingStateUnscheduled, func(b *placementv1.ClusterResourceBinding) {
			b.Annotations[placementv1.AnnotationPlacementUID] = "uid-earlier"
		})}
	changes := Bind(owner, NewFleet([]Cluster{{Name: "a", Leaving: true}}), Result{}, bindings, newBinding)
	var gone []string
	for _, b := range changes.Gone {
		gone = append(gone, b.BindingSpec().TargetCluster)
	}
	if diff := cmp.Diff([]string{"b"}, gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	const scheduled, bound, unscheduled = placementv1.BindingStateScheduled, placementv1.BindingStateBound, placementv1.BindingStateUnscheduled
	type crb = placementv1.ClusterResourceBinding
	here, leaving := []Cluster{{Name: "c", UID: "uid-c"}}, []Cluster{{Name: "c", UID: "uid-c", Leaving: true}}
	left := placementv1.ClusterDecision{ClusterName: "c", Reason: "cluster has left the fleet"}
	tests := map[string]struct {
		clusters    []Cluster
		bindings    []placementv1.BindingObject
		create      []placementv1.BindingObject
		update      []placementv1.BindingObject
		wantWaiting []string
	}{
		"new": {
			clusters: here,
			create: []placementv1.BindingObject{existing("c", scheduled, func(b *crb) {
				delete(b.Annotations, placementv1.AnnotationUpdateRun)
				b.CreationTimestamp = metav1.Time{}
			})},
		},
		"nothing to do": {clusters: here, bindings: []placementv1.BindingObject{existing("c", bound, nil)}},
		"another policy": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) { b.Spec.SchedulingPolicySnapshotName = "app-0" })},
			update:   []placementv1.BindingObject{existing("c", bound, nil)},
		},
		"lost its finalizer": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) { b.Finalizers = nil })},
			update:   []placementv1.BindingObject{existing("c", bound, nil)},
		},
		"lost its annotations": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) { b.Annotations = nil })},
			update: []placementv1.BindingObject{existing("c", bound, func(b *crb) {
				delete(b.Annotations, placementv1.AnnotationUpdateRun)
			})},
		},
		"lost its annotations, and its cluster is leaving": {
			clusters: leaving,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) { b.Annotations = nil })},
			update: []placementv1.BindingObject{existing("c", unscheduled, func(b *crb) {
				b.Annotations = map[string]string{placementv1.AnnotationPlacementUID: "uid-app", placementv1.AnnotationPreviousBindingState: "Bound"}
				b.Spec.ClusterDecision = left
			})},
		},
		"lost its annotations before the placement was made": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) {
				b.Annotations = nil
				b.CreationTimestamp = metav1.NewTime(owner.Created.Add(-time.Second))
			})},
			wantWaiting: []string{`binding "` + placement.BindingName(owner.Key, "c") + `" of an earlier placement of this name is still there`},
		},
		"lost its label": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) { b.Labels = nil })},
			update:   []placementv1.BindingObject{existing("c", bound, nil)},
		},
		"leaving": {
			clusters: leaving,
			bindings: []placementv1.BindingObject{existing("c", bound, nil)},
			update: []placementv1.BindingObject{existing("c", unscheduled, func(b *crb) {
				b.Annotations[placementv1.AnnotationPreviousBindingState] = "Bound"
				b.Spec.ClusterDecision = left
			})},
		},
		"gone": {
			bindings: []placementv1.BindingObject{existing("c", scheduled, nil)},
			update: []placementv1.BindingObject{existing("c", unscheduled, func(b *crb) {
				b.Annotations[placementv1.AnnotationPreviousBindingState] = "Scheduled"
				b.Spec.ClusterDecision = left
				b.Spec.ResourceSnapshotName = ""
			})},
		},
		"given up before": {
			clusters: leaving,
			bindings: []placementv1.BindingObject{existing("c", unscheduled, nil)},
		},
		"picked again": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", unscheduled, func(b *crb) {
				b.Annotations[placementv1.AnnotationPreviousBindingState] = "Bound"
				b.Spec.ClusterDecision = left
			})},
			update: []placementv1.BindingObject{existing("c", bound, nil)},
		},
		"picked again before it was given anything": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", unscheduled, func(b *crb) {
				b.Annotations[placementv1.AnnotationPreviousBindingState] = "Scheduled"
				b.Spec.ResourceSnapshotName = ""
			})},
			update: []placementv1.BindingObject{existing("c", scheduled, nil)},
		},
		"another cluster of its name": {
			clusters: []Cluster{{Name: "c", UID: "uid-another"}},
			bindings: []placementv1.BindingObject{existing("c", bound, nil)},
			update: []placementv1.BindingObject{existing("c", scheduled, func(b *crb) {
				b.Annotations[placementv1.AnnotationClusterUID] = "uid-another"
			})},
		},
		"made by a hub that noted no cluster": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) { delete(b.Annotations, placementv1.AnnotationClusterUID) })},
			update:   []placementv1.BindingObject{existing("c", bound, nil)},
		},
		"being deleted": {
			clusters:    here,
			bindings:    []placementv1.BindingObject{existing("c", bound, func(b *crb) { b.DeletionTimestamp = &noon })},
			wantWaiting: []string{fmt.Sprintf("binding %q is still being deleted", placement.BindingName(owner.Key, "c"))},
		},
		"of an earlier placement": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) {
				b.Annotations[placementv1.AnnotationPlacementUID] = "uid-earlier"
			})},
			wantWaiting: []string{fmt.Sprintf("binding %q of an earlier placement of this name is still there", placement.BindingName(owner.Key, "c"))},
		},
		"of an earlier placement, to a cluster that left": {
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) {
				b.Annotations[placementv1.AnnotationPlacementUID] = "uid-earlier"
			})},
		},
		"a second one to the same cluster": {
			clusters: here,
			bindings: []placementv1.BindingObject{existing("c", bound, func(b *crb) { b.Name = "a-second" }), existing("c", bound, nil)},
			update: []placementv1.BindingObject{existing("c", unscheduled, func(b *crb) {
				b.Name = "a-second"
				b.Annotations[placementv1.AnnotationPreviousBindingState] = "Bound"
				b.Spec.ClusterDecision = left
				b.Spec.ClusterDecision.Reason = "another binding stands for the cluster"
			})},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet := NewFleet(tc.clusters)
			before := deepCopies(tc.bindings)
			r, err := Decide(Request{Holders: owner.Holders(fleet, tc.bindings)}, fleet)
			if err != nil {
				t.Fatal(err)
			}
			got := Bind(owner, fleet, r, tc.bindings, newBinding)
			if diff := cmp.Diff(Changes{Create: tc.create, Update: tc.update, Waiting: tc.wantWaiting}, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.bindings); diff != "" {
				t.Errorf("the bindings themselves were changed:\n%s", diff)
			}
		})
	}
}

// TestReplaced: a cluster that is replaced by one whose binding is still being deleted keeps what it has until that has one.
func TestReplaced(t *testing.T) {
	t.Parallel()
	fleet := NewFleet([]Cluster{{Name: "a", UID: "uid-a"}, {Name: "b", UID: "uid-b"}, {Name: "c", UID: "uid-c"}})
	available := func(b *placementv1.ClusterResourceBinding) {
		b.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionAvailable, Status: metav1.ConditionTrue}}
	}
	deleted := existing("b", placementv1.BindingStateUnscheduled, func(b *placementv1.ClusterResourceBinding) { b.DeletionTimestamp = &noon })
	request := Request{Policy: &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType, ClusterNames: []string{"b"}}}
	tests := map[string]struct {
		bindings       []placementv1.BindingObject
		create, giveUp []string
		waiting        []string
	}{
		"while it is being deleted": {
			bindings: []placementv1.BindingObject{existing("a", placementv1.BindingStateBound, nil), deleted},
			waiting:  []string{`binding "` + deleted.GetName() + `" is still being deleted`, `cluster "a" keeps what it has until then`},
		},
		"one for one, and one that is available": {
			bindings: []placementv1.BindingObject{existing("a", placementv1.BindingStateBound, nil), deleted, existing("c", placementv1.BindingStateBound, available)},
			giveUp:   []string{"a"},
			waiting:  []string{`binding "` + deleted.GetName() + `" is still being deleted`, `cluster "c" keeps what it has until then`},
		},
		"one that has nothing to keep": {
			bindings: []placementv1.BindingObject{existing("a", placementv1.BindingStateScheduled, nil), deleted},
			giveUp:   []string{"a"},
			waiting:  []string{`binding "` + deleted.GetName() + `" is still being deleted`},
		},
		"when it is gone": {
			bindings: []placementv1.BindingObject{existing("a", placementv1.BindingStateBound, nil)},
			create:   []string{"b"}, giveUp: []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request
			r.Holders = owner.Holders(fleet, tc.bindings)
			result, err := Decide(r, fleet)
			if err != nil {
				t.Fatal(err)
			}
			changes := Bind(owner, fleet, result, tc.bindings, newBinding)
			names := func(bindings []placementv1.BindingObject) (clusters []string) {
				for _, b := range bindings {
					clusters = append(clusters, b.BindingSpec().TargetCluster)
				}
				return clusters
			}
			got := [][]string{names(changes.Create), names(changes.Update), changes.Waiting}
			if diff := cmp.Diff([][]string{tc.create, tc.giveUp, tc.waiting}, got); diff != "" {
				t.Errorf("created, given up, waiting for (-want +got):\n%s", diff)
			}
		})
	}
}

func deepCopies(bindings []placementv1.BindingObject) []placementv1.BindingObject {
	var copies []placementv1.BindingObject
	for _, b := range bindings {
		copies = append(copies, b.DeepCopyObject().(placementv1.BindingObject)) //nolint:forcetypeassert // a test
	}
	return copies
}

// Whatever is there: what belongs to others or is being deleted is not touched, what is decided is so once it is carried
// out, the order of things does not matter, and a cluster that is merely cut off keeps what it holds.
func TestBindProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var clusters []Cluster
		var bindings []placementv1.BindingObject
		for i := range rapid.IntRange(0, 6).Draw(t, "clusters") {
			name := fmt.Sprint("c", i)
			if rapid.Bool().Draw(t, "exists") {
				clusters = append(clusters, Cluster{
					Name: name, UID: rapid.SampledFrom([]types.UID{types.UID("uid-" + name), "uid-another"}).Draw(t, "uid"),
					Leaving:      rapid.Bool().Draw(t, "leaving"),
					Disconnected: rapid.SampledFrom([]string{"", "unhealthy"}).Draw(t, "disconnected"),
				})
			}
			if rapid.Bool().Draw(t, "bound") {
				bindings = append(bindings, drawBinding(t, name))
			}
		}
		fleet := NewFleet(clusters)
		r, changes := decideAndBind(t, fleet, bindings)
		for _, c := range changes.Update {
			b := bindings[slices.IndexFunc(bindings, func(b placementv1.BindingObject) bool { return b.GetName() == c.GetName() })]
			if !owner.owns(b) || !b.GetDeletionTimestamp().IsZero() {
				t.Fatalf("binding %s is not ours to change", b.GetName())
			}
			seen := fleet.Cluster(b.BindingSpec().TargetCluster)
			if c.BindingSpec().State == placementv1.BindingStateUnscheduled && seen != nil && !seen.Leaving && seen.UID != "uid-another" {
				t.Fatalf("cluster %s was given up though it is a member", b.BindingSpec().TargetCluster)
			}
		}
		slices.Reverse(bindings)
		if _, again := decideAndBind(t, NewFleet(clusters), bindings); len(again.Create) != len(changes.Create) || len(again.Update) != len(changes.Update) {
			t.Fatalf("the order of bindings matters: %v, %v", changes, again)
		}
		after := carryOut(bindings, changes)
		again, left := decideAndBind(t, fleet, after)
		if len(left.Create)+len(left.Update) > 0 {
			t.Fatalf("a second pass has to change %v, create %v", left.Update, left.Create)
		}
		if diff := cmp.Diff(r.Selected, again.Selected); diff != "" {
			t.Fatalf("a second pass decides otherwise:\n%s", diff)
		}
		held := 0
		for _, h := range owner.Holders(fleet, after) {
			held += number(!h.Removing && h.State != placementv1.BindingStateUnscheduled)
		}
		if len(left.Waiting) == 0 && held != len(r.Selected) {
			t.Fatalf("%d clusters are chosen, %d hold the placement", len(r.Selected), held)
		}
	})
}

func drawBinding(t *rapid.T, cluster string) placementv1.BindingObject {
	state := rapid.SampledFrom([]placementv1.BindingState{placementv1.BindingStateScheduled, placementv1.BindingStateBound, placementv1.BindingStateUnscheduled}).Draw(t, "state")
	return existing(cluster, state, func(b *placementv1.ClusterResourceBinding) {
		if rapid.Bool().Draw(t, "foreign") {
			b.Annotations[placementv1.AnnotationPlacementUID] = "uid-earlier"
		}
		if rapid.Bool().Draw(t, "deleting") {
			b.DeletionTimestamp = &noon
		}
	})
}

func decideAndBind(t *rapid.T, fleet Fleet, bindings []placementv1.BindingObject) (Result, Changes) {
	r, err := Decide(Request{Holders: owner.Holders(fleet, bindings)}, fleet)
	if err != nil {
		t.Fatal(err)
	}
	return r, Bind(owner, fleet, r, bindings, newBinding)
}

func carryOut(bindings []placementv1.BindingObject, changes Changes) []placementv1.BindingObject {
	after := slices.Clone(changes.Create)
	for _, b := range bindings {
		if i := slices.IndexFunc(changes.Update, func(c placementv1.BindingObject) bool { return c.GetName() == b.GetName() }); i >= 0 {
			b = changes.Update[i]
		}
		after = append(after, b)
	}
	return after
}
