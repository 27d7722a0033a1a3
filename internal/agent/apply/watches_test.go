package apply

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func seenObject(kind, name string, version int) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "value"}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	o.SetNamespace("app")
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetResourceVersion(strconv.Itoa(version))
	return o
}

func TestWatchesTellOfNewsAlone(t *testing.T) {
	t.Parallel()
	var told []string
	w := newWatches(nil, nil, func(work string) { told = append(told, work) }, nil)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	key := func(name string) objectKey {
		return objectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, namespace: "app", name: name}
	}
	w.set("web", map[objectKey]schema.GroupVersionResource{key("a"): configMaps, key("b"): configMaps})
	w.set("shop", map[objectKey]schema.GroupVersionResource{key("b"): configMaps})
	f := w.feeds[place{configMaps, "app"}]
	expect := func(what string, want ...string) {
		t.Helper()
		slices.Sort(told)
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		told = nil
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(f.Replace([]any{seenObject("ConfigMap", "a", 5), seenObject("ConfigMap", "stranger", 6)}, "7"))
	expect("the first list", "web")
	must(f.Update(seenObject("ConfigMap", "a", 5)))
	expect("the same again")
	must(f.Update(seenObject("ConfigMap", "stranger", 8)))
	expect("a stranger")
	if len(f.seen) != 1 {
		t.Errorf("something of a stranger is kept: %v", f.seen)
	}
	w.put(configMaps, key("b"), seenObject("ConfigMap", "b", 9), "ours")
	must(f.Add(seenObject("ConfigMap", "b", 9)))
	expect("our own write")
	must(f.Replace([]any{seenObject("ConfigMap", "a", 5)}, "8"))
	expect("a list from before our write")
	must(f.Replace([]any{seenObject("ConfigMap", "a", 5)}, "10"))
	expect("b is gone", "shop", "web")
	if s := w.get(configMaps, key("b")); s == nil || s.object != nil {
		t.Errorf("b is not known to be gone: %+v", s)
	}
	must(f.Delete(seenObject("ConfigMap", "a", 11)))
	expect("a is gone", "web")
	must(f.Update(seenObject("ConfigMap", "a", 5)))
	expect("an event that came late")
	w.unset("web", key("a"))
	must(f.Add(seenObject("ConfigMap", "a", 12)))
	expect("nobody has a any more")
	w.set("web", nil)
	w.set("shop", nil)
	if len(w.feeds) > 0 || len(w.works) > 0 {
		t.Errorf("something is watched for nobody: %v", w.feeds)
	}
}

func TestWatchesKeepLittle(t *testing.T) {
	t.Parallel()
	secret := seenObject("Secret", "a", 1)
	secret.SetFinalizers([]string{"x"})
	now := metav1.Now().Rfc3339Copy()
	secret.SetDeletionTimestamp(&now)
	got := slim(secret)
	if got.Object["data"] != nil || len(got.GetFinalizers()) != 1 || got.GetDeletionTimestamp() == nil || got.GetUID() != "a" {
		t.Errorf("of a Secret is kept %v", got.Object)
	}
	other := seenObject("Widget", "a", 1)
	other.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
	if got := slim(other); got.Object["data"] == nil || got.GetManagedFields() != nil {
		t.Errorf("of another kind is kept %v", got.Object)
	}
	f := &feed{watches: newWatches(nil, nil, nil, nil), wanted: map[string]map[string]bool{"mine": {"web": true}}}
	for name, whole := range map[string]bool{"mine": true, "stranger": false} {
		o, err := f.Transformer()(seenObject("Widget", name, 1))
		if u, ok := o.(*unstructured.Unstructured); err != nil || !ok || (u.Object["data"] != nil) != whole || u.GetName() != name {
			t.Errorf("%s is kept as %v, error %v", name, o, err)
		}
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	var told []string
	s := &signals{mark: lifeOf, changed: func(o cache.ObjectName) { told = append(told, o.Name) }, marks: map[cache.ObjectName]string{}}
	head := func(name string, generation int64, finalizers ...string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation, Finalizers: finalizers, Annotations: map[string]string{"large": "x"}}}
	}
	steps := []struct {
		what string
		do   func() error
		want []string
	}{
		{"a list", func() error { return s.Replace([]any{head("a", 1), head("b", 1)}, "") }, []string{"a", "b"}},
		{"nothing new", func() error { return s.Update(head("a", 1)) }, nil},
		{"another generation", func() error { return s.Update(head("a", 2)) }, []string{"a"}},
		{"a finalizer", func() error { return s.Update(head("a", 2, "x")) }, []string{"a"}},
		{"gone in a list", func() error { return s.Replace([]any{head("a", 2, "x")}, "") }, []string{"b"}},
		{"gone", func() error { return s.Delete(head("a", 2)) }, []string{"a"}},
		{"back", func() error { return s.Add(head("a", 2)) }, []string{"a"}},
	}
	for _, step := range steps {
		told = nil
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
	o, err := s.Transformer()(head("a", 2, "x"))
	if m, ok := o.(*metav1.PartialObjectMetadata); err != nil || !ok || m.Annotations != nil || lifeOf(m) != lifeOf(head("a", 2, "x")) {
		t.Errorf("a head is kept as %v, error %v", o, err)
	}
}
