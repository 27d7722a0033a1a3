package apply

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRejoinAfterForcedLeave is a cluster that the hub let go while nobody heard of its agent, and that joins again: what a
// placement still places is taken up in place, and what nobody speaks of any more stays.
func TestRejoinAfterForcedLeave(t *testing.T) {
	a := startAgentIn(t, "forced", framework.StartMemberAPIServer(t))
	a.applier.switchTo(false)
	placed := func(name, placement, value string) *placementv1.Work {
		w := a.work(name, "0", 1, settings(name, value))
		w.Annotations[placementv1.AnnotationPlacementUID] = placement
		return w
	}
	stays, forgotten := a.create(placed("forced-stays", "p1", "1")), a.create(placed("forced-forgotten", "p2", "1"))
	if err := a.applier.Activate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*placementv1.Work{stays, forgotten} {
		a.await(w, placementv1.ConditionApplied, applied)
	}
	before := map[string]*corev1.ConfigMap{stays.Name: a.live("forced-stays"), forgotten.Name: a.live("forced-forgotten")}

	// The hub gives up: it lifts the Works' finalizers itself, and does not wait for the agent's word.
	a.applier.switchTo(false)
	for _, w := range []*placementv1.Work{stays, forgotten} {
		if err := a.hub.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
		if err := a.hub.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		framework.AwaitGone(t, a.hub, w)
	}
	// The cluster joins again, and the one placement chooses it anew.
	again := a.create(placed("forced-stays", "p1", "2"))
	if err := a.applier.Activate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	a.await(again, placementv1.ConditionAvailable, available)
	if now := a.live("forced-stays"); now.UID != before[stays.Name].UID || now.Data["key"] != "2" || len(now.OwnerReferences) != 1 {
		t.Errorf("what is placed again is %+v, before it was %s", now, before[stays.Name].UID)
	}
	if now := a.live("forced-forgotten"); now.UID != before[forgotten.Name].UID || now.DeletionTimestamp != nil || now.Data["key"] != "1" {
		t.Errorf("what the hub speaks of no more is %+v", now)
	}
	// Placed again later, it is taken up in place, too.
	late := a.create(placed("forced-forgotten", "p2", "3"))
	a.await(late, placementv1.ConditionAvailable, available)
	if now := a.live("forced-forgotten"); now.UID != before[forgotten.Name].UID || now.Data["key"] != "3" {
		t.Errorf("what is placed again late is %+v", now)
	}
}
