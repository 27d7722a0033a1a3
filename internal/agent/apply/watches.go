package apply

import (
	"context"
	"strconv"
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	"github.com/fleetwright/fleetwright/internal/agent/health"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// sight is an object as it was seen last.
type sight struct {
	// object is nil where the object is known to be gone. Of kinds that are available at once it has the metadata alone.
	object *unstructured.Unstructured
	// fingerprint stands for what of it is ours.
	fingerprint string
	version     uint64
}

// is tells whether the object is there and has a fingerprint.
func (s *sight) is(fingerprint string) bool {
	return s != nil && s.object != nil && s.fingerprint == fingerprint
}

// watches watches the objects that Works have: one watch for each resource and namespace in which there is one. Of all
// other objects nothing is kept.
type watches struct {
	objects dynamic.Interface
	heads   metadata.Interface
	changed func(work string)
	kinds   func()

	mu    sync.Mutex
	ctx   context.Context // set while started
	feeds map[place]*feed
	works map[string]map[objectKey]schema.GroupVersionResource // Work → its objects
}

// place is where objects are watched.
type place struct {
	schema.GroupVersionResource
	namespace string
}

func newWatches(objects dynamic.Interface, heads metadata.Interface, changed func(string), kinds func()) *watches {
	return &watches{
		objects: objects, heads: heads, changed: changed, kinds: kinds,
		feeds: map[place]*feed{}, works: map[string]map[objectKey]schema.GroupVersionResource{},
	}
}

// Start watches AppliedWorks and definitions, and whatever is asked for, until ctx ends.
func (w *watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for p, f := range w.feeds {
		f.start(ctx, w.objects, p)
	}
	w.mu.Unlock()
	w.signal(ctx, appliedWorks, lifeOf, w.changed)
	w.signal(ctx, definitions, metav1.Object.GetResourceVersion, func(string) { w.kinds() })
	<-ctx.Done()
	return nil
}

// set says which objects a Work has. What it does not have any more is watched no longer.
func (w *watches) set(work string, objects map[objectKey]schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.works[work]
	for key, gvr := range objects {
		if before[key] != gvr {
			w.add(work, key, gvr)
		}
	}
	for key, gvr := range before {
		if objects[key] != gvr {
			w.remove(work, key, gvr)
		}
	}
	if len(objects) == 0 {
		delete(w.works, work)
		return
	}
	w.works[work] = objects
}

// unset says that a Work does not have an object any more.
func (w *watches) unset(work string, key objectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gvr, has := w.works[work][key]; has {
		delete(w.works[work], key)
		w.remove(work, key, gvr)
	}
}

func (w *watches) add(work string, key objectKey, gvr schema.GroupVersionResource) {
	p := place{gvr, key.namespace}
	f := w.feeds[p]
	if f == nil {
		f = &feed{watches: w, wanted: map[string]map[string]bool{}, seen: map[string]*sight{}}
		w.feeds[p] = f
		if w.ctx != nil {
			f.start(w.ctx, w.objects, p)
		}
	}
	if f.wanted[key.name] == nil {
		f.wanted[key.name] = map[string]bool{}
	}
	f.wanted[key.name][work] = true
}

func (w *watches) remove(work string, key objectKey, gvr schema.GroupVersionResource) {
	p := place{gvr, key.namespace}
	f := w.feeds[p]
	if f == nil {
		return
	}
	delete(f.wanted[key.name], work)
	if len(f.wanted[key.name]) == 0 {
		delete(f.wanted, key.name)
		delete(f.seen, key.name)
	}
	if len(f.wanted) == 0 {
		if f.stop != nil {
			f.stop()
		}
		delete(w.feeds, p)
	}
}

// get returns an object as it was seen last; nil where nothing is known of it.
func (w *watches) get(gvr schema.GroupVersionResource, key objectKey) *sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.feeds[place{gvr, key.namespace}]; f != nil {
		return f.seen[key.name]
	}
	return nil
}

// put says what an object is after we wrote it, so that its own event is no news.
func (w *watches) put(gvr schema.GroupVersionResource, key objectKey, object *unstructured.Unstructured, fingerprint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.feeds[place{gvr, key.namespace}]; f != nil && f.wanted[key.name] != nil {
		f.keep(key.name, &sight{object: slim(object), fingerprint: fingerprint, version: versionOf(object)})
	}
}

// feed is one watch. It is the store of a reflector, and keeps no object that nobody wants.
type feed struct {
	*watches
	stop   context.CancelFunc
	wanted map[string]map[string]bool // object → the Works that have it
	seen   map[string]*sight
}

func (f *feed) start(ctx context.Context, client dynamic.Interface, p place) {
	ctx, f.stop = context.WithCancel(ctx)
	var r dynamic.ResourceInterface = client.Resource(p.GroupVersionResource)
	if p.namespace != "" {
		r = client.Resource(p.GroupVersionResource).Namespace(p.namespace)
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return r.Watch(ctx, o)
		},
	}
	reflector := cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, f, cache.ReflectorOptions{Name: p.Resource, TypeDescription: p.String()})
	go reflector.RunWithContext(ctx)
}

// keep keeps what was seen, unless something newer was, and tells whether it is news. The caller holds the lock.
func (f *feed) keep(name string, s *sight) bool {
	before := f.seen[name]
	if before != nil && (before.version >= s.version && s.version != 0) {
		return false
	}
	f.seen[name] = s
	return true
}

// observe takes note of an object, and tells those who have it.
func (f *feed) observe(object *unstructured.Unstructured, gone bool) {
	f.mu.Lock()
	name := object.GetName()
	wanted := f.wanted[name]
	if wanted == nil {
		f.mu.Unlock()
		return
	}
	s := &sight{version: versionOf(object)}
	if !gone {
		s.fingerprint = drift.Fingerprint(object, placementv1.FieldManager)
		s.object = slim(object)
	}
	var tell []string
	if f.keep(name, s) {
		for work := range wanted {
			tell = append(tell, work)
		}
	}
	f.mu.Unlock()
	for _, work := range tell {
		f.changed(work)
	}
}

// Add, Update, Delete, Replace and Resync are called by the reflector.
func (f *feed) Add(o any) error    { return f.Update(o) }
func (f *feed) Resync() error      { return nil }
func (f *feed) Update(o any) error { return f.event(o, false) }
func (f *feed) Delete(o any) error { return f.event(o, true) }

func (f *feed) event(o any, gone bool) error {
	if object, ok := o.(*unstructured.Unstructured); ok {
		f.observe(object, gone)
	}
	return nil
}

// Replace is told all that there is, at a moment: what is not among it and was seen before that is gone.
func (f *feed) Replace(all []any, version string) error {
	there := map[string]bool{}
	for _, o := range all {
		if object, ok := o.(*unstructured.Unstructured); ok {
			there[object.GetName()] = true
			f.observe(object, false)
		}
	}
	moment, _ := strconv.ParseUint(version, 10, 64)
	f.mu.Lock()
	var tell []string
	for name, works := range f.wanted {
		if before := f.seen[name]; before != nil && before.object != nil && !there[name] && before.version <= moment {
			f.seen[name] = &sight{version: moment}
			for work := range works {
				tell = append(tell, work)
			}
		}
	}
	f.mu.Unlock()
	for _, work := range tell {
		f.changed(work)
	}
	return nil
}

// Transformer reduces what is not wanted to its name before it is kept anywhere.
func (f *feed) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		object, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		f.mu.Lock()
		wanted := f.wanted[object.GetName()] != nil
		f.mu.Unlock()
		if wanted {
			return object, nil
		}
		name := &unstructured.Unstructured{}
		name.SetGroupVersionKind(object.GroupVersionKind())
		name.SetNamespace(object.GetNamespace())
		name.SetName(object.GetName())
		name.SetResourceVersion(object.GetResourceVersion())
		return name, nil
	}
}

// slim is an object without what is not needed to judge it.
func slim(object *unstructured.Unstructured) *unstructured.Unstructured {
	if health.AtOnce(object.GroupVersionKind().GroupKind()) {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(object.GroupVersionKind())
		o.SetNamespace(object.GetNamespace())
		o.SetName(object.GetName())
		o.SetUID(object.GetUID())
		o.SetResourceVersion(object.GetResourceVersion())
		o.SetFinalizers(object.GetFinalizers())
		o.SetDeletionTimestamp(object.GetDeletionTimestamp())
		return o
	}
	o := object.DeepCopy()
	o.SetManagedFields(nil)
	return o
}

// versionOf is an object's resource version as a number. Since Kubernetes 1.35 they may be compared; they were numbers
// before, too. 0 is later than anything.
func versionOf(o metav1.Object) uint64 {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// newer tells whether object a is a later state than b of the same object.
func newer(a, b metav1.Object) bool {
	x, y := versionOf(a), versionOf(b)
	return x != 0 && y != 0 && x > y
}
