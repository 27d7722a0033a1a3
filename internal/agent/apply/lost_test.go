package apply

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// loseRecord has somebody empty what the AppliedWork of a Work has, while the applier does not work.
func (a *agent) loseRecord(w *placementv1.Work) *placementv1.AppliedWork {
	a.t.Helper()
	if err := a.applier.Activate(a.t.Context(), false); err != nil {
		a.t.Fatal(err)
	}
	record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
	if err := a.member.Get(a.t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
		a.t.Fatal(err)
	}
	record.Status.AppliedResources = nil
	if err := a.member.Status().Update(a.t.Context(), record); err != nil {
		a.t.Fatal(err)
	}
	return record
}

// leave has the cluster leave, until nothing remains, and checks something after each step.
func (a *agent) leave(workloads clusterv1.WorkloadsOnLeave, checks ...func()) {
	a.t.Helper()
	for {
		remaining, err := a.applier.Leave(a.t.Context(), workloads)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, check := range checks {
			check()
		}
		if len(remaining) == 0 {
			return
		}
	}
}

func testLostAndKept(t *testing.T) {
	a := startAgent(t, "lost")
	w := a.create(a.work("lost", "work", 1, settings("lost-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	record := a.loseRecord(w)
	a.leave(clusterv1.WorkloadsKeep)
	if cm := a.live("lost-a"); len(cm.OwnerReferences) > 0 {
		t.Errorf("the object is still owned by %v: the garbage collector would take it with the AppliedWork", cm.OwnerReferences)
	}
	framework.AwaitGone(t, a.member, record)
}

// testLostAndRemoved is a namespace that must not go with the AppliedWork, past what keeps it.
func testLostAndRemoved(t *testing.T) {
	a := startAgent(t, "lostns")
	w := a.create(a.work("lostns", "work", 1, namespaceOf("lostns"), settingsIn("lostns", "placed"), settings("lostns-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	stranger := settingsIn("lostns", "stranger")
	if err := a.member.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	a.loseRecord(w)
	confirmed := []byte(`{"metadata":{"annotations":{"` + placementv1.AnnotationRemovalConfirmed + `":"true"}}}`)
	if err := a.hub.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", confirmed)); err != nil {
		t.Fatal(err)
	}
	if err := a.hub.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for seen := w; seen.DeletionTimestamp == nil; { // by the agent, too: a pass before that would write the record anew
		seen = &placementv1.Work{}
		if err := a.applier.hub.Get(t.Context(), client.ObjectKeyFromObject(w), seen); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.applier.Activate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionRemoved, "True/ResourcesReleased")
	if c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionRemoved); !strings.Contains(c.Message, "Namespace lostns stays") {
		t.Errorf("the message does not say what stays: %s", c.Message)
	}
	ns := namespaceOf("lostns")
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil || len(ns.OwnerReferences) > 0 {
		t.Errorf("the namespace is %v, error %v; want it to stay, owned by nobody", ns, err)
	}
	framework.AwaitGone(t, a.member, settings("lostns-a", ""))
	framework.AwaitGone(t, a.member, settingsIn("lostns", "placed"))
}

// testLostAndDeleted is an AppliedWork that somebody empties and then deletes: what it has is let go before it is gone.
func testLostAndDeleted(t *testing.T) {
	a := startAgent(t, "lostaw")
	w := a.create(a.work("lostaw", "work", 1, settings("lostaw-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	record := a.loseRecord(w)
	if err := a.member.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	before := a.live("lostaw-a")
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: before.ResourceVersion}} // nothing after that is missed
	changes, err := a.member.Watch(t.Context(), &corev1.ConfigMapList{}, since, client.InNamespace("default"), client.MatchingFields{"metadata.name": before.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	if err := a.applier.Activate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, settings("lostaw-a", ""), "belongs to the next AppliedWork", func(cm *corev1.ConfigMap) bool {
		return slices.ContainsFunc(cm.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID != record.UID })
	})
	for e := range changes.ResultChan() {
		cm, ok := e.Object.(*corev1.ConfigMap)
		switch {
		case !ok:
			continue
		case len(cm.OwnerReferences) > 0:
			t.Errorf("while its AppliedWork %s went the object was owned by %v: the garbage collector would have taken it", record.UID, cm.OwnerReferences)
		}
		return
	}
}

// testLeaveOthersNamespace is a namespace in which an AppliedWork from when the cluster had another name has something. Who
// leaves does not touch that, and so the namespace stays.
func testLeaveOthersNamespace(t *testing.T) {
	a := startAgent(t, "alien")
	w := a.create(a.work("alien", "work", 1, namespaceOf("alien"), settings("alien-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	old := &placementv1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: "alien-old"}, Spec: placementv1.AppliedWorkSpec{WorkName: "alien-old", WorkNamespace: "fleet-member-former-name"},
	}
	if err := a.member.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	theirs := settingsIn("alien", "theirs")
	theirs.OwnerReferences = []metav1.OwnerReference{ownerOf(old)}
	if err := a.member.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	ns := namespaceOf("alien")
	a.leave(clusterv1.WorkloadsRemove, func() {
		if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.DeletionTimestamp != nil {
			t.Fatalf("the namespace is %v, error %v; want it to stay", ns, err)
		}
	})
	if len(ns.OwnerReferences) > 0 {
		t.Errorf("the namespace is owned by %v", ns.OwnerReferences)
	}
	framework.AwaitGone(t, a.member, settings("alien-a", ""))
}

// testLostUpdate has somebody write an AppliedWork between the agent's read and its write.
func testLostUpdate(t *testing.T) {
	a := startAgent(t, "update")
	w := a.create(a.work("update", "work", 1, settings("update-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	if err := a.applier.Activate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	begin := func() *pass {
		t.Helper()
		p, err := a.applier.begin(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		record, err := a.applier.getAppliedWork(t.Context(), w.Name)
		if err != nil {
			t.Fatal(err)
		}
		p.own(record)
		return p
	}
	meddle := func(patch string) {
		t.Helper()
		record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
		if err := a.member.Patch(t.Context(), record, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	p := begin()
	meddle(`{"metadata":{"finalizers":["example.com/theirs"]}}`)
	p.owner.Finalizers = nil // as read before
	if err := p.adopt(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("adopt: %v, want a conflict", err)
	}
	if err := p.store(t.Context(), nil); !apierrors.IsConflict(err) {
		t.Errorf("store: %v, want a conflict", err)
	}
	p = begin()
	if len(p.stored) == 0 || !slices.Contains(p.owner.Finalizers, "example.com/theirs") {
		t.Fatalf("somebody's write was lost: the record has %d objects and the finalizers %v", len(p.stored), p.owner.Finalizers)
	}
	// One pass may write both, one after the other, and again.
	if err := p.adopt(t.Context()); err != nil {
		t.Errorf("adopt: %v", err)
	}
	for range 2 {
		if err := p.store(t.Context(), p.stored); err != nil {
			t.Errorf("store: %v", err)
		}
	}
	meddle(`{"metadata":{"finalizers":null}}`)
}

// meddler does something just before the first write of a path.
type meddler struct {
	http.RoundTripper
	path string
	once *sync.Once
	do   func()
}

func (m meddler) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, m.path) {
		m.once.Do(m.do)
	}
	return m.RoundTripper.RoundTrip(r)
}

// testLeaveLostUpdate has somebody write an AppliedWork while its cluster leaves: that is no failure to leave.
func testLeaveLostUpdate(t *testing.T) {
	var once sync.Once
	var meddle func()
	config := rest.CopyConfig(memberConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return meddler{RoundTripper: next, path: "/appliedworks/meddled-work/status", once: &once, do: func() {
			if meddle != nil {
				meddle()
			}
		}}
	})
	a := startAgentIn(t, "meddled", config)
	w := a.create(a.work("meddled", "work", 1, settings("meddled-a", "1"), settings("meddled-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	held := a.live("meddled-a")
	held.Finalizers = []string{"example.com/slow"}
	if err := a.member.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	others := clientOf(t, memberConfig)
	if err := a.applier.Activate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	once = sync.Once{}
	met := false
	meddle = func() {
		met = true
		record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
		if err := others.Patch(t.Context(), record, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"their":"s"}}}`))); err != nil {
			t.Error(err)
		}
	}
	remaining, err := a.applier.Leave(t.Context(), clusterv1.WorkloadsRemove)
	if err != nil || len(remaining) == 0 || !met {
		t.Errorf("%v remain, error %v, somebody wrote meanwhile: %t; want something to remain and no error", remaining, err, met)
	}
	if err := a.member.Patch(t.Context(), held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	a.leave(clusterv1.WorkloadsRemove)
	framework.AwaitGone(t, a.member, settings("meddled-b", ""))
}
