package render

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

var target = Target{Placement: placement.Key{Name: "app"}, PlacementUID: "uid", Binding: "app-c-1234", Cluster: "c"}

var mirror = &placementv1.ReportBackStrategy{
	Type: placementv1.ReportBackStrategyTypeMirror, Destination: placementv1.ReportBackDestinationWorkAPI,
}

func TestWorks(t *testing.T) {
	t.Parallel()
	r := Revision{Index: "3", Hash: "hash", Parts: []string{"app-3-snapshot", "app-3-0"}}
	want := func(name, part, hash string) *placementv1.Work {
		return &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "fleet-member-c", Finalizers: []string{"kubernetes-fleet.io/work-cleanup"},
			Labels: map[string]string{
				"kubernetes-fleet.io/parent-CRP":                     "app",
				"kubernetes-fleet.io/parent-resource-binding":        "app-c-1234",
				"kubernetes-fleet.io/parent-resource-snapshot-index": "3",
			},
			Annotations: map[string]string{
				"fleetwright.io/placement-uid":                      "uid",
				"fleetwright.io/work-count":                         "2",
				"fleetwright.io/content-hash":                       hash,
				"fleetwright.io/written-generation":                 "1",
				"kubernetes-fleet.io/parent-resource-snapshot-name": part,
			},
		}}
	}
	works := Works(target, r)
	if diff := cmp.Diff([]*placementv1.Work{
		want("app-work", "app-3-snapshot", contentHash(target, r, 0)), want("app-0", "app-3-0", contentHash(target, r, 1))}, works); diff != "" {
		t.Errorf("works (-want +got):\n%s", diff)
	}

	reporting := target
	reporting.ReportBackStrategy = mirror
	for _, w := range Works(reporting, r) {
		if diff := cmp.Diff(mirror, w.Spec.ReportBackStrategy); diff != "" {
			t.Errorf("the strategy of %s (-want +got):\n%s", w.Name, diff)
		}
	}

	inNamespace := target
	inNamespace.Placement.Namespace = "ns"
	w := Works(inNamespace, r)[0]
	if w.Name != "ns.app.work" || w.Labels[placementv1.LabelParentNamespace] != "ns" || !inNamespace.Belongs(w) || target.Belongs(w) {
		t.Errorf("a namespaced placement's Work is %+v", w.ObjectMeta)
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	r := Revision{Index: "3", Hash: "hash", Parts: []string{"app-3-snapshot"}}
	tests := map[string]struct {
		change func(*placementv1.Work)
		want   bool
	}{
		"as it was made":                  {func(*placementv1.Work) {}, true},
		"with manifests of others":        {func(w *placementv1.Work) { w.Generation = 3 }, false},
		"with manifests from another hub": {func(w *placementv1.Work) { w.Generation = 1 }, false},
		"without its generation": {func(w *placementv1.Work) {
			delete(w.Annotations, placementv1.AnnotationWrittenGeneration)
		}, false},
		"with labels and annotations of others": {func(w *placementv1.Work) {
			w.Labels["theirs"], w.Annotations["theirs"] = "x", "y"
		}, true},
		"without its finalizer": {func(w *placementv1.Work) { w.Finalizers = nil }, false},
		"of another snapshot": {func(w *placementv1.Work) {
			w.Annotations[placementv1.AnnotationParentSnapshotName] = "app-2-snapshot"
		}, false},
		"of another content": {func(w *placementv1.Work) { w.Annotations[placementv1.AnnotationContentHash] = "x" }, false},
		"made by a hub that noted no content": {func(w *placementv1.Work) {
			delete(w.Annotations, placementv1.AnnotationContentHash)
		}, false},
		"of another apply strategy": {func(w *placementv1.Work) {
			w.Spec.ApplyStrategy = &placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff}
		}, false},
		"reporting statuses back": {func(w *placementv1.Work) { w.Spec.ReportBackStrategy = mirror }, false},
		"not reporting statuses back, in words": {func(w *placementv1.Work) {
			w.Spec.ReportBackStrategy = &placementv1.ReportBackStrategy{Type: placementv1.ReportBackStrategyTypeDisabled}
		}, true},
		"marked for removal": {func(w *placementv1.Work) {
			w.Annotations[placementv1.AnnotationRemovalConfirmed] = "true"
		}, false},
		"stripped": {func(w *placementv1.Work) { w.Labels, w.Annotations = nil, nil }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there, wanted := Works(target, r)[0], Works(target, r)[0]
			there.UID, there.ResourceVersion, there.Generation = "uid-w", "7", 2
			MarkWritten(there)
			there.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
			tc.change(there)
			if got := Same(there, wanted); got != tc.want {
				t.Errorf("same: %v, want %v", got, tc.want)
			}
			Fill(wanted, []placementv1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(`{}`)}}})
			onto := Onto(there, wanted)
			MarkWritten(onto) // as whoever writes it does
			if !Same(onto, wanted) || len(onto.Spec.Workload.Manifests) != 1 {
				t.Errorf("written over the existing one, it is not what is wanted: %+v", onto)
			}
			if onto.UID != "uid-w" || onto.ResourceVersion != "7" || len(onto.Status.Conditions) > 0 {
				t.Errorf("what is written is not a change of the existing one alone: %+v", onto)
			}
		})
	}
}

// What is written carries the generation that it will have as far as that can be told, so that it is written once.
func TestGenerationToCome(t *testing.T) {
	t.Parallel()
	r := Revision{Index: "3", Hash: "hash", Parts: []string{"app-3-snapshot"}}
	for name, tc := range map[string]struct {
		change func(*placementv1.Work)
		want   string
	}{
		"a label is missing": {func(w *placementv1.Work) { w.Labels = nil }, "7"},
		"another content":    {func(w *placementv1.Work) { w.Annotations[placementv1.AnnotationContentHash] = "x" }, "8"},
		"another report":     {func(w *placementv1.Work) { w.Spec.ReportBackStrategy = mirror }, "8"},
		"edited by hand":     {func(w *placementv1.Work) { w.Generation = 8 }, "9"},
		"never marked": {func(w *placementv1.Work) {
			delete(w.Annotations, placementv1.AnnotationWrittenGeneration)
		}, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := Works(target, r)[0]
			there.Generation = 7
			MarkWritten(there)
			tc.change(there)
			if got := Onto(there, Works(target, r)[0]).Annotations[placementv1.AnnotationWrittenGeneration]; got != tc.want {
				t.Errorf("generation %s, want %s", got, tc.want)
			}
		})
	}
}

// Two Works are the same only where the manifests they were rendered from are.
func TestHashTellsContentsApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (Revision, int) {
			n := rapid.IntRange(1, 3).Draw(t, label+" parts")
			return Revision{Index: "1", Hash: rapid.SampledFrom([]string{"a", "b", "a\x001"}).Draw(t, label), Parts: make([]string, n)},
				rapid.IntRange(0, n-1).Draw(t, label+" part")
		}
		x, i := draw("x")
		y, j := draw("y")
		if same := x.Hash == y.Hash && i == j && len(x.Parts) == len(y.Parts); same != (contentHash(Target{}, x, i) == contentHash(Target{}, y, j)) {
			t.Fatalf("part %d of %d of %q, and part %d of %d of %q: same %v, but hashes say otherwise", i, len(x.Parts), x.Hash, j, len(y.Parts), y.Hash, same)
		}
	})
}
