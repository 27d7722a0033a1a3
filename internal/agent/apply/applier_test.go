package apply

import (
	"context"
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestApplier runs against one member that its parts share.
func TestApplier(t *testing.T) {
	memberConfig = framework.StartMemberAPIServer(t)
	for name, test := range map[string]func(*testing.T){
		"applies, changes and prunes":                    testApplyChangePrune,
		"hands over between parts":                       testHandOverBetweenParts,
		"what cannot be overridden stays":                testCannotBeOverridden,
		"hands over between placements, new owner first": testHandOverNewFirst,
		"hands over between placements, old owner first": testHandOverOldFirst,
		"hands over between parts, new owner first":      testHandOverNewPartFirst,
		"hands over from a part that goes":               testHandOverFromDeleted,
		"a definition and an object of its kind":         testDefinitionAlong,
		"a definition of which others have objects":      testDefinitionStays,
		"fields that the member does not know":           testUnknownFields,
		"two entries of one key in a list":               testDuplicateKeys,
		"an object that belongs to somebody else":        testForeignOwner,
		"fields of others":                               testOthersFields,
		"replicas of an autoscaler":                      testAutoscaled,
		"what Kruise had in hand":                        testReleased,
		"a Secret that is refused":                       testSecret,
		"a field that cannot be changed":                 testImmutable,
		"drift is told":                                  testDriftIsTold,
		"a namespace goes":                               testNamespaceGoes,
		"a namespace with a stranger in it":              testNamespaceStays,
		"a namespace with another placement's object":    testNamespaceOfTwo,
		"a finalizer that takes its time":                testHeld,
		"deletion that is confirmed later":               testConfirmedLater,
		"an earlier placement of the same name":          testEarlierPlacement,
		"a crash while an object is made":                testCrashedWhileMaking,
		"a record that somebody forged":                  testForgedRecord,
		"what every cluster has of its own":              testOwnOfCluster,
		"leaves and removes all":                         testLeaveRemoveAll,
		"two placements of one object":                   testTwoPlacements,
		"takes over what kubectl applied":                testTakeOver,
		"takes over what does not differ, loses nothing": testTakeOverLosesNothing,
		"what others apply to an object of ours":         testAppliedByOthers,
		"a lost record, and the cluster leaves":          testLostAndKept,
		"a lost record, and the Work is removed":         testLostAndRemoved,
		"a lost record, and AppliedWork is deleted":      testLostAndDeleted,
		"leaves a namespace with others' objects in it":  testLeaveOthersNamespace,
		"somebody writes AppliedWork meanwhile":          testLostUpdate,
		"somebody writes AppliedWork of who leaves":      testLeaveLostUpdate,
		"two entries of one key, beside others' fields":  testDuplicateKeysContested,
		"repairs drift":                                  testDrift,
		"reports statuses back":                          testMirror,
		"brings back what was deleted":                   testDeletedInMember,
		"a kind that comes later":                        testKindLater,
		"refused by the member, then healed":             testRefused,
		"deletion that the hub did not confirm":          testUnconfirmed,
		"AppliedWork deleted by hand":                    testAppliedWorkDeleted,
		"a restart changes nothing":                      testRestart,
		"a Work that vanished":                           testVanished,
		"a Work that vanished before the agent came":     testVanishedWhileIdle,
		"a version that is not served any more":          testVersionDropped,
		"a kind that is served in no version":            testServedNowhere,
		"drift of what a later revision merged":          testMergedDrift,
		"AppliedWork of a former name, deleted by hand":  testFormerNameDeleted,
		"a record that the member refuses":               testRecordRefused,
		"an object that is replaced meanwhile":           testReplacedMeanwhile,
		"an earlier placement that is removed":           testEarlierRemoved,
		"leaves and keeps":                               testLeaveKeep,
		"leaves and removes":                             testLeaveRemove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func testApplyChangePrune(t *testing.T) {
	a := startAgent(t, "prune")
	w := a.create(a.work("prune", "work", 1, settings("prune-a", "1"), settings("prune-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	uid := a.live("prune-a").UID
	a.change(w, "1", settings("prune-a", "2"))
	a.await(w, placementv1.ConditionApplied, applied)
	if cm := a.live("prune-a"); cm.Data["key"] != "2" || cm.UID != uid {
		t.Errorf("prune-a is %v with UID %s, want key 2 with UID %s", cm.Data, cm.UID, uid)
	}
	framework.AwaitGone(t, a.member, settings("prune-b", ""))
	a.remove(w, true, "True/ResourcesRemoved")
	framework.AwaitGone(t, a.member, settings("prune-a", ""))
	framework.AwaitGone(t, a.member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}})
}

func testHandOverBetweenParts(t *testing.T) {
	a := startAgent(t, "parts")
	first := a.create(a.work("parts", "work", 2, settings("parts-a", "1"), settings("parts-b", "1")))
	second := a.create(a.work("parts", "0", 2, settings("parts-c", "1")))
	a.await(first, placementv1.ConditionAvailable, available)
	a.await(second, placementv1.ConditionAvailable, available)
	uid := a.live("parts-b").UID
	a.change(first, "1", settings("parts-a", "1"))
	a.change(second, "1", settings("parts-b", "1"), settings("parts-c", "1"))
	awaitOwner(t, a, "parts-b", second.Name)
	if got := a.live("parts-b").UID; got != uid {
		t.Errorf("parts-b was made anew: UID %s, before %s", got, uid)
	}
	a.await(second, placementv1.ConditionAvailable, available)
}

func testHandOverNewFirst(t *testing.T) {
	a := startAgent(t, "newfirst")
	old := a.create(a.work("newfirst-old", "work", 1, settings("newfirst-a", "1"), settings("newfirst-b", "1")))
	a.await(old, placementv1.ConditionAvailable, available)
	uid := a.live("newfirst-a").UID
	owned := a.recordOwners("newfirst-a")
	next := a.create(a.work("newfirst-new", "work", 1, settings("newfirst-a", "1")))
	a.await(next, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	a.change(old, "1", settings("newfirst-b", "1"))
	awaitOwner(t, a, "newfirst-a", next.Name)
	if got := a.live("newfirst-a").UID; got != uid {
		t.Errorf("the object was made anew: UID %s, before %s", got, uid)
	}
	a.await(next, placementv1.ConditionAvailable, available)
	owned()
}

func testHandOverOldFirst(t *testing.T) {
	a := startAgent(t, "oldfirst")
	old := a.create(a.work("oldfirst-old", "work", 1, settings("oldfirst-a", "1"), settings("oldfirst-b", "1")))
	a.await(old, placementv1.ConditionAvailable, available)
	uid := a.live("oldfirst-a").UID
	a.change(old, "1", settings("oldfirst-b", "1"))
	next := a.create(a.work("oldfirst-new", "work", 1, settings("oldfirst-a", "1")))
	awaitOwner(t, a, "oldfirst-a", next.Name)
	a.await(next, placementv1.ConditionAvailable, available)
	if got := a.live("oldfirst-a").UID; got != uid {
		t.Errorf("the object was made anew: UID %s, before %s", got, uid)
	}
}

func testTwoPlacements(t *testing.T) {
	a := startAgent(t, "two")
	first := a.create(a.work("two-first", "work", 1, settings("two-a", "1")))
	a.await(first, placementv1.ConditionAvailable, available)
	second := a.create(a.work("two-second", "work", 1, settings("two-a", "2")))
	a.await(second, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	c := second.Status.ManifestConditions[0].Conditions[0]
	if c.Reason != placementv1.ReasonManifestFailedToTakeOver || !strings.Contains(c.Message, `ClusterResourcePlacement "two-first"`) {
		t.Errorf("the loser is told %s: %s; want %s and the name of the placement that has it", c.Reason, c.Message, placementv1.ReasonManifestFailedToTakeOver)
	}
	a.remove(second, true, "True/ResourcesRemoved")
	if got := a.live("two-a").Data["key"]; got != "1" {
		t.Errorf("the object of the first placement has %q after the second was removed, want 1", got)
	}
}

func testTakeOver(t *testing.T) {
	a := startAgent(t, "takeover")
	cm := settings("takeover-a", "theirs")
	cm.Data["dropped"] = "x"
	cm.Annotations = map[string]string{"kept": "yes"}
	if err := a.member.Create(t.Context(), cm, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
	w := a.create(a.work("takeover", "work", 1, settings("takeover-a", "ours")))
	a.await(w, placementv1.ConditionAvailable, available)
	got := a.live("takeover-a")
	if got.UID != cm.UID || got.Data["key"] != "ours" {
		t.Errorf("taken over as %v with UID %s; want key ours with UID %s", got.Data, got.UID, cm.UID)
	}
	if _, still := got.Data["dropped"]; still {
		t.Error("a field that kubectl applied and the hub does not have is still there")
	}
}

func testDrift(t *testing.T) {
	a := startAgent(t, "drift")
	w := a.create(a.work("drift", "work", 1, settings("drift-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	cm := a.live("drift-a")
	cm.Data["key"], cm.Data["theirs"] = "drifted", "stays"
	if err := a.member.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, cm, "is repaired", func(cm *corev1.ConfigMap) bool { return cm.Data["key"] == "1" })
	if cm.Data["theirs"] != "stays" {
		t.Error("a field that the hub says nothing of was removed")
	}
}

func testDeletedInMember(t *testing.T) {
	a := startAgent(t, "deleted")
	w := a.create(a.work("deleted", "work", 1, settings("deleted-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	cm := a.live("deleted-a")
	uid := cm.UID
	cm.Finalizers = []string{"example.com/slow"}
	if err := a.member.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := a.member.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionAvailable, "False/SomeManifestsAreNotAvailable")
	if err := a.member.Patch(t.Context(), cm, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, cm, "is made again", func(cm *corev1.ConfigMap) bool { return cm.UID != uid && cm.DeletionTimestamp == nil })
	a.await(w, placementv1.ConditionAvailable, available)
}

func testKindLater(t *testing.T) {
	a := startAgent(t, "kind")
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "kind-a", "namespace": "default"},
	}}
	w := a.create(a.work("kind", "work", 1, widget, settings("kind-b", "1")))
	a.await(w, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	a.live("kind-b") // one object that cannot be applied holds no other back
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	if err := a.member.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionApplied, applied)
}

func testRefused(t *testing.T) {
	a := startAgent(t, "refused")
	w := a.create(a.work("refused", "work", 1, settings("refused-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	binding := forbid(t, a, "refused", "", "configmaps", "refused-a")
	awaitHeld(t, a, "refused-a")
	a.change(w, "1", settings("refused-a", "2"))
	a.await(w, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	if m := w.Status.ManifestConditions[0].Conditions[0].Message; !strings.Contains(m, "held by a test") {
		t.Errorf("the member's own error is not told: %s", m)
	}
	if err := a.member.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionApplied, applied)
}

// forbid makes the member refuse updates of an object, until the binding that is returned is deleted.
func forbid(t *testing.T, a *agent, name, group, resource, object string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	t.Helper()
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.FailurePolicy = &fail
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		},
	}}}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.metadata.name != '" + object + "'", Message: "held by a test"}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName = name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	for _, o := range []client.Object{policy, binding} {
		if err := a.member.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return binding
}

// awaitHeld waits until the member's admission policy is in force.
func awaitHeld(t *testing.T, a *agent, name string) {
	t.Helper()
	cm := a.live(name)
	for {
		probe := cm.DeepCopy()
		probe.Annotations = map[string]string{"probe": "x"}
		err := a.member.Update(t.Context(), probe, client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "held by a test") {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the policy does not come into force")
		}
	}
}

func testUnconfirmed(t *testing.T) {
	a := startAgent(t, "unconfirmed")
	w := a.create(a.work("unconfirmed", "work", 1, settings("unconfirmed-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	uid := a.live("unconfirmed-a").UID
	a.remove(w, false, "True/"+placementv1.ReasonRemovalNotConfirmed)
	again := a.create(a.work("unconfirmed", "work", 1, settings("unconfirmed-a", "2")))
	a.await(again, placementv1.ConditionAvailable, available)
	if got := a.live("unconfirmed-a"); got.UID != uid || got.Data["key"] != "2" {
		t.Errorf("after the Work was made again the object is %v with UID %s; want key 2 with UID %s", got.Data, got.UID, uid)
	}
}

func testAppliedWorkDeleted(t *testing.T) {
	a := startAgent(t, "applied")
	w := a.create(a.work("applied", "work", 1, settings("applied-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	before := a.live("applied-a")
	record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
		t.Fatal(err)
	}
	uid := record.UID
	if err := a.member.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, record, "is made again", func(r *placementv1.AppliedWork) bool {
		return r.UID != uid && r.DeletionTimestamp == nil && len(r.Status.AppliedResources) == 1
	})
	after := settings("applied-a", "")
	framework.Await(t, a.member, after, "has the new owner", func(cm *corev1.ConfigMap) bool {
		return len(cm.OwnerReferences) == 1 && cm.OwnerReferences[0].UID == record.UID
	})
	if after.UID != before.UID {
		t.Errorf("the object was made anew: UID %s, before %s", after.UID, before.UID)
	}
}

func testRestart(t *testing.T) {
	a := startAgent(t, "restart")
	w := a.create(a.work("restart", "work", 1, settings("restart-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	object, status := a.live("restart-a").ResourceVersion, w.ResourceVersion
	stop := a.start() // a second one beside the first, as if it had started anew
	b := a.create(a.work("restart-b", "work", 1, settings("restart-b", "1")))
	a.await(b, placementv1.ConditionAvailable, available)
	stop()
	if got := a.live("restart-a").ResourceVersion; got != object {
		t.Errorf("the object was written without a change: version %s, before %s", got, object)
	}
	if err := a.hub.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	if w.ResourceVersion != status {
		t.Errorf("the Work's status was written without a change: version %s, before %s", w.ResourceVersion, status)
	}
}

// testVanished is a hub that was restored without a Work: the Work is gone without having been deleted before the agent.
func testVanished(t *testing.T) {
	a := startAgent(t, "vanished")
	w := a.work("vanished", "work", 1, settings("vanished-a", "1"))
	w.Finalizers = nil
	a.create(w)
	a.await(w, placementv1.ConditionAvailable, available)
	if err := a.hub.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, a.hub, w)
	// Another Work goes all the way, so that the agent has had the time to do harm.
	other := a.create(a.work("vanished-other", "work", 1, settings("vanished-b", "1"), settings("vanished-c", "1")))
	a.await(other, placementv1.ConditionAvailable, available)
	a.change(other, "1", settings("vanished-b", "1"))
	framework.AwaitGone(t, a.member, settings("vanished-c", ""))
	a.live("vanished-a")
	// Deleted in the member, its record does not hold on for ever, and takes nothing along.
	record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
	if err := a.member.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, a.member, record)
	if owners := a.live("vanished-a").OwnerReferences; len(owners) > 0 {
		t.Errorf("the object is still owned by %v", owners)
	}
}

// testVanishedWhileIdle is an AppliedWork without a Work that somebody deletes while no agent runs: the next one lets it go,
// although it sees it before it may work. It has a member of its own: any agent of a member lets go of such a record.
func testVanishedWhileIdle(t *testing.T) {
	member := framework.StartMemberAPIServer(t)
	a := newAgent(t, "idle", member)
	record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "idle", Finalizers: []string{placementv1.FinalizerAppliedWork}}}
	record.Spec.WorkName, record.Spec.WorkNamespace = "idle", a.namespace
	for _, act := range []func() error{
		func() error { return a.member.Create(t.Context(), record) }, func() error { return a.member.Delete(t.Context(), record) },
	} {
		if err := act(); err != nil {
			t.Fatal(err)
		}
	}
	a.startIdle()
	err := utilwait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, framework.Patience, true, func(context.Context) (bool, error) {
		a.applier.mu.Lock()
		defer a.applier.mu.Unlock()
		return a.applier.asleep["idle"], nil
	})
	if err != nil {
		t.Fatalf("the agent does not come to see the AppliedWork: %v", err)
	}
	if err := a.applier.Activate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, a.member, record)
}

func testLeaveKeep(t *testing.T) {
	a := startAgent(t, "keep")
	w := a.create(a.work("keep", "work", 1, settings("keep-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	remaining, err := a.applier.Leave(t.Context(), clusterv1.WorkloadsKeep)
	if err != nil || len(remaining) > 0 {
		t.Fatalf("Leave: %v remain, error %v", remaining, err)
	}
	if cm := a.live("keep-a"); len(cm.OwnerReferences) > 0 {
		t.Errorf("the object that was kept is still owned by %v", cm.OwnerReferences)
	}
	framework.AwaitGone(t, a.member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}})
}

func testLeaveRemove(t *testing.T) {
	a := startAgent(t, "leave")
	w := a.create(a.work("leave", "work", 1, settings("leave-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	for {
		remaining, err := a.applier.Leave(t.Context(), clusterv1.WorkloadsRemove)
		if err != nil {
			t.Fatal(err)
		}
		if len(remaining) == 0 {
			break
		}
	}
	framework.AwaitGone(t, a.member, settings("leave-a", ""))
	framework.AwaitGone(t, a.member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}})
}

// awaitOwner waits until the only owner of a ConfigMap is the AppliedWork of a name.
func awaitOwner(t *testing.T, a *agent, name, owner string) {
	t.Helper()
	framework.Await(t, a.member, settings(name, ""), "is owned by "+owner, func(cm *corev1.ConfigMap) bool {
		return len(cm.OwnerReferences) == 1 && cm.OwnerReferences[0].Name == owner
	})
}
