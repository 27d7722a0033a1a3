package snapshots_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFirstRevision(t *testing.T) {
	f := newFixture(t, "first")
	f.selects("x", 1)
	if index := f.ensure(f.store()); index != 0 {
		t.Fatalf("the first index is %d", index)
	}
	all := f.all()
	if len(all) != 1 {
		t.Fatalf("%d snapshots", len(all))
	}
	got := all[0]
	want := metav1.ObjectMeta{
		Name: "first-0-snapshot",
		Labels: map[string]string{
			"kubernetes-fleet.io/is-latest-snapshot": "true",
			"kubernetes-fleet.io/parent-CRP":         "first",
			"kubernetes-fleet.io/resource-index":     "0",
		},
		Annotations: map[string]string{
			"kubernetes-fleet.io/number-of-enveloped-object":   "0",
			"kubernetes-fleet.io/number-of-resource-snapshots": "1",
			"kubernetes-fleet.io/resource-hash":                snapshot.Hash(contents(t, "x", 1)),
			"fleetwright.io/placement-uid":                     string(f.p.UID),
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "placement.kubernetes-fleet.io/v1", Kind: "ClusterResourcePlacement", Name: "first", UID: f.p.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}
	o := metav1.ObjectMeta{Name: got.GetName(), Labels: got.GetLabels(), Annotations: got.GetAnnotations(), OwnerReferences: got.GetOwnerReferences()}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("unexpected metadata (-want +got):\n%s", diff)
	}
	if got.GetGeneration() != 1 {
		t.Errorf("generation %d", got.GetGeneration())
	}
	version := got.GetResourceVersion()
	if index := f.ensure(f.store()); index != 0 || f.all()[0].GetResourceVersion() != version {
		t.Errorf("the same selection gave index %d, and a write", index)
	}
}

func TestEmptySelection(t *testing.T) {
	f := newFixture(t, "empty")
	f.ensure(f.store())
	if got := f.names(); !slices.Equal(got, []string{"0-snapshot*"}) {
		t.Errorf("got %v", got)
	}
	if contents, err := f.store().Contents(t.Context(), f.p, 0); err != nil || len(contents) != 0 {
		t.Errorf("contents %v, %v", contents, err)
	}
}

func TestPartsAndContents(t *testing.T) {
	f := newFixture(t, "parts")
	f.selects("x", 700, 700, 900, 10, 10)
	f.ensure(f.store())
	if diff := cmp.Diff([]string{"0-0", "0-1", "0-2", "0-snapshot*"}, f.names()); diff != "" {
		t.Errorf("unexpected snapshots (-want +got):\n%s", diff)
	}
	contents, err := f.store().Contents(t.Context(), f.p, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, id := range contents {
		names = append(names, snapshot.Describe(id))
	}
	want := []string{"ConfigMap demo/c0", "ConfigMap demo/c1", "ConfigMap demo/c2", "ConfigMap demo/c3", "ConfigMap demo/c4"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("unexpected contents (-want +got):\n%s", diff)
	}
	for _, o := range f.all() {
		if o.GetName() == "parts-0-1" {
			if err := f.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := f.store().Contents(t.Context(), f.p, 0); err == nil {
		t.Error("a damaged snapshot was read as if it were whole")
	}
	if index := f.ensure(f.store()); index != 1 {
		t.Errorf("a damaged snapshot was used: index %d", index)
	}
}

// TestCrashAfterAnyWrite: whichever write is the last, what there is stays usable, and the next hub comes to the same end.
func TestCrashAfterAnyWrite(t *testing.T) {
	writes := 0
	for done := false; !done; writes++ {
		f := newFixture(t, fmt.Sprintf("crash-%d", writes))
		f.p.Spec.RevisionHistoryLimit = ptr.To[int32](1)
		f.selects("a", 500, 500)
		f.ensure(f.store())
		f.selects("b", 500, 500, 500)
		_, err := f.storeOf(f.crashing(writes)).Ensure(t.Context(), f.p)
		if done = err == nil; !done && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		f.checkUsable()
		if err := f.store().RepairLatest(t.Context(), f.p); err != nil {
			t.Fatal(err)
		}
		if labelled(f.names()) != 1 {
			t.Errorf("after write %d and a repair, the latest: %v", writes, f.names())
		}
		if index := f.ensure(f.store()); index != 1 {
			t.Errorf("after write %d: index %d, want 1", writes, index)
		}
		if diff := cmp.Diff([]string{"1-0", "1-1", "1-snapshot*"}, f.names()); diff != "" {
			t.Errorf("after write %d (-want +got):\n%s", writes, diff)
		}
	}
	if writes < 7 {
		t.Errorf("there were only %d writes", writes)
	}
}

// TestCrashAndChange: what was begun for one selection is never finished with another one.
func TestCrashAndChange(t *testing.T) {
	for writes := range 3 {
		f := newFixture(t, fmt.Sprintf("change-%d", writes))
		f.selects("a", 500, 500, 500)
		if _, err := f.storeOf(f.crashing(writes)).Ensure(t.Context(), f.p); !errors.Is(err, errCrash) {
			t.Fatalf("got %v, want a crash", err)
		}
		f.selects("b", 500, 500, 500)
		index := f.ensure(f.store())
		f.checkUsable()
		if want := min(writes, 1); index != want {
			t.Errorf("after write %d: index %d, want %d", writes, index, want)
		}
		for _, o := range f.all() {
			ours := o.GetLabels()[placementv1.LabelResourceIndex] == fmt.Sprint(index)
			for _, resource := range o.ResourceSnapshotSpec().SelectedResources {
				if ours && strings.Contains(string(resource.Raw), "aaa") {
					t.Errorf("after write %d, %s holds what is not selected any more, in %v", writes, o.GetName(), f.names())
				}
			}
		}
	}
}

// checkUsable checks that no more than one revision is labelled as the latest, that it is whole, and that each revision is
// of one content.
func (f *fixture) checkUsable() {
	f.t.Helper()
	all := f.all()
	if n := labelled(f.names()); n > 1 {
		f.t.Errorf("%d snapshots are the latest: %v", n, f.names())
	}
	byName := map[string]placementv1.ResourceSnapshotObject{}
	for _, o := range all {
		byName[o.GetName()] = o
	}
	for _, g := range snapshot.Groups(all) {
		if g.Master == "" {
			continue
		}
		if len(g.Latest) > 0 && !g.Complete() {
			f.t.Errorf("revision %d is the latest and not whole: %v", g.Index, f.names())
		}
		for _, part := range g.Parts {
			if byName[part].GetAnnotations()[placementv1.AnnotationPartOf] != g.Hash {
				f.t.Errorf("%s is not a part of revision %d", part, g.Index)
			}
		}
	}
}

func labelled(names []string) int {
	return len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, "*") }))
}

// TestTwoWriters: hubs that make revisions of different selections at the same time, which happens when one takes over
// from another, never make one revision of two contents.
func TestTwoWriters(t *testing.T) {
	f := newFixture(t, "two")
	f.p.Spec.RevisionHistoryLimit = ptr.To[int32](100)
	var all sync.WaitGroup
	for writer := range 3 {
		all.Go(func() {
			mine := &fixture{Client: f.Client, t: t, p: f.p}
			store := mine.store()
			for i := range 4 {
				mine.selects(string(rune('a'+writer*4+i)), 500, 500, 500)
				for {
					_, err := store.Ensure(t.Context(), f.p)
					if err == nil {
						break
					}
					if !apierrors.IsConflict(err) && !strings.Contains(err.Error(), "somebody else made one") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	f.selects("z", 1)
	f.ensure(f.store())
	f.checkUsable()
	if labelled(f.names()) != 1 {
		t.Errorf("the latest: %v", f.names())
	}
	for _, g := range snapshot.Groups(f.all()) {
		if g.Master != "" && !g.Complete() {
			t.Errorf("revision %d has a master and is not whole: %v", g.Index, f.names())
		}
	}
}

func TestPruning(t *testing.T) {
	f := newFixture(t, "prune")
	f.p.Spec.RevisionHistoryLimit = ptr.To[int32](2)
	store := f.store()
	revise := func(letter string) { f.selects(letter, 1); f.ensure(store) }
	revise("a") // 0: a binding is on it
	f.bind("m1", 0)
	revise("b") // 1: an unfinished run rolls it out
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "prune"}}
	run.Spec = placementv1.UpdateRunSpec{PlacementName: f.p.Name, ResourceSnapshotIndex: "1", StagedUpdateStrategyName: "s"}
	if err := f.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Delete(framework.CleanupContext(t), run); err != nil {
			t.Error(err)
		}
	})
	revise("c") // 2: was available everywhere
	if err := store.MarkAvailable(t.Context(), f.p, 2); err != nil {
		t.Fatal(err)
	}
	for _, letter := range []string{"d", "e", "f"} { // 3 is pruned, 4 and 5 stay
		revise(letter)
	}
	if diff := cmp.Diff([]string{"0-snapshot", "1-snapshot", "2-snapshot", "4-snapshot", "5-snapshot*"}, f.names()); diff != "" {
		t.Fatalf("unexpected snapshots (-want +got):\n%s", diff)
	}
	// Once nobody needs them any more they go.
	run.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: metav1.Now()}}
	if err := f.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := store.MarkAvailable(t.Context(), f.p, 4); err != nil {
		t.Fatal(err)
	}
	revise("g")
	if diff := cmp.Diff([]string{"0-snapshot", "4-snapshot", "5-snapshot", "6-snapshot*"}, f.names()); diff != "" {
		t.Errorf("unexpected snapshots (-want +got):\n%s", diff)
	}
}

// TestIndexIsNotGivenTwice: an index that a binding names means the same for ever, even if somebody deletes the snapshots.
func TestIndexIsNotGivenTwice(t *testing.T) {
	f := newFixture(t, "again")
	f.selects("a", 1)
	f.ensure(f.store())
	f.bind("m1", 0)
	for _, o := range f.all() {
		if err := f.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	f.selects("b", 1)
	if index := f.ensure(f.store()); index != 1 {
		t.Errorf("index %d was given again", index)
	}
}

// TestEarlierPlacement: what an earlier placement of the same name left is neither adopted nor in the way.
func TestEarlierPlacement(t *testing.T) {
	f := newFixture(t, "earlier")
	f.selects("a", 1)
	f.ensure(f.store())
	if err := f.Delete(t.Context(), f.p); err != nil {
		t.Fatal(err)
	}
	f.p = &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "earlier"}, Spec: f.p.Spec}
	if err := f.Create(t.Context(), f.p); err != nil {
		t.Fatal(err)
	}
	if index := f.ensure(f.store()); index != 1 {
		t.Errorf("index %d", index)
	}
}

// TestStripped: a snapshot that lost a label by hand gets it back, and one of somebody else that is in the way is named.
func TestStripped(t *testing.T) {
	f := newFixture(t, "stripped")
	f.selects("a", 900, 900)
	f.ensure(f.store())
	whole := f.names()
	for _, key := range []string{placementv1.LabelParentPlacement, placementv1.LabelResourceIndex} {
		for _, o := range f.all() {
			before, ok := o.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatalf("a copy of %s is no object", o.GetName())
			}
			delete(o.GetLabels(), key)
			if err := f.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
		if index := f.ensure(f.store()); index != 0 {
			t.Errorf("without label %s index %d was made", key, index)
		}
		if diff := cmp.Diff(whole, f.names()); diff != "" {
			t.Errorf("after label %s was taken (-want +got):\n%s", key, diff)
		}
	}
	stranger := &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "stripped-1-snapshot"}}
	stranger.Spec.SelectedResources = []placementv1.ResourceContent{}
	if err := f.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Delete(framework.CleanupContext(t), stranger); err != nil {
			t.Error(err)
		}
	})
	f.selects("b", 1)
	if _, err := f.store().Ensure(t.Context(), f.p); err == nil || !strings.Contains(err.Error(), "stripped-1-snapshot was not made for this placement") {
		t.Errorf("error %v", err)
	}
}

// TestVanishedKind: objects of a kind that the hub does not serve any more are not taken for gone.
func TestVanishedKind(t *testing.T) {
	f := newFixture(t, "vanished")
	f.selects("a", 1, 1)
	store := f.store()
	f.ensure(store)
	store.Selector = vanished{}
	before := f.names()
	_, err := store.Ensure(t.Context(), f.p)
	if !selection.IsIncomplete(err) || !strings.Contains(err.Error(), "ConfigMap, of which there are objects in the latest resource snapshot") {
		t.Errorf("got %v, want an IncompleteError that names the kind", err)
	}
	if diff := cmp.Diff(before, f.names()); diff != "" {
		t.Errorf("something has changed (-before +after):\n%s", diff)
	}
}

func TestNoSnapshotOfWhatIsNotKnown(t *testing.T) {
	f := newFixture(t, "unknown")
	f.err = &selection.IncompleteError{Unread: "x", Err: errors.New("y")}
	if _, err := f.store().Ensure(t.Context(), f.p); !selection.IsIncomplete(err) {
		t.Errorf("got %v", err)
	}
	if got := f.names(); len(got) > 0 {
		t.Errorf("made %v", got)
	}
}

func TestMarkAvailable(t *testing.T) {
	f := newFixture(t, "marked")
	store := f.store()
	for _, letter := range []string{"a", "b"} {
		f.selects(letter, 1)
		f.ensure(store)
	}
	marked := func() []string {
		var names []string
		for _, g := range snapshot.Groups(f.all()) {
			if g.LastAvailable {
				names = append(names, g.Master)
			}
		}
		return names
	}
	var writes framework.Writes
	counted := f.storeOf(writes.Count(f.Client))
	for _, index := range []int{0, 1, 1, 0} {
		if err := counted.MarkAvailable(t.Context(), f.p, index); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{placement.ResourceSnapshotName("marked", index)}, marked()); diff != "" {
			t.Errorf("unexpected marks (-want +got):\n%s", diff)
		}
	}
	if got := writes.Take(); len(got) != 1 || got["patch *v1.PartialObjectMetadata"] != 3 {
		t.Errorf("writes: %v, want one for each change", got)
	}
	for _, o := range f.all() {
		if len(o.ResourceSnapshotSpec().SelectedResources) != 1 {
			t.Errorf("%s lost its content", client.ObjectKeyFromObject(o))
		}
	}
}
