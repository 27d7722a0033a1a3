package apply

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// TestMergeKeepsNoOldRecord merges objects of which no record is kept, where an earlier merge had kept one.
func TestMergeKeepsNoOldRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind, value string
		records     bool
	}{
		"a small object": {"ConfigMap", "new", true},
		"a large object": {"ConfigMap", strings.Repeat("x", maxAnnotation), false},
		"a Secret":       {"Secret", "bmV3", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := func(value string) *unstructured.Unstructured {
				o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": value}}}
				o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: tc.kind})
				o.SetNamespace("app")
				o.SetName("a")
				return o
			}
			live := object("old")
			live.SetUID("u")
			live.SetAnnotations(map[string]string{annotationLastApplied: `{"data":{"key":"old","dropped":"x"}}`, "theirs": "x"})
			live.Object["data"].(map[string]any)["dropped"] = "x"
			gvr := schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(tc.kind) + "s"}
			client := fake.NewSimpleDynamicClient(runtime.NewScheme(), live).Resource(gvr).Namespace("app")
			id := placementv1.WorkResourceIdentifier{Kind: tc.kind, Namespace: "app", Name: "a"}
			w := &attempt{
				pass: &pass{owner: &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "w"}}}, client: client,
				manifest: &manifest{id: id, key: keyOfID(&id)}, wanted: object(tc.value), live: live,
			}
			if err := w.merge(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := w.manifest.live
			record := got.GetAnnotations()[annotationLastApplied]
			if (record != "") != tc.records || strings.Contains(record, "old") {
				t.Errorf("the record is %.100q, want one: %t", record, tc.records)
			}
			data, _, _ := unstructured.NestedStringMap(got.Object, "data")
			if len(data) != 1 || data["key"] != tc.value || got.GetAnnotations()["theirs"] != "x" {
				t.Errorf("the object has %d values and the annotations %d", len(data), len(got.GetAnnotations()))
			}
		})
	}
}
