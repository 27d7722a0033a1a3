package work

import (
	"maps"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A change of a cluster costs the hub one write of the Work and one of the binding's status where the agent answers soon.
func TestOneWriteEach(t *testing.T) {
	f := newFixture(t)
	f.join("c")
	f.snapshot(0, []string{"a"})
	f.snapshot(1, []string{"b"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	if b.Status.ObservedResourceIndex != "0" {
		t.Errorf("observed index %q, want 0", b.Status.ObservedResourceIndex)
	}
	got := f.writes()
	if n := got["create *v1.Work"]; n != 1 || got["status *v1.ClusterResourceBinding"] > 2 || len(got) != 2 {
		t.Errorf("writes for the first snapshot: %v, want a Work and one or, with a slow agent, two of the status", got)
	}
	b = f.await(f.move(b, 1), placementv1.ConditionAvailable, isAvailable)
	w := f.work("c", 0)
	if raw := string(w.Spec.Workload.Manifests[0].Raw); !strings.Contains(raw, `"name":"b"`) {
		t.Errorf("the Work carries %s", raw)
	}
	got = f.writes()
	if n := got["update *v1.Work"]; n != 1 || got["status *v1.ClusterResourceBinding"] > 2 || len(got) != 2 {
		t.Errorf("writes for the change: %v, want an update of the Work and one or, with a slow agent, two of the status", got)
	}
	f.Stop()
	f.Start()
	if got := f.writes(); len(got) > 0 {
		t.Errorf("writes after a restart without a change: %v", got)
	}
	if b.Generation != f.await(b, placementv1.ConditionAvailable, isAvailable).Generation {
		t.Error("the binding was changed")
	}
}

// An agent that does not answer is waited for by name; one that cannot apply is quoted.
func TestWaitingAndRefusing(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	a.be(silent)
	f.snapshot(0, []string{"a"})
	b := f.await(f.bind("c", 0), placementv1.ConditionApplied, isProgress)
	if m := f.message(b, placementv1.ConditionApplied); !strings.Contains(m, f.Cluster("c")) || !strings.Contains(m, f.Name+"-work") {
		t.Errorf("message %q names neither cluster nor Work", m)
	}
	a.be(refuses)
	f.await(b, placementv1.ConditionApplied, "False/"+placementv1.ReasonNotAllWorkHaveBeenApplied)
	if m := f.message(b, placementv1.ConditionApplied); !strings.Contains(m, "the member says no") {
		t.Errorf("message %q does not say what the member says", m)
	}
	if len(b.Status.FailedPlacements) != 1 || b.Status.FailedPlacements[0].Condition.Message != "the member says no" {
		t.Errorf("failed placements %+v", b.Status.FailedPlacements)
	}
	a.be(starts)
	f.await(b, placementv1.ConditionAvailable, "False/"+placementv1.ReasonNotAllWorkAreAvailable)
	a.be("")
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	if len(b.Status.FailedPlacements) != 0 {
		t.Errorf("all is well, but failed placements are %+v", b.Status.FailedPlacements)
	}
}

// What was said of an earlier generation never counts for a later one.
func TestStaleAnswersDoNotCount(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"})
	f.snapshot(1, []string{"b"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	a.be(silent)
	f.await(f.move(b, 1), placementv1.ConditionApplied, isProgress)
	if strings.Contains(strings.Join(shown(&b.Status), " "), "Available") {
		t.Errorf("the agent has not answered, but conditions are %v", shown(&b.Status))
	}
	a.be("")
	f.await(b, placementv1.ConditionAvailable, isAvailable)
}

// A change of the binding that leaves its snapshot alone touches no Work.
func TestDecisionAlone(t *testing.T) {
	f := newFixture(t)
	f.join("c")
	f.snapshot(0, []string{"a"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	f.writes()
	f.edit(b, func(s *placementv1.ResourceBindingSpec) { s.SchedulingPolicySnapshotName = f.Name + "-1" })
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	if diff := cmp.Diff(map[string]int{"status *v1.ClusterResourceBinding": 1}, f.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// Parts that a smaller snapshot does not need go after the others are written, on the hub's word.
func TestParts(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"}, []string{"b"}, []string{"c"})
	f.snapshot(1, []string{"a", "b"})
	f.snapshot(2)
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	for part, want := range []string{f.Name + "-0-snapshot", f.Name + "-0-0", f.Name + "-0-1"} {
		w := f.work("c", part)
		if got := w.Annotations[placementv1.AnnotationParentSnapshotName] + " of " + w.Annotations[placementv1.AnnotationWorkCount]; got != want+" of 3" {
			t.Errorf("Work %s carries %s, want %s", w.Name, got, want+" of 3")
		}
	}
	f.await(f.move(b, 1), placementv1.ConditionAvailable, isAvailable)
	for _, part := range []int{1, 2} {
		framework.AwaitGone(t, f, &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
			Name: placement.WorkName(f.key, part), Namespace: placement.MemberNamespace(f.Cluster("c"))}})
	}
	removed, released := a.story()
	if diff := cmp.Diff([]string{f.Name + "-0", f.Name + "-1"}, removed); diff != "" || len(released) > 0 {
		t.Errorf("removed (-want +got):\n%s\nreleased: %v", diff, released)
	}
	if f.work("c", 0).Annotations[placementv1.AnnotationRemovalConfirmed] != "" {
		t.Error("a Work that stays is marked for removal")
	}
}

// A snapshot that does not exist leaves what is there alone, and is named.
func TestMissingSnapshot(t *testing.T) {
	f := newFixture(t)
	a := f.join("c")
	f.snapshot(0, []string{"a"})
	b := f.await(f.bind("c", 0), placementv1.ConditionAvailable, isAvailable)
	f.await(f.move(b, 1), placementv1.ConditionWorkSynchronized, "False/"+placementv1.ReasonSyncWorkFailed)
	if m := f.message(b, placementv1.ConditionWorkSynchronized); !strings.Contains(m, f.Name+"-1-snapshot") {
		t.Errorf("message %q does not name the snapshot", m)
	}
	f.snapshot(1, []string{"b"}) // it is made after all
	f.await(b, placementv1.ConditionAvailable, isAvailable)

	// One that is gone once the Works have it is not missed, by a hub that starts anew either.
	if err := f.Delete(t.Context(), &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: f.Name + "-1-snapshot"}}); err != nil {
		t.Fatal(err)
	}
	f.writes()
	f.Stop()
	f.Start()
	if got := f.writes(); len(got) > 0 {
		t.Errorf("writes though all is as it was: %v", got)
	}
	a.be(starts)
	f.await(b, placementv1.ConditionAvailable, "False/"+placementv1.ReasonNotAllWorkAreAvailable)
}

// A Work in the way, of an earlier placement of the name, is not adopted.
func TestForeignWork(t *testing.T) {
	f := newFixture(t)
	f.join("c")
	f.snapshot(0, []string{"a"})
	foreign := &placementv1.Work{ObjectMeta: f.Owned(f.Name + "-work")}
	foreign.Namespace = placement.MemberNamespace(f.Cluster("c"))
	foreign.Labels[placementv1.LabelParentBinding] = placement.BindingName(f.key, f.Cluster("c"))
	foreign.Annotations[placementv1.AnnotationPlacementUID] = "an-earlier-one"
	foreign.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	f.Make(foreign)
	b := f.await(f.bind("c", 0), placementv1.ConditionWorkSynchronized, "False/"+placementv1.ReasonSyncWorkFailed)
	if m := f.message(b, placementv1.ConditionWorkSynchronized); !strings.Contains(m, "delete it") {
		t.Errorf("message %q does not say what to do", m)
	}
	if w := f.work("c", 0); w.Generation != foreign.Generation || !equality.Semantic.DeepEqual(w.Labels, foreign.Labels) ||
		!equality.Semantic.DeepEqual(w.Annotations, foreign.Annotations) {
		t.Error("the Work was changed")
	}
	if err := f.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	f.await(b, placementv1.ConditionAvailable, isAvailable)
}

// A Work that somebody wrote into while no hub was looking is made what it was, and never counts as done before that.
func TestEditedWorkWhileTheHubIsDown(t *testing.T) {
	f, a, b := placed(t)
	f.Stop()
	a.be(refuses)
	before := f.work("c", 0)
	edited := before.DeepCopy()
	edited.Spec.Workload.Manifests = nil
	if err := f.Update(t.Context(), edited); err != nil {
		t.Fatalf("edit the Work: %v", err)
	}
	a.be("") // it is well with what was written by hand
	framework.Await(t, f, edited, "is answered for", func(w *placementv1.Work) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionAvailable)
		return c != nil && c.ObservedGeneration == edited.Generation
	})
	a.be(silent)
	f.Writes.Take()
	f.Start()
	f.await(b, placementv1.ConditionApplied, isProgress)
	w := f.work("c", 0)
	if diff := cmp.Diff(before.Spec, w.Spec); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
	if w.Generation != edited.Generation+1 {
		t.Errorf("generation %d, want one more than %d", w.Generation, edited.Generation)
	}
	if got := f.writes(); got["update *v1.Work"] != 1 || got["patch *v1.Work"] != 0 {
		t.Errorf("writes %v, want one of the Work", got)
	}
	a.be("")
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	if b.Status.ObservedResourceIndex != "0" {
		t.Errorf("observed index %q", b.Status.ObservedResourceIndex)
	}
}

// A Work whose mark is lost, or wrong, though its manifests are what they should be, is marked again, and left alone then.
func TestWrongMark(t *testing.T) {
	f, _, b := placed(t)
	for _, mark := range []string{`null`, `"17"`} {
		before := f.work("c", 0)
		f.Change(before.DeepCopy(), `{"metadata":{"annotations":{"`+placementv1.AnnotationWrittenGeneration+`":`+mark+`}}}`)
		framework.Await(t, f, before, "is marked", func(w *placementv1.Work) bool { return w.Annotations[placementv1.AnnotationWrittenGeneration] == "1" })
		if before.Generation != 1 {
			t.Errorf("generation %d, want 1", before.Generation)
		}
		f.await(b, placementv1.ConditionAvailable, isAvailable)
	}
	f.writes()
	f.Stop()
	f.Start()
	if got := f.writes(); len(got) > 0 {
		t.Errorf("writes though nothing has changed: %v", got)
	}
}

// A Work that somebody has written into, or taken the labels off, is made what it was, and no more is written than that.
func TestEditedWork(t *testing.T) {
	f, a, b := placed(t)
	edits := map[string]string{
		"its manifests are taken out": `{"spec":{"workload":{"manifests":[]}}}`,
		"its labels are taken off":    `{"metadata":{"labels":null}}`,
		"one label is taken off":      `{"metadata":{"labels":{"` + placementv1.LabelParentBinding + `":null}}}`,
	}
	for name, edit := range edits {
		before := f.work("c", 0)
		if err := f.Patch(t.Context(), before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(edit))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		framework.Await(t, f, before, "is as it was, after "+name, func(w *placementv1.Work) bool {
			return len(w.Spec.Workload.Manifests) == len(before.Spec.Workload.Manifests) && maps.Equal(w.Labels, before.Labels)
		})
	}
	f.await(b, placementv1.ConditionAvailable, isAvailable)
	f.writes()
	f.tells(a, nil, nil)
}

// The namespace of a cluster may come later than its binding, and be slow to go.
func TestNamespaceComesLater(t *testing.T) {
	f := newFixture(t)
	f.snapshot(0, []string{"a"})
	f.join("c")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(f.Cluster("d"))}}
	b := f.bind("d", 0)
	f.await(b, placementv1.ConditionWorkSynchronized, "False/"+placementv1.ReasonWorkNotSynchronizedYet)
	if m := f.message(b, placementv1.ConditionWorkSynchronized); !strings.Contains(m, "not a member any more") {
		t.Errorf("message %q does not say what is waited for", m)
	}
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
		t.Fatalf("the namespace was made: %v", err)
	}
	f.join("d")
	f.await(b, placementv1.ConditionAvailable, isAvailable)
}
