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
	must(f.Replace([]any{seenObject("ConfigMap", "a", 5)}, "8"))
	expect("a list from before our write")
	must(f.Add(seenObject("ConfigMap", "b", 9)))
	expect("our own write")
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

// TestMemberThatWasRestored is a member whose versions begin again with an earlier one: all that was seen is of another history.
func TestMemberThatWasRestored(t *testing.T) {
	t.Parallel()
	told := map[string]int{}
	w := newWatches(nil, nil, func(work string) { told[work]++ }, nil)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	key := func(name string) objectKey {
		return objectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, namespace: "app", name: name}
	}
	w.set("web", map[objectKey]schema.GroupVersionResource{key("a"): configMaps})
	w.set("shop", map[objectKey]schema.GroupVersionResource{key("b"): configMaps})
	f := w.feeds[place{configMaps, "app"}]
	list := func(version string, objects ...any) {
		t.Helper()
		clear(told)
		if err := f.Replace(objects, version); err != nil {
			t.Fatal(err)
		}
	}
	list("100", seenObject("ConfigMap", "a", 50), seenObject("ConfigMap", "b", 60))
	w.put(configMaps, key("a"), seenObject("ConfigMap", "a", 200), "ours")
	list("150", seenObject("ConfigMap", "a", 50), seenObject("ConfigMap", "b", 60))
	if len(told) > 0 || !w.get(configMaps, key("a")).is("ours") {
		t.Errorf("a list from before our own write told %v", told)
	}
	list("90", seenObject("ConfigMap", "a", 40))
	if told["web"] == 0 || told["shop"] == 0 {
		t.Errorf("after a restore were told %v, want web and shop", told)
	}
	if s := w.get(configMaps, key("a")); s == nil || s.version != 40 || s.is("ours") {
		t.Errorf("of a is known %+v, want what the backup has", s)
	}
	if s := w.get(configMaps, key("b")); s == nil || s.object != nil {
		t.Errorf("of b is known %+v, want that it is gone", s)
	}
	clear(told)
	if err := f.Update(seenObject("ConfigMap", "a", 95)); err != nil || told["web"] != 1 {
		t.Errorf("a later change told %v, error %v", told, err)
	}
}

// TestWatchesReadWhatArrivedUnwanted is an object that a Work comes to want between its arrival and its being kept.
func TestWatchesReadWhatArrivedUnwanted(t *testing.T) {
	t.Parallel()
	var told []string
	w := newWatches(nil, nil, func(work string) { told = append(told, work) }, nil)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	key := func(name string) objectKey {
		return objectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, namespace: "app", name: name}
	}
	w.set("web", map[objectKey]schema.GroupVersionResource{key("other"): configMaps})
	f := w.feeds[place{configMaps, "app"}]
	reduced, err := f.Transformer()(seenObject("ConfigMap", "a", 5))
	if err != nil {
		t.Fatal(err)
	}
	w.set("web", map[objectKey]schema.GroupVersionResource{key("a"): configMaps})
	if err := f.Add(reduced); err != nil {
		t.Fatal(err)
	}
	if s := w.get(configMaps, key("a")); s != nil || len(told) != 1 {
		t.Errorf("of an object that was dropped is known %+v, and %v were told", s, told)
	}
	// What was seen without being ours gives way to what our write, which changed nothing, has brought.
	if err := f.Add(seenObject("ConfigMap", "a", 5)); err != nil {
		t.Fatal(err)
	}
	w.put(configMaps, key("a"), seenObject("ConfigMap", "a", 5), "ours")
	if !w.get(configMaps, key("a")).is("ours") {
		t.Error("our own write at the same version counts for nothing")
	}
}

func TestWatchesOfManyNamespaces(t *testing.T) {
	t.Parallel()
	told := map[string]int{}
	w := newWatches(nil, nil, func(work string) { told[work]++ }, nil)
	configMaps, secrets := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	key := func(i int) objectKey {
		return objectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, namespace: "app" + strconv.Itoa(i), name: "a"}
	}
	object := func(i, version int) *unstructured.Unstructured {
		o := seenObject("ConfigMap", "a", version)
		o.SetNamespace(key(i).namespace)
		return o
	}
	work := func(i int) string { return "web" + strconv.Itoa(i) }
	w.set("shop", map[objectKey]schema.GroupVersionResource{{GroupKind: schema.GroupKind{Kind: "Secret"}, namespace: "app0", name: "a"}: secrets})
	for i := range narrow {
		w.set(work(i), map[objectKey]schema.GroupVersionResource{key(i): configMaps})
		w.put(configMaps, key(i), object(i, 10+i), "ours")
	}
	if len(w.feeds) != narrow+1 {
		t.Errorf("%d watches, want one for each of %d namespaces and one for Secrets", len(w.feeds), narrow)
	}
	old := w.feeds[place{configMaps, "app0"}]
	w.set(work(narrow), map[objectKey]schema.GroupVersionResource{key(narrow): configMaps})
	all := w.feeds[place{configMaps, ""}]
	if len(w.feeds) != 2 || all == nil {
		t.Fatalf("%d watches, want one for all ConfigMaps and one for Secrets", len(w.feeds))
	}
	for i := range narrow {
		if !w.get(configMaps, key(i)).is("ours") {
			t.Errorf("what was known in %s is lost", key(i).namespace)
		}
	}
	if err := old.Update(object(0, 500)); err != nil || len(told) > 0 {
		t.Errorf("a watch that has ended told %v, error %v", told, err)
	}
	if err := all.Update(object(3, 501)); err != nil || len(told) != 1 || told["web3"] != 1 {
		t.Errorf("a change in app3 told %v, error %v; want web3", told, err)
	}
	clear(told)
	stranger := seenObject("ConfigMap", "a", 502) // of the same name, in a namespace where nobody has it
	if err := all.Update(stranger); err != nil || len(told) > 0 {
		t.Errorf("a stranger's change told %v, error %v", told, err)
	}
	for i := range narrow + 1 {
		w.set(work(i), nil)
	}
	if len(w.feeds) != 1 || len(w.wide) > 0 {
		t.Errorf("%d watches and %v are left, want that of Secrets", len(w.feeds), w.wide)
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
	f := &feed{watches: newWatches(nil, nil, nil, nil), wanted: map[cache.ObjectName]map[string]bool{{Namespace: "app", Name: "mine"}: {"web": true}}}
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
