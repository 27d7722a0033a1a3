package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestUnreachable(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://member", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"the connection is refused":    {fmt.Errorf("read it: %w", refused), placementv1.ReasonManifestPreparing},
		"the connection ends":          {fmt.Errorf("read it: %w", io.ErrUnexpectedEOF), placementv1.ReasonManifestPreparing},
		"the time is over":             {fmt.Errorf("read it: %w", context.DeadlineExceeded), placementv1.ReasonManifestPreparing},
		"the server is busy":           {apierrors.NewTooManyRequests("busy", 1), placementv1.ReasonManifestPreparing},
		"the server refuses":           {apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no")), placementv1.ReasonManifestApplyFailed},
		"fields that nobody knows":     {errors.New("the member knows too few of the object's fields: spec.a and more"), placementv1.ReasonManifestApplyFailed},
		"an object that does not code": {fmt.Errorf("encode the object: %w", errors.New("unsupported type")), placementv1.ReasonManifestApplyFailed},
	} {
		m := &manifest{}
		(&pass{}).explain(m, tc.err)
		if m.reason != tc.want || !strings.Contains(m.problem, tc.err.Error()) {
			t.Errorf("%s: told %s: %s; want %s and the error", name, m.reason, m.problem, tc.want)
		}
	}
}

// TestManifestThatStandsTwice is watched like any other.
func TestManifestThatStandsTwice(t *testing.T) {
	t.Parallel()
	cm := settings("a", "1")
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	work.Spec.Workload.Manifests = manifests(t, cm, cm)
	p := &pass{Applier: &Applier{watches: newWatches(nil, nil, nil, nil), rollouts: newRollouts(nil, nil)}, work: work, owner: &placementv1.AppliedWork{}, manifests: decode(work)}
	p.manifests[0].gvr = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	p.watch()
	if p.manifests[1].reason != placementv1.ReasonManifestDuplicated || len(p.watches.works["web"]) != 1 {
		t.Errorf("watched: %v; want the one object", p.watches.works["web"])
	}
}

// TestActivateAgain is a list of Works that fails once: the next call has them all looked at.
func TestActivateAgain(t *testing.T) {
	t.Parallel()
	fails := true
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a", Name: "web-work", UID: "1"}}
	hub := fake.NewClientBuilder().WithScheme(framework.Scheme()).WithObjects(work).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if fails {
				return errors.New("the cache has not started")
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	a := &Applier{Options: Options{Namespace: work.Namespace}, hub: hub}
	if err := a.Activate(t.Context(), true); err == nil {
		t.Error("no error, although Works could not be listed")
	}
	fails = false
	if err := a.Activate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"web-work"}, a.backlog); diff != "" || !a.active {
		t.Errorf("active: %t; looked at (-want +got):\n%s", a.active, diff)
	}
}

// heard collects events.
type heard struct {
	events.EventRecorder
	texts []string
}

func (h *heard) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	h.texts = append(h.texts, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

// TestFightIsTold is an object that somebody in the member changes again and again.
func TestFightIsTold(t *testing.T) {
	t.Parallel()
	r, told := newReporter(t), &heard{}
	r.Recorder, r.self, r.active = told, &view{}, true
	m := &manifest{id: placementv1.WorkResourceIdentifier{Kind: "ConfigMap"}, key: thing}
	before := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {uid: "1"}, data: {key: theirs}}`)
	after := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {uid: "1"}, data: {key: ours}}`)
	state := &appliedState{note: "the member does not know, and dropped: spec.a"}
	var notes []string
	for range 8 {
		r.clock.now = r.clock.now.Add(maxBackoff)
		r.repaired(m, state, drift.Paths(before, after))
		notes = append(notes, r.say(state))
	}
	const fight = "the member does not know, and dropped: spec.a; somebody in the member keeps changing /data/key: it is put back, but ever more seldom, every 15 s in the end; let one of the two stop"
	if notes[1] != state.note || notes[2] != fight || notes[7] != fight {
		t.Errorf("said: %q; want the fight told from the third repair on, in the same words", notes)
	}
	if n := len(told.texts); n != 4 || !strings.HasPrefix(told.texts[3], "Warning DriftContested: ConfigMap app/settings: ") || !strings.Contains(told.texts[3], "/data/key") {
		t.Errorf("events: %q; want three repairs and one warning", told.texts)
	}
	r.clock.now = r.clock.now.Add(quiet + time.Second)
	if got := r.say(state); got != state.note {
		t.Errorf("said %q after the fight", got)
	}
	told.texts = nil
	r.repaired(m, &appliedState{}, drift.Paths(nil, after))
	if want := []string{"Normal DriftRepaired: ConfigMap app/settings was deleted in the member and has been made again"}; !cmp.Equal(want, told.texts) {
		t.Errorf("events: %q, want %q", told.texts, want)
	}
}

// TestDefinitionThatIsNotServed is a kind whose definition is placed along, and never serves it.
func TestDefinitionThatIsNotServed(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	work := &placementv1.Work{}
	work.Spec.Workload.Manifests = manifests(t, widgets("gears", "Gear"), widget("Gear", "a", nil))
	r.manifests = decode(work)
	crd, m := r.manifests[0], r.manifests[1]
	r.watches.set("web-work", map[objectKey]schema.GroupVersionResource{crd.key: definitions})
	tell := func(after time.Duration) string {
		r.clock.now = r.clock.now.Add(after)
		m.reason = ""
		r.unknownKind(m)
		return m.reason + ": " + m.problem
	}
	if got := tell(0); !strings.HasPrefix(got, placementv1.ReasonManifestPreparing) {
		t.Errorf("told at once: %s", got)
	}
	live := parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gears.example.com}, status: {conditions: [
		{type: NamesAccepted, status: "False", reason: KindConflict, message: '"Gear" is already in use'}, {type: Established, status: "False"}]}}`)
	r.watches.put(definitions, crd.key, live, "")
	if got := tell(maxBackoff); !strings.HasPrefix(got, placementv1.ReasonManifestDecodingErred) || !strings.Contains(got, `NamesAccepted is False (KindConflict: "Gear" is already in use)`) {
		t.Errorf("told after a while: %s", got)
	}
	r.memory = newMemory()
	m.id.Version = "v2"
	if got := tell(0); !strings.HasPrefix(got, placementv1.ReasonManifestDecodingErred) || !strings.Contains(got, "has no such version served") {
		t.Errorf("told of a version that is not in the definition: %s", got)
	}
}

func TestWhatAPruneWaitsForIsTold(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.removing = []string{"ConfigMap app/old (held by finalizer example.com/slow)"}
	r.report(t, 0, deployment(t, "web", 3))
	r.removing, r.incomplete = nil, true
	applied := meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionApplied)
	if !strings.Contains(applied.Message, "still being removed: ConfigMap app/old (held by finalizer example.com/slow)") {
		t.Errorf("the message does not say what is being removed: %s", applied.Message)
	}
	r.report(t, gossip, deployment(t, "web", 3))
	applied = meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionApplied)
	if !strings.Contains(applied.Message, "until all Works that carry the placement's snapshot are there") {
		t.Errorf("the message does not say what a removal waits for: %s", applied.Message)
	}
}

// testMergedDrift is drift of what the second revision of an object changed that has to be merged.
func testMergedDrift(t *testing.T) {
	a := startAgent(t, "merged")
	with := func(image string) *appsv1.Deployment {
		d := deploymentOf("merged-a", 1)
		d.Spec.Template.Spec.Containers[0].Image = image
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
		return d
	}
	w := a.create(a.work("merged", "work", 1, with("web:1")))
	a.await(w, placementv1.ConditionApplied, applied)
	a.change(w, "1", with("web:2"))
	a.await(w, placementv1.ConditionApplied, applied)
	live := deploymentOf("merged-a", 0)
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Spec.Template.Spec.Containers[0].Image = "theirs:1"
	if err := a.member.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, live, "is repaired", func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Spec.Containers[0].Image == "web:2"
	})
}

// testFormerNameDeleted is an AppliedWork from when the cluster had another name, which somebody deletes.
func testFormerNameDeleted(t *testing.T) {
	a := startAgent(t, "former")
	old := &placementv1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: "former-old", Finalizers: []string{placementv1.FinalizerAppliedWork}},
		Spec:       placementv1.AppliedWorkSpec{WorkName: "former-old", WorkNamespace: "fleet-member-former-name"},
	}
	if err := a.member.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	cm := settings("former-a", "1")
	cm.OwnerReferences = []metav1.OwnerReference{ownerOf(old)}
	if err := a.member.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	old.Status.AppliedResources = []placementv1.AppliedResourceMeta{{UID: cm.UID, WorkResourceIdentifier: placementv1.WorkResourceIdentifier{
		Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "default", Name: cm.Name,
	}}}
	if err := a.member.Status().Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := a.member.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, a.member, old)
	if owners := a.live("former-a").OwnerReferences; len(owners) > 0 {
		t.Errorf("the object is still owned by %v", owners)
	}
}

// recordOwners records the owners of a ConfigMap until the returned function is called, which fails the test if it had none.
func (a *agent) recordOwners(name string) (check func()) {
	a.t.Helper()
	w, err := a.member.Watch(a.t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		a.t.Fatalf("watch ConfigMap %s: %v", name, err)
	}
	last := func() string { return a.live(name).ResourceVersion }
	return func() {
		a.t.Helper()
		defer w.Stop()
		end := last()
		for e := range w.ResultChan() {
			cm, ok := e.Object.(*corev1.ConfigMap)
			if !ok {
				a.t.Fatalf("watch ConfigMap %s: %v", name, e.Object)
			}
			if len(cm.OwnerReferences) == 0 {
				a.t.Errorf("for a moment the object was nobody's, at version %s", cm.ResourceVersion)
			}
			if cm.ResourceVersion == end {
				return
			}
		}
	}
}

// testRecordRefused is a member that does not let the agent write down what it has.
func testRecordRefused(t *testing.T) {
	a := startAgent(t, "unrecorded")
	w := a.create(a.work("unrecorded", "work", 1, settings("unrecorded-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	forbid(t, a, "unrecorded", "placement.kubernetes-fleet.io", "appliedworks/status", w.Name)
	record := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}
	for {
		if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
			t.Fatal(err)
		}
		record.Status.AppliedResources[0].Ordinal++
		if err := a.member.Status().Update(t.Context(), record, client.DryRunAll); err != nil && strings.Contains(err.Error(), "held by a test") {
			break
		}
	}
	a.change(w, "1", settings("unrecorded-a", "1"), settings("unrecorded-b", "1"))
	c := a.await(w, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	if !strings.Contains(c.Message, "record what AppliedWork "+w.Name+" has") || !strings.Contains(c.Message, "held by a test") {
		t.Errorf("the message does not say what the member refuses: %s", c.Message)
	}
}

// testReplacedMeanwhile is an object that somebody replaces after it was looked at: whether the Work may have the new one
// is not decided yet.
func testReplacedMeanwhile(t *testing.T) {
	a := startAgent(t, "replaced")
	seen := settings("replaced-a", "theirs")
	if err := a.member.Create(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	seen.TypeMeta = settings("", "").TypeMeta // a client drops it
	manifest := decode(&placementv1.Work{Spec: placementv1.WorkSpec{Workload: placementv1.WorkloadTemplate{Manifests: manifests(t, settings("replaced-a", "ours"))}}})[0]
	try := func() error {
		wanted, err := manifest.object()
		if err != nil {
			t.Fatal(err)
		}
		p := &pass{Applier: a.applier, owner: &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "replaced", UID: "1"}}}
		w := &attempt{pass: p, manifest: manifest, wanted: wanted, live: asUnstructured(t, seen, func(map[string]any) {})}
		w.client = a.applier.resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "default")
		_, err = w.do(t.Context())
		return err
	}
	if err := a.member.Delete(t.Context(), seen.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := try(); !apierrors.IsConflict(err) {
		t.Errorf("of one that is gone: %v, want a conflict", err)
	}
	if err := a.member.Create(t.Context(), settings("replaced-a", "another's")); err != nil {
		t.Fatal(err)
	}
	if err := try(); !apierrors.IsConflict(err) {
		t.Errorf("of another one: %v, want a conflict", err)
	}
	if got := a.live("replaced-a").Data["key"]; got != "another's" {
		t.Errorf("the new object was written: %q", got)
	}
}
