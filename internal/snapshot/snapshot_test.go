package snapshot_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// drawObjects draws a selection: distinct objects, most small, some larger than a part.
func drawObjects(t *rapid.T) []snapshot.Object {
	kinds := []string{"ConfigMap", "Secret", "Widget"}
	n := rapid.IntRange(0, 12).Draw(t, "objects")
	var objects []snapshot.Object
	for i := range n {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": rapid.SampledFrom(kinds).Draw(t, "kind")}}
		o.SetName(fmt.Sprintf("o%d", i))
		o.SetNamespace(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"))
		size := rapid.SampledFrom([]int{10, 1000, 300_000, 500_000, snapshot.MaxPart + 10}).Draw(t, "size")
		o.Object["data"] = map[string]any{"x": strings.Repeat("x", size)}
		made, err := snapshot.NewObject(o)
		if err != nil {
			t.Fatalf("make an object: %v", err)
		}
		objects = append(objects, made)
	}
	return objects
}

func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		snapshot.Sort(objects)
		parts := snapshot.Split(objects)
		if len(parts) == 0 {
			t.Fatal("no part")
		}
		if got := slices.Concat(parts...); len(got) != len(objects) {
			t.Fatalf("%d objects in parts, want %d", len(got), len(objects))
		}
		i := 0
		for p, part := range parts {
			size := 0
			for _, o := range part {
				if o.ResourceIdentifier != objects[i].ResourceIdentifier {
					t.Fatalf("part %d: %s out of order", p, o.Name)
				}
				i++
				size += len(o.Content)
			}
			if size > snapshot.MaxPart && len(part) > 1 {
				t.Fatalf("part %d has %d bytes in %d objects", p, size, len(part))
			}
			if p > 0 && len(part) == 0 {
				t.Fatalf("part %d is empty", p)
			}
			if p > 0 {
				before := 0
				for _, o := range parts[p-1] {
					before += len(o.Content)
				}
				if before+len(part[0].Content) <= snapshot.MaxPart {
					t.Fatalf("part %d was closed too early", p-1)
				}
			}
		}
	})
}

func TestHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		shuffled := rapid.Permutation(objects).Draw(t, "order")
		snapshot.Sort(objects)
		snapshot.Sort(shuffled)
		want := snapshot.Hash(objects)
		if got := snapshot.Hash(shuffled); got != want || len(got) != 64 {
			t.Fatalf("hash depends on the order in which objects were found: %s, %s", got, want)
		}
		if len(objects) > 0 && snapshot.Hash(objects[1:]) == want {
			t.Fatal("hash does not notice a missing object")
		}
	})
}

// TestHashIsStable fails when a new version of the hub would make a new revision of everything.
func TestHashIsStable(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "a", "namespace": "b"}, "data": map[string]any{"k": "<v>", "a": "b"},
	}}
	made, err := snapshot.NewObject(o)
	if err != nil {
		t.Fatal(err)
	}
	const content = `{"apiVersion":"v1","data":{"a":"b","k":"\u003cv\u003e"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`
	if diff := cmp.Diff(content, string(made.Content)); diff != "" {
		t.Errorf("unexpected content (-want +got):\n%s", diff)
	}
	const hash = "921552603c01c22fcf6fe4a020cab1854e6999face7e4768b372423638101635"
	if got := snapshot.Hash([]snapshot.Object{made}); got != hash {
		t.Errorf("hash %s, want %s", got, hash)
	}
}

func object(index int, sub int, count int, marks ...string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.Labels = map[string]string{placementv1.LabelResourceIndex: strconv.Itoa(index)}
	o.Annotations = map[string]string{}
	if sub >= 0 {
		o.Name = placement.ResourceSnapshotPartName("p", index, sub)
		o.Annotations[placementv1.AnnotationSnapshotSubindex] = strconv.Itoa(sub)
		return o
	}
	o.Name = placement.ResourceSnapshotName("p", index)
	o.Annotations[placementv1.AnnotationSnapshotCount] = strconv.Itoa(count)
	o.Annotations[placementv1.AnnotationResourceHash] = fmt.Sprintf("hash%d", index)
	for _, mark := range marks {
		if mark == "latest" {
			o.Labels[placementv1.LabelIsLatestSnapshot] = "true"
			continue
		}
		o.Annotations[placementv1.AnnotationAvailable] = mark
	}
	return o
}

func TestGroups(t *testing.T) {
	stray := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "stray", Labels: map[string]string{placementv1.LabelResourceIndex: "x"}}}
	second := object(2, -1, 1, "latest", "9")
	second.CreationTimestamp = metav1.Unix(9, 0)
	groups := snapshot.Groups([]*metav1.PartialObjectMetadata{
		object(10, 1, 0), second, object(10, 0, 0), stray, object(9, 0, 0), object(9, -1, 3, "10"), object(10, -1, 3, "edited"),
	})
	want := []snapshot.Group{
		{Index: 2, Created: time.Unix(9, 0), Master: "p-2-snapshot", Hash: "hash2", Count: 1, Latest: []string{"p-2-snapshot"}, Available: 9},
		{Index: 9, Master: "p-9-snapshot", Parts: []string{"p-9-0"}, Hash: "hash9", Count: 3, Available: 10, LastAvailable: true},
		{Index: 10, Master: "p-10-snapshot", Parts: []string{"p-10-0", "p-10-1"}, Hash: "hash10", Count: 3},
	}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Fatalf("unexpected groups (-want +got):\n%s", diff)
	}
	if latest := snapshot.Latest(groups); latest == nil || latest.Index != 10 {
		t.Errorf("latest is %v, want 10", latest)
	}
	if latest := snapshot.Latest(groups[:2]); latest == nil || latest.Index != 2 {
		t.Errorf("latest is %v, want 2: 9 is not whole", latest)
	}
	if next := snapshot.Next(groups, 3, 17); next != 18 {
		t.Errorf("next is %d, want 18: 17 is in use", next)
	}
	if next := snapshot.Next(nil); next != 0 {
		t.Errorf("the first index is %d", next)
	}
}

func TestPrune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var objects []*metav1.PartialObjectMetadata
		used := map[int]bool{}
		now := time.Unix(0, 0)
		for index := range rapid.IntRange(0, 12).Draw(t, "revisions") {
			parts := rapid.IntRange(0, 2).Draw(t, "parts")
			now = now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "minutes")) * time.Minute)
			for sub := range parts {
				o := object(index, sub, 0)
				o.CreationTimestamp = metav1.NewTime(now)
				objects = append(objects, o)
			}
			used[index] = rapid.Bool().Draw(t, "used")
			if rapid.IntRange(0, 4).Draw(t, "master") > 0 {
				var marks []string
				if rapid.IntRange(0, 5).Draw(t, "available") == 0 {
					marks = append(marks, strconv.Itoa(rapid.IntRange(1, 20).Draw(t, "mark")))
				}
				o := object(index, -1, parts+1, marks...)
				o.CreationTimestamp = metav1.NewTime(now)
				objects = append(objects, o)
			}
		}
		groups := snapshot.Groups(objects)
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		doomed := snapshot.Prune(groups, limit, func(index int) bool { return used[index] })
		gone := map[int]bool{}
		for _, g := range doomed {
			gone[g.Index] = true
			if used[g.Index] || g.LastAvailable {
				t.Fatalf("revision %d is needed", g.Index)
			}
		}
		latest := snapshot.Latest(groups)
		kept := 0
		for i := len(groups) - 1; i >= 0; i-- {
			g := groups[i]
			switch {
			case latest == nil || g.Index >= latest.Index:
				if gone[g.Index] {
					t.Fatalf("revision %d is the latest, or being made", g.Index)
				}
			case g.Master == "" && !used[g.Index] && gone[g.Index] != (latest.Created.Sub(g.Created) >= time.Hour):
				t.Fatalf("revision %d, half-made %s before the latest: gone %t", g.Index, latest.Created.Sub(g.Created), gone[g.Index])
			case g.Master != "" && !gone[g.Index] && !used[g.Index] && !g.LastAvailable && kept >= limit:
				t.Fatalf("revision %d is kept beyond the limit", g.Index)
			case g.Master != "" && gone[g.Index] && kept < limit:
				t.Fatalf("revision %d is gone, within the limit", g.Index)
			}
			if g.Master != "" && latest != nil && g.Index <= latest.Index {
				kept++
			}
		}
	})
}
