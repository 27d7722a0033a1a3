package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func inRegion(region string) *placementv1.Affinity {
	return &placementv1.Affinity{ClusterAffinity: &placementv1.ClusterAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &placementv1.ClusterSelector{
		ClusterSelectorTerms: []placementv1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}}},
	}}}
}

func pickN(n int32, affinity *placementv1.Affinity) *placementv1.PlacementPolicy {
	return &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: &n, Affinity: affinity}
}

// awaitChosen waits until a policy snapshot lists these clusters as chosen, and returns its Scheduled condition.
func (f *fixture) awaitChosen(index int, clusters ...string) *metav1.Condition {
	f.t.Helper()
	for i := range clusters {
		clusters[i] = f.Cluster(clusters[i])
	}
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: placement.PolicySnapshotName(f.Name, index)}}
	framework.Await(f.t, f, s, fmt.Sprintf("chooses %v", clusters), func(s *placementv1.ClusterSchedulingPolicySnapshot) bool {
		var chosen []string
		for _, d := range s.Status.ClusterDecisions {
			if d.Selected {
				chosen = append(chosen, d.ClusterName)
			}
		}
		return slices.Equal(chosen, clusters) && meta.FindStatusCondition(s.Status.Conditions, placementv1.ConditionScheduled) != nil &&
			fmt.Sprint(s.Status.ObservedCRPGeneration) == s.Annotations[placementv1.AnnotationPlacementGeneration]
	})
	return meta.FindStatusCondition(s.Status.Conditions, placementv1.ConditionScheduled)
}

// ask changes the number of clusters that a policy snapshot asks for, as the placement controller does.
func (f *fixture) ask(index, number, generation int) {
	f.t.Helper()
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: placement.PolicySnapshotName(f.Name, index)}}
	f.Change(s, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d",%q:"%d"}}}`,
		placementv1.AnnotationNumberOfClusters, number, placementv1.AnnotationPlacementGeneration, generation))
}

// label sets the region of a member.
func (f *fixture) label(short, region string) {
	f.t.Helper()
	f.Change(f.member(short), fmt.Sprintf(`{"metadata":{"labels":{"region":%q}}}`, region))
}

func TestPickFixed(t *testing.T) {
	policy := &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType}
	f := newFixtureFor(t, policy, "a", "b")
	if c := f.awaitChosen(0); c.Status != metav1.ConditionTrue || c.Message != "found all cluster needed as specified by the scheduling policy, found 0 cluster(s); the policy asks for none" {
		t.Errorf("an empty list: %+v", c)
	}
	policy.ClusterNames = []string{f.Cluster("b"), f.Cluster("c")}
	f.policy(1, "2")
	c := f.awaitChosen(1, "b")
	if c.Status != metav1.ConditionFalse || c.Reason != placementv1.ReasonSchedulingPolicyUnfulfilled ||
		!strings.Contains(c.Message, "found 1 cluster(s) instead; 2 are asked for; of the others, 1 not found in the fleet: join them or correct clusterNames") {
		t.Errorf("a cluster that is not there: %+v", c)
	}
	f.awaitBinding("b", scheduled)
	f.join("c")
	if c := f.awaitChosen(1, "b", "c"); c.Status != metav1.ConditionTrue {
		t.Errorf("the cluster has joined: %+v", c)
	}
	policy.ClusterNames = nil // takes effect as any other list
	f.policy(2, "3")
	f.awaitChosen(2)
	f.awaitBinding("b", unscheduled)
	f.awaitBinding("c", unscheduled)
}

func TestPickN(t *testing.T) {
	f := newFixtureFor(t, pickN(2, inRegion("east")), "a@east", "b@west", "c@east", "d@east")
	f.awaitChosen(0, "c", "d") // of equals, the last by name
	f.bound("c", f.Name+"-0-snapshot")
	f.label("d", "west") // what was chosen stays, though its labels change
	f.ask(0, 3, 2)       // and is not chosen anew when more are asked for
	f.awaitChosen(0, "a", "c", "d")
	f.ask(0, 4, 3)
	c := f.awaitChosen(0, "a", "c", "d")
	if want := "could not find all clusters needed as specified by the scheduling policy, found 3 cluster(s) instead; 4 are asked for; of the others, " +
		"1 not matching the required cluster affinity: label or join clusters that match it, or ask for fewer clusters"; c.Status != metav1.ConditionFalse || c.Message != want {
		t.Errorf("condition %s %q, want %q", c.Status, c.Message, want)
	}
	f.label("b", "east") // the change of a label brings the missing one
	if c := f.awaitChosen(0, "a", "b", "c", "d"); c.Status != metav1.ConditionTrue {
		t.Errorf("all were found: %+v", c)
	}
	f.ask(0, 1, 4) // what was given something goes last
	f.awaitChosen(0, "c")
	for short, state := range map[string]placementv1.BindingState{"a": unscheduled, "b": unscheduled, "c": bound, "d": unscheduled} {
		f.awaitBinding(short, state)
	}
	f.ask(0, 0, 5)
	f.awaitChosen(0)
	f.awaitBinding("c", unscheduled)
}

// A cluster that leaves is replaced; one that is cut off is not. A PickN placement that has all its clusters does not mind what
// else becomes of the fleet.
func TestPickNReplacesWhatLeaves(t *testing.T) {
	f := newFixtureFor(t, pickN(1, nil), "a", "b", "c")
	f.awaitChosen(0, "c")
	f.awaitBinding("c", scheduled)
	f.health("a", metav1.ConditionFalse, clusterv1.ReasonUnhealthy)
	f.health("c", metav1.ConditionFalse, clusterv1.ReasonUnhealthy)
	f.label("a", "east")
	if err := f.Delete(t.Context(), f.member("c")); err != nil {
		t.Fatal(err)
	}
	f.awaitChosen(0, "b")
	f.awaitBinding("c", unscheduled)
	f.Writes.Take()
	f.health("b", metav1.ConditionFalse, clusterv1.ReasonUnhealthy)
	f.health("a", metav1.ConditionTrue, clusterv1.ReasonHealthy)
	f.Stop()
	f.Start()
	f.ask(0, 2, 2)
	f.awaitChosen(0, "a", "b")
	if got := f.Writes.Take(); got["update *v1.ClusterResourceBinding"] > 0 || got["create *v1.ClusterResourceBinding"] != 1 || got["status *v1.ClusterSchedulingPolicySnapshot"] != 1 {
		t.Errorf("writes %v, want one more binding, and that it was chosen", got)
	}
}

// Another policy chooses anew; what matches it stays in place.
func TestAnotherPolicyChoosesAnew(t *testing.T) {
	policy := pickN(2, inRegion("east"))
	f := newFixtureFor(t, policy, "a@east", "b@west", "c@west", "d@east")
	f.awaitChosen(0, "a", "d")
	f.bound("a", f.Name+"-0-snapshot")
	policy.Affinity = nil
	policy.NumberOfClusters = ptr.To[int32](1)
	f.policy(1, "2")
	f.awaitChosen(1, "d") // of those that have it, before b and c that have not
	f.awaitBinding("a", unscheduled)
	policy.Affinity = inRegion("west")
	f.policy(2, "3")
	f.awaitChosen(2, "c")
	f.awaitBinding("d", unscheduled)
}

// A number that is none changes nothing until it is put right.
func TestNumberThatIsNone(t *testing.T) {
	f := newFixtureFor(t, pickN(1, nil), "a")
	f.awaitChosen(0, "a")
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: f.Name + "-0"}}
	f.Change(s, `{"metadata":{"annotations":{"`+placementv1.AnnotationNumberOfClusters+`":"many"}}}`)
	f.Writes.Take()
	f.ask(0, 1, 2)
	f.awaitChosen(0, "a")
	if got := f.Writes.Take(); got["update *v1.ClusterResourceBinding"] > 0 {
		t.Errorf("writes %v, want bindings to stay as they were", got)
	}
}

// Taints keep a placement off a cluster, but do not take it away; that one is taken off brings what was missing.
func TestTaints(t *testing.T) {
	policy := pickN(2, nil)
	policy.Tolerations = []placementv1.Toleration{{Key: "spot", Operator: placementv1.TolerationExists}}
	f := newFixtureFor(t, policy)
	for _, short := range []string{"a", "b"} {
		f.join(short)
	}
	f.awaitChosen(0, "a", "b")
	f.taint("a", `[{"key":"full","effect":"NoSchedule"}]`)
	f.join("c")
	f.taint("c", `[{"key":"spot","value":"yes","effect":"NoSchedule"}]`)
	f.join("d")
	f.taint("d", `[{"key":"full","effect":"NoSchedule"}]`)
	f.ask(0, 4, 2)
	if c := f.awaitChosen(0, "a", "b", "c"); !strings.Contains(c.Message, "1 with a taint that is not tolerated") {
		t.Errorf("message %q", c.Message)
	}
	f.taint("d", "null")
	f.awaitChosen(0, "a", "b", "c", "d")
}

func (f *fixture) taint(short, taints string) {
	f.t.Helper()
	f.Change(f.member(short), `{"spec":{"taints":`+taints+`}}`)
}
