package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	scheduled   = placementv1.BindingStateScheduled
	bound       = placementv1.BindingStateBound
	unscheduled = placementv1.BindingStateUnscheduled
)

func TestChoosesMembers(t *testing.T) {
	f := newFixture(t, "a", "b")
	f.create(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster("new")}})
	t.Cleanup(func() { f.remove(f.member("new")) })
	s := f.awaitScheduled(0, 2)
	framework.Await(t, f, s, "lists who was not chosen", func(s *placementv1.ClusterSchedulingPolicySnapshot) bool {
		return len(s.Status.ClusterDecisions) == 3
	})
	var decisions []string
	for _, d := range s.Status.ClusterDecisions {
		decisions = append(decisions, fmt.Sprint(d.ClusterName, " ", d.Selected, " ", d.Reason))
	}
	want := []string{
		fmt.Sprintf("%s true Successfully scheduled resources for placement in %q: picked by scheduling policy", f.cluster("a"), f.cluster("a")),
		fmt.Sprintf("%s true Successfully scheduled resources for placement in %q: picked by scheduling policy", f.cluster("b"), f.cluster("b")),
		f.cluster("new") + " false cluster is not connected to the fleet: member agent not online yet",
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
		if b.Spec.TargetCluster != f.cluster(short) || b.Spec.SchedulingPolicySnapshotName != f.name+"-0" || !b.Spec.ClusterDecision.Selected ||
			b.Labels[placementv1.LabelParentPlacement] != f.name || b.Annotations[placementv1.AnnotationPlacementUID] != string(f.placement.UID) ||
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

// A cluster that is merely cut off keeps what it has; what its agent says beside that is no reason to write.
func TestHealthAndHeartbeats(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	f.quiet()
	f.health("a", metav1.ConditionTrue, clusterv1.ReasonHealthy)
	f.health("a", metav1.ConditionUnknown, clusterv1.ReasonHeartbeatLost)
	f.health("a", metav1.ConditionFalse, clusterv1.ReasonUnhealthy)
	if got := f.quiet(); len(got) > 0 {
		t.Errorf("writes since a member was cut off: %v", got)
	}
	f.stop()
	f.start()
	if got := f.quiet(); len(got) > 0 {
		t.Errorf("writes after a restart: %v", got)
	}
	f.awaitBinding("a", scheduled)
}

// A newer policy is noted on the bindings that are there.
func TestNewPolicy(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	f.bound("a", f.name+"-0-snapshot")
	f.policy(1, "2")
	f.awaitScheduled(1, 1)
	b := f.awaitBinding("a", bound)
	if b.Spec.SchedulingPolicySnapshotName != f.name+"-1" || b.Spec.ResourceSnapshotName != f.name+"-0-snapshot" {
		t.Errorf("binding %+v", b.Spec)
	}
	// The placement's generation may change without its policy: that is acknowledged.
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-1"}}
	patch := []byte(`{"metadata":{"annotations":{"` + placementv1.AnnotationPlacementGeneration + `":"3"}}}`)
	if err := f.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	f.awaitScheduled(1, 1)
}

// A cluster that leaves is given up; the binding stays, for whoever moves bindings to remove. Another cluster that joins
// under the name starts anew.
func TestLeavingAndComingBack(t *testing.T) {
	f := newFixture(t, "a", "b")
	f.awaitScheduled(0, 2)
	f.bound("a", f.name+"-0-snapshot")
	if err := f.Delete(t.Context(), f.member("a")); err != nil {
		t.Fatal(err)
	}
	f.awaitScheduled(0, 1)
	b := f.awaitBinding("a", unscheduled)
	if b.Annotations[placementv1.AnnotationPreviousBindingState] != "Bound" || b.Annotations[placementv1.AnnotationPlacementUID] == "" ||
		b.Spec.ResourceSnapshotName != f.name+"-0-snapshot" {
		t.Errorf("binding %+v", b)
	}
	f.remove(f.member("a"))
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
	earlier.Labels = map[string]string{placementv1.LabelParentPlacement: f.name}
	earlier.Annotations = map[string]string{placementv1.AnnotationPlacementUID: "an-earlier-one"}
	earlier.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	earlier.Spec = placementv1.ResourceBindingSpec{State: bound, ResourceSnapshotName: f.name + "-7-snapshot", TargetCluster: f.cluster("a"),
		SchedulingPolicySnapshotName: f.name + "-0"}
	f.create(earlier)
	f.join("a")
	f.policy(1, "2")
	s := f.awaitScheduled(1, -1)
	if c := meta.FindStatusCondition(s.Status.Conditions, placementv1.ConditionScheduled); !strings.Contains(c.Message, earlier.Name) {
		t.Errorf("message %q does not name the binding that is waited for", c.Message)
	}
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(earlier), earlier); err != nil || earlier.Generation != 1 {
		t.Errorf("the earlier binding was changed: %+v, error %v", earlier, err)
	}
	f.remove(earlier)
	f.awaitScheduled(1, 1)
	if b := f.awaitBinding("a", scheduled); b.Annotations[placementv1.AnnotationPlacementUID] != string(f.placement.UID) {
		t.Errorf("binding %+v", b)
	}
}

// A binding that somebody deletes is made again when it is gone.
func TestDeletedBindingComesBack(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	before := f.awaitBinding("a", scheduled)
	f.remove(before.DeepCopy())
	framework.Await(t, f, f.binding("a"), "is made again", func(b *placementv1.ClusterResourceBinding) bool { return b.UID != before.UID })
}

// What somebody takes off a binding by hand is put back, and neither the snapshot nor the state that it has is lost by that.
func TestDamagedBinding(t *testing.T) {
	f := newFixture(t, "a")
	f.awaitScheduled(0, 1)
	f.bound("a", f.name+"-0-snapshot")
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
	f.quiet()
}
