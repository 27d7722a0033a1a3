package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

func raws(texts ...string) []placementv1.ResourceContent {
	content := []placementv1.ResourceContent{}
	for _, t := range texts {
		content = append(content, placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(t)}})
	}
	return content
}

func TestOverride(t *testing.T) {
	t.Parallel()
	s := &placementv1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "o-0"}}
	for _, name := range []string{"a", "lost"} {
		s.Spec.OverrideSpec.ResourceSelectors = append(s.Spec.OverrideSpec.ResourceSelectors, placementv1.ResourceOverrideSelector{Version: "v1", Kind: "ConfigMap", Name: name})
	}
	s.Spec.OverrideSpec.Policy = &placementv1.OverridePolicy{OverrideRules: []placementv1.OverrideRule{{
		ClusterSelector:    &placementv1.OverrideClusterSelector{},
		JSONPatchOverrides: []placementv1.JSONPatchOverride{{Operator: "replace", Path: "/data/x", Value: &apiextensionsv1.JSON{Raw: []byte("2")}}},
	}}}
	const (
		good  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"x":1}}`
		bad   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`
		lost  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lost","namespace":"ns"}}`
		other = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"ns"}}`
		was   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"x":0}}`
	)
	previous := func(id placementv1.ResourceIdentifier) ([]byte, error) {
		if id.Name == "a" {
			return []byte(was), nil
		}
		return nil, nil
	}
	tests := map[string]struct {
		content, want []placementv1.ResourceContent
		failures      int
	}{
		"all well":                       {content: raws(good, other), want: raws(strings.Replace(good, "1}}", "2}}", 1), other)},
		"one keeps what it was":          {content: raws(bad, other), want: raws(was, other), failures: 1},
		"one that was not stays out":     {content: raws(lost, other), want: raws(other), failures: 1},
		"what is no object is passed on": {content: raws("1", other), want: raws("1", other)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, failures, held, err := Override(tc.content, []placementv1.OverrideSnapshotObject{s}, override.Cluster{Name: "c"}, previous)
			if wantHeld := strings.HasPrefix(name, "one that was not"); (len(held) > 0) != wantHeld {
				t.Errorf("held %v", held)
			}
			if err != nil || len(failures) != tc.failures {
				t.Fatalf("failures %v, error %v, want %d failures", failures, err, tc.failures)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("manifests (-want +got):\n%s", diff)
			}
		})
	}
	unread := errors.New("cannot be read")
	if _, _, _, err := Override(raws(bad), []placementv1.OverrideSnapshotObject{s}, override.Cluster{Name: "c"},
		func(placementv1.ResourceIdentifier) ([]byte, error) { return nil, unread }); !errors.Is(err, unread) {
		t.Errorf("error %v where what was there cannot be read", err)
	}
}

// A Work is another one when its cluster gets other overrides, or has other labels that they ask for; and without overrides it
// is what it was.
func TestOverridesCount(t *testing.T) {
	t.Parallel()
	r := Revision{Index: "0", Hash: "h", Parts: []string{"app-0-snapshot"}}
	target := Target{Binding: "b", Cluster: "c"}
	plain := Works(target, r)[0]
	target.Overrides.ClusterResourceOverrideSnapshots = []string{"o-0"}
	target.Overrides.Labels = map[string]string{"a": "b"}
	overridden := Works(target, r)[0]
	FailOverrides(overridden, []FailedOverride{{Object: placementv1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "a"}, Message: "first"}, {Message: "second"}}, []placementv1.ResourceIdentifier{{Version: "v1", Kind: "ConfigMap", Name: "a"}})
	target.Overrides.Labels = map[string]string{"a": "c"}
	relabelled := Works(target, r)[0]
	if Same(overridden, plain) || Same(plain, overridden) || Same(overridden, relabelled) {
		t.Error("a Work with other overrides passes for the same")
	}
	if got := overridden.Annotations[placementv1.AnnotationOverrideFailed]; got != `[{"resourceIdentifier":{"version":"v1","kind":"ConfigMap","name":"a"},"message":"first"},{"resourceIdentifier":{"version":"","kind":"","name":""},"message":"second"}]` {
		t.Errorf("annotation %q", got)
	}
	if got := overridden.Annotations[placementv1.AnnotationHeldObjects]; got != `[{"version":"v1","kind":"ConfigMap","name":"a"}]` {
		t.Errorf("held objects %s", got)
	}
	back := Onto(overridden, plain)
	for _, key := range rendered {
		if _, there := back.Annotations[key]; there {
			t.Errorf("annotation %s stays when there are no overrides", key)
		}
	}
}

// However many objects cannot be overridden, the annotation stays within what an object has room for, and names the first.
func TestFailedOverridesAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		failures := make([]FailedOverride, rapid.IntRange(0, 500).Draw(t, "objects"))
		for i := range failures {
			failures[i].Object.Name = fmt.Sprint("o", i)
			failures[i].Message = strings.Repeat(rapid.SampledFrom([]string{"x", "é", "<", "😀"}).Draw(t, "letter"), rapid.IntRange(0, 2000).Draw(t, "length"))
		}
		w := &placementv1.Work{}
		FailOverrides(w, failures, nil)
		if n := len(w.Annotations[placementv1.AnnotationOverrideFailed]); n > maxFailedOverrides {
			t.Fatalf("%d bytes", n)
		}
		got := FailedOverridesOf(w)
		if len(failures) > 0 && len(got) == 0 || len(got) > len(failures) {
			t.Fatalf("%d of %d objects", len(got), len(failures))
		}
		for i := range got {
			if got[i].Object != failures[i].Object || got[i].Message != placement.Quote(failures[i].Message) {
				t.Fatalf("object %d: %+v, want %+v", i, got[i], failures[i])
			}
		}
	})
}

// TestFailedOverridesThatSomebodyWrote has an annotation that is none of the hub's.
func TestFailedOverridesThatSomebodyWrote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]FailedOverride{"": nil, "[]": {}, "broken": {{Message: "broken"}}, "{": {{Message: "{"}}} {
		w := &placementv1.Work{}
		w.Annotations = map[string]string{placementv1.AnnotationOverrideFailed: text}
		if diff := cmp.Diff(want, FailedOverridesOf(w)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
