package drift

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const manager = "us"

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	const (
		ours   = `{manager: us, operation: Apply, time: "2026-01-01T00:00:00Z", fieldsV1: {"f:data": {"f:a": {}}}}`
		theirs = `{manager: them, operation: Update, fieldsV1: {"f:data": {"f:b": {}}}}`
	)
	applied := `{metadata: {name: x, uid: "1", resourceVersion: "1", managedFields: [` + ours + `]}, data: {a: "1"}}`
	plain := `{metadata: {name: x, uid: "1", resourceVersion: "1"}, data: {a: "1"}}`
	for name, tc := range map[string]struct {
		before, after string
		same          bool
	}{
		"nothing":                    {applied, applied, true},
		"others change their fields": {applied, `{metadata: {name: x, uid: "1", resourceVersion: "2", managedFields: [` + theirs + `, ` + ours + `]}, data: {a: "1", b: "2"}}`, true},
		"a status of our own name": {applied, `{metadata: {name: x, uid: "1", managedFields: [{manager: us, operation: Apply, subresource: status, fieldsV1: {}}, ` + ours + `]}, data: {a: "1"}}`,
			true},
		"a field is taken from us": {applied, `{metadata: {name: x, uid: "1", managedFields: [{manager: us, operation: Apply, time: "2026-01-01T00:00:00Z", fieldsV1: {}}]}, data: {a: "2"}}`, false},
		"under our name":           {applied, `{metadata: {name: x, uid: "1", managedFields: [{manager: us, operation: Apply, time: "2026-01-01T00:00:09Z", fieldsV1: {"f:data": {"f:a": {}}}}]}, data: {a: "2"}}`, false},
		"merged since it was applied": {`{metadata: {name: x, uid: "1", annotations: {"kubernetes-fleet.io/last-applied-configuration": ""}, managedFields: [` + ours + `]}, data: {a: "1"}}`,
			`{metadata: {name: x, uid: "1", annotations: {"kubernetes-fleet.io/last-applied-configuration": ""}, managedFields: [` + ours + `]}, data: {a: "2"}}`, false},
		"all owners are wiped": {applied, plain, false},
		"made anew":            {applied, `{metadata: {name: x, uid: "2", managedFields: [` + ours + `]}, data: {a: "1"}}`, false},
		"not applied by us, counts": {plain, `{metadata: {name: x, uid: "1", resourceVersion: "5", generation: 3, managedFields: [` + theirs + `]}, data: {a: "1"}, status: {x: y}}`,
			true},
		"not applied by us, content": {plain, `{metadata: {name: x, uid: "1"}, data: {a: "2"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Fingerprint(object(t, tc.before), manager) == Fingerprint(object(t, tc.after), manager)
			if got != tc.same {
				t.Errorf("the same: %t, want %t", got, tc.same)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	before := `{metadata: {name: x, uid: "1", resourceVersion: "1", labels: {a/b: c}}, spec: {replicas: 1, list: [{a: 1}, {b: 2}], gone: x}, status: {ready: 1}}`
	for name, tc := range map[string]struct {
		after string
		want  []string
	}{
		"what the server counts": {`{metadata: {name: x, uid: "1", resourceVersion: "9", generation: 7, labels: {a/b: c}}, spec: {replicas: 1, list: [{a: 1}, {b: 2}], gone: x}, status: {ready: 2}}`, nil},
		"fields": {`{metadata: {name: x, uid: "1", labels: {a/b: d}}, spec: {replicas: 2, list: [{a: 1}, {b: 3}], new: y}}`,
			[]string{"/metadata/labels/a~1b", "/spec/gone", "/spec/list/1/b", "/spec/new", "/spec/replicas"}},
		"a longer list": {`{metadata: {name: x, uid: "1", labels: {a/b: c}}, spec: {replicas: 1, list: [{a: 1}], gone: x}}`, []string{"/spec/list"}},
		"another shape": {`{metadata: {name: x, uid: "1", labels: {a/b: c}}, spec: text}`, []string{"/spec"}},
		"made anew":     {`{metadata: {name: x, uid: "2"}}`, []string{"/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Paths(object(t, before), object(t, tc.after))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"/"}, Paths(nil, object(t, before))); diff != "" {
		t.Errorf("an object that was not there (-want +got):\n%s", diff)
	}
}

func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	a, b := map[string]any{}, map[string]any{}
	for i := range 500 {
		a[fmt.Sprint(i)], b[fmt.Sprint(i)] = "a", "b"
	}
	got := Paths(&unstructured.Unstructured{Object: map[string]any{"data": a}}, &unstructured.Unstructured{Object: map[string]any{"data": b}})
	if len(got) != maxPaths {
		t.Errorf("%d paths, want %d", len(got), maxPaths)
	}
}
