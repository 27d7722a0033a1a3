package apply

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fleetwright/fleetwright/test/framework"
)

// reporter is a pass that does nothing but report, and counts its writes.
type reporter struct {
	*pass
	clock  *stillClock
	writes int
	// behind tells that the cache does not see what was written.
	behind bool
}

func newReporter(t *testing.T) *reporter {
	t.Helper()
	r := &reporter{clock: &stillClock{now: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)}}
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a", Name: "web-work", UID: "1", Generation: 1}}
	hub := fake.NewClientBuilder().WithScheme(framework.Scheme()).WithObjects(work).WithStatusSubresource(work).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			r.writes++
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	}).Build()
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatal(err)
	}
	a := &Applier{Options: Options{Clock: r.clock, Namespace: work.Namespace}, hub: hub, watches: newWatches(nil, nil, nil, nil), rollouts: newRollouts(nil, nil), told: map[string]string{}}
	r.pass = &pass{Applier: a, work: work, memory: newMemory()}
	return r
}

// deployment is a manifest whose live object has so many replicas of three.
func deployment(t *testing.T, name string, replicas int64) *manifest {
	live := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, updatedReplicas: 3}}`)
	if err := unstructured.SetNestedField(live.Object, replicas, "status", "availableReplicas"); err != nil {
		t.Fatal(err)
	}
	return &manifest{
		id:  placementv1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "app", Name: name},
		key: objectKey{GroupKind: deployments, namespace: "app", name: name}, gvr: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, live: live,
	}
}

func (r *reporter) report(t *testing.T, after time.Duration, manifests ...*manifest) {
	t.Helper()
	r.clock.now = r.clock.now.Add(after)
	r.manifests, r.again = manifests, 0
	if !r.behind {
		r.refresh(t)
	}
	if err := r.pass.report(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refresh has the cache see what was written.
func (r *reporter) refresh(t *testing.T) {
	t.Helper()
	work := &placementv1.Work{}
	if err := r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.work), work); err != nil {
		t.Fatal(err)
	}
	r.work = work
}

func TestWordingAloneIsWrittenSeldom(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.report(t, 0, deployment(t, "web", 0))
	for i := range int64(20) {
		r.report(t, 100*time.Millisecond, deployment(t, "web", i%3))
	}
	if r.writes != 1 {
		t.Errorf("%d writes while nothing but a message changed, want 1", r.writes)
	}
	if r.again == 0 || r.again > gossip {
		t.Errorf("looks again after %s, want a time within %s", r.again, gossip)
	}
	r.report(t, gossip, deployment(t, "web", 2))
	if r.writes != 2 {
		t.Errorf("%d writes, want one more: the message has been behind for a while", r.writes)
	}
	r.report(t, time.Millisecond, deployment(t, "web", 3))
	if r.writes != 3 {
		t.Errorf("%d writes, want one more: the Deployment is available", r.writes)
	}
	if !meta.IsStatusConditionTrue(r.current().Conditions, placementv1.ConditionAvailable) {
		t.Errorf("the Work is not available: %v", r.current().Conditions)
	}
	r.report(t, time.Hour, deployment(t, "web", 3))
	if r.writes != 3 {
		t.Errorf("%d writes, want none where nothing changed", r.writes)
	}
}

func TestTransitionTimesMoveWithTheStatusAlone(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.report(t, 0, deployment(t, "web", 0))
	first := meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionAvailable).LastTransitionTime
	r.report(t, time.Minute, deployment(t, "web", 1))
	if got := meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionAvailable).LastTransitionTime; !got.Equal(&first) {
		t.Errorf("the time moved from %s to %s with a message", first, got)
	}
	if got := r.current().ManifestConditions[0].Conditions[1]; !got.LastTransitionTime.Equal(&first) || !strings.Contains(got.Message, "1 of 3") {
		t.Errorf("the manifest's condition is %+v", got)
	}
}

func TestHubIsNotToldOfWhatIsDecidedInAMoment(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	waiting, refused := deployment(t, "web", 3), deployment(t, "shop", 3)
	waiting.fail(placementv1.ReasonManifestPreparing, "waits")
	r.report(t, 0, waiting)
	if r.writes != 0 || r.again != undecided {
		t.Errorf("%d writes and the next look after %s, want none and %s", r.writes, r.again, undecided)
	}
	r.report(t, undecided, waiting)
	if c := meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionApplied); r.writes != 1 || c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("%d writes and %v, want to be told after a while", r.writes, c)
	}
	r.report(t, time.Second, deployment(t, "web", 3))
	if r.writes != 2 || len(r.memory.pending) > 0 {
		t.Errorf("%d writes, waits %v; want one more, and no wait", r.writes, r.memory.pending)
	}
	// What the member has refused is told at once, whatever else waits.
	refused.fail(placementv1.ReasonManifestApplyFailed, "no")
	r.report(t, time.Second, waiting, refused)
	if r.writes != 3 || r.current().ManifestConditions[1].Conditions[0].Reason != placementv1.ReasonManifestApplyFailed {
		t.Errorf("%d writes and %v", r.writes, r.current().ManifestConditions)
	}
}

// TestHubThatWasRestored is a hub whose Works are as in a backup: older than what we wrote, and older for good.
func TestHubThatWasRestored(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	restored := r.work.DeepCopy()
	restored.ResourceVersion = "1"
	r.behind = true
	r.report(t, 0, deployment(t, "web", 3))
	r.memory.written.ResourceVersion = "1000"
	r.work = restored
	r.report(t, trust-time.Second, deployment(t, "web", 3))
	if r.writes != 1 || r.again != time.Second {
		t.Errorf("%d writes and the next look after %s, want to trust the first write for %s", r.writes, r.again, trust)
	}
	r.report(t, time.Second, deployment(t, "web", 3))
	if r.writes != 2 {
		t.Errorf("%d writes, want one more: the hub does not have the first", r.writes)
	}
}

func TestStatusOfOthersIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	before := r.work.DeepCopy()
	seen := func(old, now *placementv1.Work) bool {
		return r.asked().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now})
	}
	read := func() *placementv1.Work {
		r.refresh(t)
		return r.work.DeepCopy()
	}
	r.report(t, 0, deployment(t, "web", 0))
	first := read()
	r.report(t, time.Minute, deployment(t, "web", 3))
	second := read()
	touched := second.DeepCopy()
	touched.ResourceVersion += "0"
	for what, tc := range map[string]struct {
		old, now *placementv1.Work
		want     bool
	}{
		"our own write":               {first, second, false},
		"a change beside the status":  {second, touched, false},
		"an earlier status of ours":   {second, first, true},
		"no status, as in the backup": {second, before, true},
		"a Work that was asked anew":  {second, func() *placementv1.Work { w := second.DeepCopy(); w.Generation++; return w }(), true},
		"the same status, read anew":  {first, first, false},
	} {
		if got := seen(tc.old, tc.now); got != tc.want {
			t.Errorf("%s is looked at: %t", what, got)
		}
	}
}

func TestStatusStaysWithinItsSize(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	var manifests []*manifest
	for range 3000 {
		m := deployment(t, strings.Repeat("n", 60), 0)
		m.id.Ordinal = int32(len(manifests))
		m.fail(placementv1.ReasonManifestApplyFailed, "%s", strings.Repeat("é", 2000))
		manifests = append(manifests, m)
	}
	r.report(t, 0, manifests...)
	data, err := json.Marshal(r.current())
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > maxStatus || len(data) < maxStatus*9/10 {
		t.Errorf("the status has %d bytes, want a little less than %d", len(data), maxStatus)
	}
	c := meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionApplied)
	if !strings.Contains(c.Message, "(0 of 3000 manifests are applied)") || !strings.Contains(c.Message, "are not listed") {
		t.Errorf("the message does not say what is left out: %s", c.Message)
	}
	if m := r.current().ManifestConditions[0].Conditions[0].Message; !utf8.ValidString(m) || len(m) > maxMessage+10 {
		t.Errorf("a message was cut badly: %d bytes", len(m))
	}
}

// TestWaitsAreSaidOnce is an object that another Work has and keeps: that it may be about to give it up is not said again
// and again.
func TestWaitsAreSaidOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		works  []string
		writes int
	}{
		"another placement":             {[]string{"self web/1/I lists", "other shop/1/I lists"}, 1},
		"a part that is not written":    {[]string{"self web/1/II lists", "other web/0/II lists"}, 2},
		"another placement, and others": {[]string{"self web/1/I lists", "other shop/1/I lists", "more cart/1/I lists"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReporter(t)
			r.works = fleetOf(tc.works...)
			r.self = r.works["self"]
			live := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: app, name: settings}}`)
			live.SetOwnerReferences(ownedBy("AppliedWork/other"))
			try := func(after time.Duration, generation string) {
				blocked, fine := deployment(t, "settings", 3), deployment(t, "web", 3)
				blocked.key, blocked.hash, fine.hash = thing, "1", generation
				r.clock.now = r.clock.now.Add(after)
				r.mayHave(blocked, live)
				r.report(t, 0, blocked, fine)
			}
			for retry := range 10 {
				try(backoff(retry), "1")
			}
			if r.writes != tc.writes {
				t.Errorf("%d writes over ten tries, want %d", r.writes, tc.writes)
			}
			if got := r.current().ManifestConditions[0].Conditions[0].Reason; got != placementv1.ReasonManifestFailedToTakeOver {
				t.Errorf("told %s", got)
			}
			try(time.Second, "2") // the Work changes elsewhere
			if r.writes != tc.writes {
				t.Errorf("%d writes, want no more: this object waits as before", r.writes)
			}
		})
	}
}
