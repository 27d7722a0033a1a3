package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	scheduled   = placementv1.BindingStateScheduled
	bound       = placementv1.BindingStateBound
	unscheduled = placementv1.BindingStateUnscheduled
)

func TestChoosesMembers(t *testing.T) {
	f := newFixture(t, "a", "b")
	f.Make(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster("new")}})
	t.Cleanup(func() { f.Erase(f.member("new")) })
	s := f.awaitScheduled(0, 2)
	framework.Await(t, f, s, "lists who was not chosen", func(s *placementv1.ClusterSchedulingPolicySnapshot) bool {
		return len(s.Status.ClusterDecisions) == 3
	})
	var decisions []string
	for _, d := range s.Status.ClusterDecisions {
		decisions = append(decisions, fmt.Sprint(d.ClusterName, " ", d.Selected, " ", d.Reason))
	}
	want := []string{
		fmt.Sprintf("%s true Successfully scheduled resources for placement in %q: picked by scheduling policy", f.Cluster("a"), f.Cluster("a")),
		fmt.Sprintf("%s true Successfully scheduled resources for placement in %q: picked by scheduling policy", f.Cluster("b"), f.Cluster("b")),
		f.Cluster("new") + " false cluster is not connected to the fleet: member agent not online yet",
	}
	if diff := cmp.Diff(want, decisions); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	c := meta.FindStatusCondition(s.Status.Conditions, placementv1.ConditionScheduled)
	if want := "found all cluster needed as specified by the scheduling policy, found 2 cluster(s)"; c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	for _, short := range []string{"a", "b"} {
		b := f.awaitBinding(short, scheduled)
		if b.Spec.TargetCluster != f.Cluster(short) || b.Spec.SchedulingPolicySnapshotName != f.Name+"-0" || !b.Spec.ClusterDecision.Selected ||
			b.Labels[placementv1.LabelParentPlacement] != f.Name || b.Annotations[placementv1.AnnotationPlacementUID] != string(f.UID) ||
			len(b.Finalizers) != 1 || b.Finalizers[0] != placementv1.FinalizerWorkCleanup {
			t.Errorf("binding %+v", b)
		}
	}
}

// A placement that is said to be scheduled has its bindings.
func TestScheduledMeansBound(t *testing.T) {
	clusters := make([]string, 30)
	for i := range clusters {
		clusters[i] = fmt.Sprint("c", i)
	}
	f := newFixture(t, clusters...)
	f.awaitScheduled(0, 30)
	if n := len(f.bindings()); n != 30 {
		t.Errorf("scheduled to 30 clusters, but there are %d bindings", n)
	}
}

func TestNobodyThere(t *testing.T) {
	f := newFixture(t)
	f.awaitScheduled(0, 0)
	f.join("late")
	f.awaitScheduled(0, 1)
	f.awaitBinding("late", scheduled)
}

// A cluster that is merely cut off keeps what it has; what its agent says beside that is no reason to write. That nothing was
// written is seen when another cluster, which leaves after that, has been given up.
func TestHealthAndHeartbeats(t *testing.T) {
	f := newFixture(t, "a", "b", "c")
	f.awaitScheduled(0, 3)
	f.Writes.Take()
	leave := func(short string, left int32, after string) {
		t.Helper()
		if err := f.Delete(t.Context(), f.member(short)); err != nil {
			t.Fatal(err)
		}
		f.awaitBinding(short, unscheduled)
		f.awaitScheduled(0, left)
		want := map[string]int{"update *v1.ClusterResourceBinding": 1, "status *v1.ClusterSchedulingPolicySnapshot": 1}
		if diff := cmp.Diff(want, f.Writes.Take()); diff != "" {
			t.Errorf("writes for a cluster that leaves after %s (-want +got):\n%s", after, diff)
		}
	}
	f.health("a", metav1.ConditionTrue, clusterv1.ReasonHealthy)
	f.health("a", metav1.ConditionUnknown, clusterv1.ReasonHeartbeatLost)
	f.health("a", metav1.ConditionFalse, clusterv1.ReasonUnhealthy)
	leave("b", 2, "another was cut off")
	f.Stop()
	f.Start()
	leave("c", 1, "a restart")
	f.awaitBinding("a", scheduled)
}

// A newer policy is noted on the bindings that are there.
func TestNewPolicy(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	f.bound("a", f.Name+"-0-snapshot")
	f.policy(1, "2")
	f.awaitScheduled(1, 1)
	b := f.awaitBinding("a", bound)
	if b.Spec.SchedulingPolicySnapshotName != f.Name+"-1" || b.Spec.ResourceSnapshotName != f.Name+"-0-snapshot" {
		t.Errorf("binding %+v", b.Spec)
	}
	// The placement's generation may change without its policy: that is acknowledged.
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: f.Name + "-1"}}
	f.Change(s, `{"metadata":{"annotations":{"`+placementv1.AnnotationPlacementGeneration+`":"3"}}}`)
	f.awaitScheduled(1, 1)
}

// What somebody wrote over the scheduler's answer is put right, though nothing else has changed.
func TestAnswerWrittenOver(t *testing.T) {
	f := newFixture(t, "a")
	s := f.awaitScheduled(0, 1)
	for _, status := range []string{`null`, `{"targetClusters":[{"clusterName":"nobody","selected":true,"reason":"x"}],"selectedCount":7}`} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
		if err := f.Status().Patch(t.Context(), s, patch); err != nil {
			t.Fatal(err)
		}
		s = f.awaitScheduled(0, 1)
		if got := s.Status.ClusterDecisions; len(got) != 1 || got[0].ClusterName != f.member("a").Name {
			t.Errorf("after %s was written over it, the answer is %+v", status, got)
		}
	}
}

// A cluster that leaves is given up; the binding stays, for whoever moves bindings to remove. Another cluster that joins
// under the name starts anew.
func TestLeavingAndComingBack(t *testing.T) {
	f := newFixture(t, "a", "b")
	f.awaitScheduled(0, 2)
	f.bound("a", f.Name+"-0-snapshot")
	if err := f.Delete(t.Context(), f.member("a")); err != nil {
		t.Fatal(err)
	}
	f.awaitScheduled(0, 1)
	b := f.awaitBinding("a", unscheduled)
	if b.Annotations[placementv1.AnnotationPreviousBindingState] != "Bound" || b.Annotations[placementv1.AnnotationPlacementUID] == "" ||
		b.Spec.ResourceSnapshotName != f.Name+"-0-snapshot" {
		t.Errorf("binding %+v", b)
	}
	f.Erase(f.member("a"))
	f.join("a")
	f.awaitScheduled(0, 2)
	b = f.awaitBinding("a", scheduled)
	if b.Spec.ResourceSnapshotName != "" || b.Annotations[placementv1.AnnotationPreviousBindingState] != "" {
		t.Errorf("another cluster of the name has the binding %+v", b)
	}
}

// A binding that an earlier placement of the name left is never adopted: the new one waits until it is gone, and says so.
func TestEarlierPlacement(t *testing.T) {
	f := newFixture(t)
	f.awaitScheduled(0, 0)
	earlier := f.binding("a")
	earlier.Labels = map[string]string{placementv1.LabelParentPlacement: f.Name}
	earlier.Annotations = map[string]string{placementv1.AnnotationPlacementUID: "an-earlier-one"}
	earlier.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	earlier.Spec = placementv1.ResourceBindingSpec{State: bound, ResourceSnapshotName: f.Name + "-7-snapshot", TargetCluster: f.Cluster("a"),
		SchedulingPolicySnapshotName: f.Name + "-0"}
	f.Make(earlier)
	f.join("a")
	f.policy(1, "2")
	s := f.awaitScheduled(1, -1)
	if c := meta.FindStatusCondition(s.Status.Conditions, placementv1.ConditionScheduled); !strings.Contains(c.Message, earlier.Name) {
		t.Errorf("message %q does not name the binding that is waited for", c.Message)
	}
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(earlier), earlier); err != nil || earlier.Generation != 1 {
		t.Errorf("the earlier binding was changed: %+v, error %v", earlier, err)
	}
	f.Erase(earlier)
	f.awaitScheduled(1, 1)
	if b := f.awaitBinding("a", scheduled); b.Annotations[placementv1.AnnotationPlacementUID] != string(f.UID) {
		t.Errorf("binding %+v", b)
	}
}

// A binding that somebody deletes is made again when it is gone.
func TestDeletedBindingComesBack(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	before := f.awaitBinding("a", scheduled)
	f.Erase(before.DeepCopy())
	framework.Await(t, f, f.binding("a"), "is made again", func(b *placementv1.ClusterResourceBinding) bool { return b.UID != before.UID })
}

// What somebody takes off a binding by hand is put back, and neither the snapshot nor the state that it has is lost by that.
func TestDamagedBinding(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	f.bound("a", f.Name+"-0-snapshot")
	whole := f.awaitBinding("a", bound)
	damages := map[string]func(*placementv1.ClusterResourceBinding){
		"its labels":      func(b *placementv1.ClusterResourceBinding) { b.Labels = nil },
		"its annotations": func(b *placementv1.ClusterResourceBinding) { b.Annotations = nil },
		"its finalizer":   func(b *placementv1.ClusterResourceBinding) { b.Finalizers = nil },
		"its state":       func(b *placementv1.ClusterResourceBinding) { b.Spec.State = unscheduled },
		"all of them": func(b *placementv1.ClusterResourceBinding) {
			b.Labels, b.Annotations, b.Finalizers, b.Spec.State = nil, nil, nil, unscheduled
		},
	}
	for what, damage := range damages {
		damaged := f.awaitBinding("a", bound)
		damage(damaged)
		if err := f.Update(t.Context(), damaged); err != nil {
			t.Fatalf("take off %s: %v", what, err)
		}
		framework.Await(t, f, damaged, "has again "+what, func(b *placementv1.ClusterResourceBinding) bool {
			return maps.Equal(b.Labels, whole.Labels) && maps.Equal(b.Annotations, whole.Annotations) &&
				slices.Equal(b.Finalizers, whole.Finalizers) && cmp.Equal(b.Spec, whole.Spec)
		})
	}
	f.Writes.Take()
	f.join("b") // once that is done, all that came before is
	f.awaitBinding("b", scheduled)
	if got := f.Writes.Take(); got["update *v1.ClusterResourceBinding"] > 0 {
		t.Errorf("a whole binding is written again: %v", got)
	}
}

// A binding that somebody deletes is made again on the snapshot that its Works carry, if they agree on one.
func TestDeletedBindingGoesOn(t *testing.T) {
	f := newFixture(t, "a", "b", "c")
	f.awaitScheduled(0, 3)
	works := func(short string, binding string, indexes ...int) {
		t.Helper()
		namespace := placement.MemberNamespace(f.Cluster(short))
		f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		for i, index := range indexes {
			w := &placementv1.Work{ObjectMeta: f.Owned(placement.WorkName(placement.Key{Name: f.Name}, i))}
			w.Namespace = namespace
			w.Labels[placementv1.LabelParentBinding] = binding
			w.Labels[placementv1.LabelParentSnapshotIndex] = fmt.Sprint(index)
			w.Annotations[placementv1.AnnotationWorkCount] = fmt.Sprint(len(indexes))
			w.Annotations[placementv1.AnnotationParentSnapshotName] = placement.ResourceSnapshotName(f.Name, index)
			f.Make(w)
			t.Cleanup(func() { f.Erase(w) })
		}
	}
	works("a", f.binding("a").Name, 3, 3)
	works("b", f.binding("b").Name, 3, 2) // on the way from one to the other
	works("c", "another-binding", 3)
	snapshots := map[string]string{"a": f.Name + "-3-snapshot", "b": "", "c": ""}
	for short, snapshot := range snapshots {
		before := f.awaitBinding(short, scheduled)
		f.Erase(before.DeepCopy())
		after := f.binding(short)
		framework.Await(t, f, after, "is made again", func(b *placementv1.ClusterResourceBinding) bool { return b.UID != before.UID })
		want := scheduled
		if snapshot != "" {
			want = bound
		}
		if after.Spec.State != want || after.Spec.ResourceSnapshotName != snapshot {
			t.Errorf("the binding of %s is %s on %q, want %s on %q", short, after.Spec.State, after.Spec.ResourceSnapshotName, want, snapshot)
		}
	}
}

// Where what is in a binding's place is another one, that is said, and not tried for ever; one that is relabelled is ours.
func TestBindingInTheWay(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	b := f.awaitBinding("a", scheduled)
	f.Change(b.DeepCopy(), `{"metadata":{"labels":{"`+placementv1.LabelParentPlacement+`":"other"}}}`)
	framework.Await(t, f, b, "has its label again", func(b *placementv1.ClusterResourceBinding) bool {
		return b.Labels[placementv1.LabelParentPlacement] == f.Name
	})
	f.Change(b.DeepCopy(), `{"metadata":{"labels":{"`+placementv1.LabelParentPlacement+`":"other"},"annotations":{"`+placementv1.AnnotationPlacementUID+`":"x"}}}`)
	policy := f.awaitScheduled(0, -1)
	c := meta.FindStatusCondition(policy.Status.Conditions, placementv1.ConditionScheduled)
	for _, part := range []string{b.Name, f.Cluster("a"), "other", "delete it"} {
		if !strings.Contains(c.Message, part) {
			t.Errorf("message %q does not say %s", c.Message, part)
		}
	}
	f.join("b") // once that is done, all that came before is
	f.awaitBinding("b", scheduled)
	if got := f.Writes.Take()["create *v1.ClusterResourceBinding"]; got != 2 {
		t.Errorf("%d bindings were made or tried to be, want 2: one to each cluster, and none where the one that is in the way is known", got)
	}
	f.Erase(b.DeepCopy())
	framework.Await(t, f, f.binding("a"), "is made again", func(after *placementv1.ClusterResourceBinding) bool { return after.UID != b.UID })
	f.awaitScheduled(0, 2)
}

// A cluster that is gone leaves no binding behind, where update runs move the placement too. One that merely leaves, does.
func TestGoneClusterLeavesNoBinding(t *testing.T) {
	f := newFixture(t, "a", "b")
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: f.Name}}
	f.Change(p, `{"spec":{"strategy":{"type":"External"}}}`)
	f.awaitScheduled(0, 2)
	for _, short := range []string{"a", "b"} {
		f.bound(short, f.Name+"-0-snapshot")
		if err := f.Delete(t.Context(), f.member(short)); err != nil {
			t.Fatal(err)
		}
		f.awaitBinding(short, unscheduled)
	}
	f.LetGo(f.member("a"))
	b := f.binding("a")
	framework.Await(t, f, b, "is deleted", func(b *placementv1.ClusterResourceBinding) bool { return !b.DeletionTimestamp.IsZero() })
	f.join("c") // once that is done, all that came before is
	f.awaitBinding("c", scheduled)
	if b := f.awaitBinding("b", unscheduled); !b.DeletionTimestamp.IsZero() {
		t.Error("the binding of a cluster that has not left yet is deleted")
	}
}
