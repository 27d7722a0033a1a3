package apply

import (
	"context"
	"strconv"
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// watches watches the kinds of which something was applied, and only those. Of objects that are not ours it keeps nothing
// but the name.
type watches struct {
	client       dynamic.Interface
	changed      func(work string)
	kindsChanged func()

	mu      sync.Mutex
	ctx     context.Context // set while started
	kinds   map[schema.GroupVersionResource]*kindWatch
	byWork  map[string]map[schema.GroupVersionResource]bool // Work → the resources it has objects of
	workOf  map[objectKey]string                            // object → the Work that applied it
	objects map[string]map[objectKey]bool                   // Work → its objects
}

type kindWatch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

func newWatches(c dynamic.Interface, changed func(string), kindsChanged func()) *watches {
	return &watches{
		client: c, changed: changed, kindsChanged: kindsChanged,
		kinds: map[schema.GroupVersionResource]*kindWatch{}, byWork: map[string]map[schema.GroupVersionResource]bool{},
		workOf: map[objectKey]string{}, objects: map[string]map[objectKey]bool{},
	}
}

// Start watches AppliedWorks and definitions, and whatever was asked for, until ctx ends.
func (w *watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	w.watch(appliedWorks)
	w.watch(definitions)
	for _, resources := range w.byWork {
		for gvr := range resources {
			w.watch(gvr)
		}
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// set says which objects a Work has, and watches their kinds. Kinds that nobody has any more are not watched longer.
func (w *watches) set(work string, resources map[objectKey]schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.objects[work] {
		if w.workOf[key] == work {
			delete(w.workOf, key)
		}
	}
	delete(w.objects, work)
	delete(w.byWork, work)
	for key, gvr := range resources {
		if w.objects[work] == nil {
			w.objects[work], w.byWork[work] = map[objectKey]bool{}, map[schema.GroupVersionResource]bool{}
		}
		w.objects[work][key], w.byWork[work][gvr], w.workOf[key] = true, true, work
		w.watch(gvr)
	}
	for gvr, k := range w.kinds {
		if !w.used(gvr) {
			k.stop()
			delete(w.kinds, gvr)
		}
	}
}

func (w *watches) used(gvr schema.GroupVersionResource) bool {
	if gvr == appliedWorks || gvr == definitions {
		return true
	}
	for _, resources := range w.byWork {
		if resources[gvr] {
			return true
		}
	}
	return false
}

// watch starts a watch unless there is one. The caller holds the lock.
func (w *watches) watch(gvr schema.GroupVersionResource) {
	if w.ctx == nil || w.kinds[gvr] != nil {
		return
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(ours); err != nil {
		return // only an informer that has started refuses
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.seen(gvr, o) },
		UpdateFunc: func(_, o any) { w.seen(gvr, o) },
		DeleteFunc: func(o any) { w.seen(gvr, o) },
	}); err != nil {
		return // only an informer that has stopped refuses
	}
	ctx, stop := context.WithCancel(w.ctx)
	w.kinds[gvr] = &kindWatch{informer: informer, stop: stop}
	go informer.RunWithContext(ctx)
}

// seen tells who cares that an object has changed.
func (w *watches) seen(gvr schema.GroupVersionResource, o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	object, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	switch gvr {
	case definitions:
		w.kindsChanged()
	case appliedWorks:
		w.changed(object.GetName())
		return
	}
	key := objectKey{GroupKind: object.GroupVersionKind().GroupKind(), namespace: object.GetNamespace(), name: object.GetName()}
	w.mu.Lock()
	work, known := w.workOf[key]
	w.mu.Unlock()
	if known {
		w.changed(work)
	}
}

// get returns an object of ours as the watch saw it last; nil where it has not seen it, or is not in step yet.
func (w *watches) get(gvr schema.GroupVersionResource, key objectKey) *unstructured.Unstructured {
	w.mu.Lock()
	k := w.kinds[gvr]
	w.mu.Unlock()
	if k == nil || !k.informer.HasSynced() {
		return nil
	}
	name := key.name
	if key.namespace != "" {
		name = key.namespace + "/" + key.name
	}
	o, exists, err := k.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	object, _ := o.(*unstructured.Unstructured)
	return object
}

// ours drops from an object what nobody here needs: all but the name where it is not ours.
func ours(o any) (any, error) {
	object, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	for _, owner := range object.GetOwnerReferences() {
		if isAppliedWork(owner) {
			object.SetManagedFields(nil)
			return object, nil
		}
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return o, nil //nolint:nilerr // an object without metadata cannot come from an API server
	}
	slim := &unstructured.Unstructured{}
	slim.SetGroupVersionKind(object.GroupVersionKind())
	slim.SetNamespace(m.GetNamespace())
	slim.SetName(m.GetName())
	slim.SetUID(m.GetUID())
	slim.SetResourceVersion(m.GetResourceVersion())
	return slim, nil
}

// isAppliedWork tells whether an owner reference is to an AppliedWork: both its kind and its group are looked at.
func isAppliedWork(owner metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == placementv1.GroupVersion.Group && owner.Kind == "AppliedWork"
}

// newer tells whether object a is a later state than b of the same object.
func newer(a, b metav1.Object) bool {
	x, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && x > y
}
