package apply

import (
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func settingsIn(namespace, name string) *corev1.ConfigMap {
	cm := settings(name, "1")
	cm.Namespace = namespace
	return cm
}

// finish does to a namespace that is being deleted what a namespace controller does when nothing is left in it. Nothing may
// be: this test has no controller that would delete it.
func finish(t *testing.T, a *agent, name string) {
	t.Helper()
	ns := namespaceOf(name)
	framework.Await(t, a.member, ns, "is being deleted", func(n *corev1.Namespace) bool { return n.DeletionTimestamp != nil })
	ns.Spec.Finalizers = nil
	if err := a.member.SubResource("finalize").Update(t.Context(), ns); err != nil {
		t.Fatalf("finish namespace %s: %v", name, err)
	}
}

func testNamespaceGoes(t *testing.T) {
	a := startAgent(t, "goes")
	w := a.create(a.work("goes", "work", 1, namespaceOf("goes"), settingsIn("goes", "placed")))
	a.await(w, placementv1.ConditionAvailable, available)
	placed := settingsIn("goes", "placed")
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(placed), placed); err != nil {
		t.Fatal(err)
	}
	// What is in every namespace, what tells of one, and what belongs to what was placed, is no reason to keep it.
	child := settingsIn("goes", "child")
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: placed.Name, UID: placed.UID}}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "goes", Name: "event"}, InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "goes", Name: "placed"}}
	for _, o := range []client.Object{settingsIn("goes", "kube-root-ca.crt"), child, event, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "goes", Name: "default"}}} {
		if err := a.member.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		ns := namespaceOf("goes")
		if framework.AwaitE(t.Context(), a.member, ns, func(exists bool) bool { return exists && ns.DeletionTimestamp != nil }) == nil {
			finish(t, a, "goes")
		}
	}()
	a.remove(w, true, "True/ResourcesRemoved")
	framework.AwaitGone(t, a.member, namespaceOf("goes"))
}

func testNamespaceStays(t *testing.T) {
	a := startAgent(t, "kept")
	w := a.create(a.work("kept", "work", 1, namespaceOf("kept"), settingsIn("kept", "placed")))
	a.await(w, placementv1.ConditionAvailable, available)
	stranger := settingsIn("kept", "stranger")
	if err := a.member.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	a.remove(w, true, "True/ResourcesReleased")
	if c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionRemoved); !strings.Contains(c.Message, "Namespace kept stays") || !strings.Contains(c.Message, "configmaps stranger") {
		t.Errorf("the message does not say what stays and why: %s", c.Message)
	}
	ns := namespaceOf("kept")
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil || len(ns.OwnerReferences) > 0 {
		t.Errorf("the namespace is %v, error %v; want it to stay, owned by nobody", ns, err)
	}
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger); err != nil {
		t.Errorf("the stranger: %v", err)
	}
	framework.AwaitGone(t, a.member, settingsIn("kept", "placed"))
	framework.AwaitGone(t, a.member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}})
}

// testNamespaceOfTwo is a namespace in which another placement has something. The Work stays and gives the namespace up.
func testNamespaceOfTwo(t *testing.T) {
	a := startAgent(t, "shared")
	w := a.create(a.work("shared", "work", 1, namespaceOf("shared"), settings("shared-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	other := a.create(a.work("shared-other", "work", 1, settingsIn("shared", "placed")))
	a.await(other, placementv1.ConditionAvailable, available)
	a.change(w, "1", settings("shared-a", "2"))
	framework.Await(t, a.hub, w, "says that the namespace stays", func(w *placementv1.Work) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionApplied)
		return c != nil && strings.Contains(c.Message, "Namespace shared stays") && strings.Contains(c.Message, "configmaps placed")
	})
	ns := namespaceOf("shared")
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("the namespace is %v, error %v; want it to stay", ns, err)
	}
	placed := settingsIn("shared", "placed")
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(placed), placed); err != nil {
		t.Errorf("the other placement's object: %v", err)
	}
}

// testHeld is an object whose finalizer takes its time.
func testHeld(t *testing.T) {
	a := startAgent(t, "held")
	w := a.create(a.work("held", "work", 1, settings("held-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	cm := a.live("held-a")
	cm.Finalizers = []string{"example.com/slow"}
	if err := a.member.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := a.hub.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+placementv1.AnnotationRemovalConfirmed+`":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := a.hub.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	c := a.await(w, placementv1.ConditionRemoved, "False/RemovalInProgress")
	if !strings.Contains(c.Message, "ConfigMap default/held-a (held by finalizer example.com/slow)") {
		t.Errorf("the message does not say what it waits for: %s", c.Message)
	}
	if err := a.member.Patch(t.Context(), cm, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionRemoved, "True/ResourcesRemoved")
}

// testConfirmedLater is a Work that went by accident, and that the hub gives up before it has made it again.
func testConfirmedLater(t *testing.T) {
	a := startAgent(t, "later")
	w := a.create(a.work("later", "work", 1, settings("later-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	if err := a.hub.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionRemoved, "True/"+placementv1.ReasonRemovalNotConfirmed)
	a.live("later-a")
	if err := a.hub.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+placementv1.AnnotationRemovalConfirmed+`":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionRemoved, "True/ResourcesRemoved")
	framework.AwaitGone(t, a.member, settings("later-a", ""))
}

// testEarlierPlacement is a hub that was restored without a placement, which its user then makes again with less in it:
// nobody has said that the rest is to go.
func testEarlierPlacement(t *testing.T) {
	a := startAgent(t, "earlier")
	first := a.work("earlier", "work", 1, settings("earlier-a", "1"), settings("earlier-b", "1"))
	first.Finalizers, first.Annotations[placementv1.AnnotationPlacementUID] = nil, "one"
	a.create(first)
	a.await(first, placementv1.ConditionAvailable, available)
	uid := a.live("earlier-a").UID
	if err := a.hub.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, a.hub, first)
	second := a.work("earlier", "work", 1, settings("earlier-a", "2"))
	second.Annotations[placementv1.AnnotationPlacementUID] = "two"
	a.create(second)
	a.await(second, placementv1.ConditionAvailable, available)
	framework.Await(t, a.member, settings("earlier-b", ""), "is let go", func(cm *corev1.ConfigMap) bool { return len(cm.OwnerReferences) == 0 })
	if got := a.live("earlier-a"); got.UID != uid || got.Data["key"] != "2" {
		t.Errorf("earlier-a is %v with UID %s, want key 2 with UID %s", got.Data, got.UID, uid)
	}
	a.remove(second, true, "True/ResourcesRemoved")
	a.live("earlier-b")
}

// testEarlierRemoved is a hub that was restored without a placement, and on which another one of its name came and went
// before the agent could apply it: what the first one left is from nobody who has said that it is to go.
func testEarlierRemoved(t *testing.T) {
	a := startAgent(t, "early")
	first := a.work("early", "work", 1, settings("early-a", "1"), settings("early-b", "1"))
	first.Finalizers, first.Annotations[placementv1.AnnotationPlacementUID] = nil, "one"
	a.create(first)
	a.await(first, placementv1.ConditionAvailable, available)
	if err := a.applier.Activate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := a.hub.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, a.hub, first)
	second := a.work("early", "work", 1, settings("early-a", "2"), settings("early-c", "2"))
	second.Annotations[placementv1.AnnotationPlacementUID] = "two"
	second.Annotations[placementv1.AnnotationRemovalConfirmed] = "true"
	a.create(second)
	if err := a.hub.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.hub, second, "is being deleted", func(w *placementv1.Work) bool { return w.DeletionTimestamp != nil })
	if err := a.applier.Activate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	c := a.await(second, placementv1.ConditionRemoved, "True/ResourcesReleased")
	if !strings.Contains(c.Message, "early-a stays: it is from an earlier placement") {
		t.Errorf("the message does not say what stays and why: %s", c.Message)
	}
	for _, name := range []string{"early-a", "early-b"} {
		if cm := a.live(name); len(cm.OwnerReferences) > 0 || cm.Data["key"] != "1" {
			t.Errorf("%s is %v, owned by %v; want it as it was, and owned by nobody", name, cm.Data, cm.OwnerReferences)
		}
	}
}

// testCrashedWhileMaking is an agent that ended between making an object and writing down its UID.
func testCrashedWhileMaking(t *testing.T) {
	a := startAgent(t, "crashed")
	w := a.create(a.work("crashed", "work", 1, settings("crashed-a", "1"), settings("crashed-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	// Take the UIDs out of the record, and put a stranger's object into it.
	stranger := settings("crashed-stranger", "1")
	if err := a.member.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
		t.Fatal(err)
	}
	for i := range record.Status.AppliedResources {
		record.Status.AppliedResources[i].UID = ""
	}
	another := record.Status.AppliedResources[0]
	another.Name = stranger.Name
	record.Status.AppliedResources = append(record.Status.AppliedResources, another)
	if err := a.member.Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	a.remove(w, true, "True/ResourcesRemoved")
	framework.AwaitGone(t, a.member, settings("crashed-a", ""))
	framework.AwaitGone(t, a.member, settings("crashed-b", ""))
	a.live("crashed-stranger")
}

// testLeaveRemoveAll is a cluster that leaves with all that was placed, in parts that lie in each other's namespaces.
func testLeaveRemoveAll(t *testing.T) {
	a := startAgent(t, "all")
	first := a.create(a.work("all", "work", 2, namespaceOf("all"), settings("all-a", "1")))
	second := a.create(a.work("all", "0", 2, settingsIn("all", "placed")))
	a.await(first, placementv1.ConditionAvailable, available)
	a.await(second, placementv1.ConditionAvailable, available)
	done := make(chan struct{})
	go func() {
		defer close(done)
		finish(t, a, "all")
	}()
	for {
		remaining, err := a.applier.Leave(t.Context(), clusterv1.WorkloadsRemove)
		if err != nil {
			t.Fatal(err)
		}
		if len(remaining) == 0 {
			break
		}
	}
	<-done
	framework.AwaitGone(t, a.member, settingsIn("all", "placed"))
	framework.AwaitGone(t, a.member, namespaceOf("all"))
	for _, name := range []string{first.Name, second.Name} {
		framework.AwaitGone(t, a.member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// testForgedRecord has somebody write a stranger's object into what an AppliedWork has, UID and all.
func testForgedRecord(t *testing.T) {
	a := startAgent(t, "forged")
	w := a.create(a.work("forged", "work", 1, settings("forged-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	stranger := settings("forged-stranger", "1")
	if err := a.member.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
		t.Fatal(err)
	}
	another := record.Status.AppliedResources[0]
	another.Name, another.UID = stranger.Name, stranger.UID
	record.Status.AppliedResources = append(record.Status.AppliedResources, another)
	if err := a.member.Status().Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	a.change(w, "1", settings("forged-a", "2"))
	framework.Await(t, a.hub, w, "says that the object stays", func(w *placementv1.Work) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionApplied)
		return c != nil && strings.Contains(c.Message, "ConfigMap default/forged-stranger stays") && strings.Contains(c.Message, "never placed")
	})
	a.remove(w, true, "True/"+placementv1.ReasonResourcesRemoved)
	framework.AwaitGone(t, a.member, settings("forged-a", ""))
	if after := a.live("forged-stranger"); after.ResourceVersion != stranger.ResourceVersion {
		t.Errorf("the stranger's object was written: %v", after)
	}
}

// TestDefinitionOfAppliedWork takes the definition of AppliedWork away under the agent's feet, and puts it back.
func TestDefinitionOfAppliedWork(t *testing.T) {
	own := framework.StartMemberAPIServer(t)
	a := startAgentIn(t, "undefined", own)
	w := a.create(a.work("undefined", "work", 1, settings("undefined-a", "1"), settings("undefined-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	uid := a.live("undefined-a").UID
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "appliedworks.placement.kubernetes-fleet.io"}}
	definitionsOf := definitionClient(t, own)
	if err := definitionsOf.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	if err := definitionsOf.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, definitionsOf, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}})
	cm := settings("undefined-a", "")
	framework.Await(t, a.member, cm, "is owned by nobody", func(cm *corev1.ConfigMap) bool { return len(cm.OwnerReferences) == 0 })
	framework.Await(t, a.hub, w, "says what is missing", func(w *placementv1.Work) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionApplied)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "install its CustomResourceDefinition")
	})
	a.change(w, "1", settings("undefined-a", "2")) // what the hub gives up meanwhile, while nobody owns it, is not forgotten
	again := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}, Spec: crd.Spec}
	if err := definitionsOf.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, cm, "has an owner again", func(cm *corev1.ConfigMap) bool { return len(cm.OwnerReferences) == 1 })
	a.await(w, placementv1.ConditionAvailable, available)
	if cm.UID != uid {
		t.Errorf("the object was made anew: UID %s, before %s", cm.UID, uid)
	}
	framework.AwaitGone(t, a.member, settings("undefined-b", ""))
}
