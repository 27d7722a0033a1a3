package apply

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is abandoned stays as it is, a namespace with what is in it too, and nobody in the fleet owns it. What another Work
// wants goes over to that one all the same, and a Work that comes later takes over what was abandoned.
func testAbandon(t *testing.T) {
	a := startAgent(t, "abandon")
	w := a.create(a.work("abandon", "work", 1, namespaceOf("abandoned"), settingsIn("abandoned", "placed"), settings("abandon-a", "1"), settings("abandon-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	other := a.create(a.work("abandon-other", "work", 1, settings("abandon-b", "1")))
	a.await(other, placementv1.ConditionApplied, refusal)
	uid := a.live("abandon-a").UID
	a.confirm(w, placementv1.RemovalAbandons)
	a.remove(w, false, "True/ResourcesReleased")
	if c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionRemoved); !strings.Contains(c.Message, "deleteStrategy is Abandon") {
		t.Errorf("told: %s", c.Message)
	}
	if got := a.live("abandon-a"); got.UID != uid || len(got.OwnerReferences) > 0 || len(got.Finalizers) > 0 || got.Data["key"] != "1" {
		t.Errorf("abandoned as %v, owned by %v", got.Data, got.OwnerReferences)
	}
	for _, o := range []client.Object{namespaceOf("abandoned"), settingsIn("abandoned", "placed")} {
		if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp() != nil || len(o.GetOwnerReferences()) > 0 {
			t.Errorf("%T %s: error %v, deleted %v, owned by %v", o, o.GetName(), err, o.GetDeletionTimestamp(), o.GetOwnerReferences())
		}
	}
	framework.AwaitGone(t, a.member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}})
	a.await(other, placementv1.ConditionAvailable, available)
	awaitOwner(t, a, "abandon-b", other.Name)

	again := a.create(a.work("abandon-again", "work", 1, settings("abandon-a", "2")))
	a.await(again, placementv1.ConditionAvailable, available)
	if got := a.live("abandon-a"); got.UID != uid || got.Data["key"] != "2" {
		t.Errorf("taken over as %s with %v", got.UID, got.Data)
	}
}

// Whatever a live Work says of its removal, what it lists no more is removed; and an object that belongs to others is not
// touched when a Work is abandoned, whatever its record says.
func testAbandonOnlyWhatIsOurs(t *testing.T) {
	a := startAgent(t, "abandonours")
	w := a.create(a.work("abandonours", "work", 1, settings("abandonours-a", "1"), settings("abandonours-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	a.confirm(w, placementv1.RemovalAbandons)
	b := a.live("abandonours-b")
	a.change(w, "1", settings("abandonours-a", "2"))
	framework.AwaitGone(t, a.member, b)
	owner := a.existing(settings("abandonours-owner", "x"))
	cm := a.live("abandonours-a")
	theirs := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}
	before := cm.DeepCopy()
	cm.OwnerReferences = append(cm.OwnerReferences, theirs)
	if err := a.member.Patch(t.Context(), cm, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	a.remove(w, false, "True/ResourcesReleased")
	framework.Await(t, a.member, a.live("abandonours-a"), "is left to its other owner", func(cm *corev1.ConfigMap) bool {
		return len(cm.OwnerReferences) == 1 && cm.OwnerReferences[0].UID == owner.UID
	})
}
