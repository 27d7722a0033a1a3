package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerEvictions plays the hub: evictions from a member are executed, apart from those of the placements that are blocked.
func answerEvictions(t *testing.T, hub client.WithWatch, member string, blocked map[string]string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	w, err := hub.Watch(ctx, &placementv1.ClusterResourcePlacementEvictionList{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range w.ResultChan() {
			e, ok := event.Object.(*placementv1.ClusterResourcePlacementEviction)
			if !ok || event.Type != watch.Added || e.Spec.ClusterName != member {
				continue
			}
			c := metav1.Condition{Type: placementv1.ConditionExecuted, Status: metav1.ConditionTrue, Reason: placementv1.ReasonEvictionExecuted, Message: "gone", LastTransitionTime: metav1.Now()}
			if why := blocked[e.Spec.PlacementName]; why != "" {
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, placementv1.ReasonEvictionNotExecuted, why
			}
			meta.SetStatusCondition(&e.Status.Conditions, c)
			if err := hub.Status().Update(ctx, e); err != nil && ctx.Err() == nil {
				t.Errorf("answer an eviction: %v", err)
			}
		}
	}()
}

func TestDrainAndUncordon(t *testing.T) {
	hub, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	const name = "drained"
	kept := clusterv1.Taint{Key: "kept", Effect: clusterv1.TaintNoSchedule}
	member := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	member.Spec.Taints = []clusterv1.Taint{kept}
	objects := []client.Object{member}
	for placement, state := range map[string]placementv1.BindingState{
		"drain-a": placementv1.BindingStateBound, "drain-b": placementv1.BindingStateBound, "drain-c": placementv1.BindingStateUnscheduled,
	} {
		b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: placement, Labels: map[string]string{placementv1.LabelParentPlacement: placement}}}
		b.Spec = placementv1.ResourceBindingSpec{State: state, TargetCluster: name, SchedulingPolicySnapshotName: placement + "-0", ClusterDecision: placementv1.ClusterDecision{ClusterName: name}}
		objects = append(objects, b)
	}
	for _, o := range objects {
		if err := hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { framework.Remove(t, hub, o) })
	}
	blocked := map[string]string{"drain-b": "Eviction is blocked by something"}
	answerEvictions(t, hub, name, blocked)
	const membercluster, placement = "membercluster.cluster.kubernetes-fleet.io/drained ", "clusterresourceplacement.placement.kubernetes-fleet.io/"
	out, err := amc(t, "drain", name)
	if err == nil || !strings.Contains(err.Error(), `member "drained" is not drained; blocked: ClusterResourcePlacement drain-b`) {
		t.Errorf("got error %v, want it to name what is blocked", err)
	}
	want := membercluster + "cordoned\n" + placement + "drain-a evicted from drained: gone\n" + placement + "drain-b not evicted from drained: Eviction is blocked by something\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(member), member); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]clusterv1.Taint{kept, {Key: "cordon-key", Value: "cordon-value", Effect: clusterv1.TaintNoSchedule}}, member.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	var evictions placementv1.ClusterResourcePlacementEvictionList
	if err := hub.List(t.Context(), &evictions); err != nil || slices.ContainsFunc(evictions.Items, func(e placementv1.ClusterResourcePlacementEviction) bool { return e.Spec.ClusterName == name }) {
		t.Errorf("evictions that were dealt with are left behind: %v (%v)", evictions.Items, err)
	}
	framework.Remove(t, hub, objects[1])
	framework.Remove(t, hub, objects[2])
	framework.Remove(t, hub, objects[3])
	if out, err = amc(t, "drain", name); err != nil || out != membercluster+"already cordoned\n"+membercluster+"drained\n" {
		t.Errorf("a member with nothing on it: got %q and error %v", out, err)
	}
	for _, want := range []string{"uncordoned", "not cordoned"} {
		if out, err = amc(t, "uncordon", name); err != nil || out != membercluster+want+"\n" {
			t.Errorf("uncordon: got %q and error %v, want %q", out, err, want)
		}
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(member), member); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]clusterv1.Taint{kept}, member.Spec.Taints); diff != "" {
		t.Errorf("taints after uncordon (-want +got):\n%s", diff)
	}
}

func TestDrainMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no member":             {[]string{"drain"}, "give one member, such as `kubectl amc drain member2`; got 0 names"},
		"two members":           {[]string{"uncordon", "a", "b"}, "give one member, such as `kubectl amc uncordon member2`; got 2 names"},
		"an unknown member":     {[]string{"drain", "nobody"}, `there is no member "nobody" on this hub`},
		"no member to uncordon": {[]string{"uncordon", "nobody"}, `there is no member "nobody" on this hub`},
	} {
		if _, err := amc(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.want)
		}
	}
}
