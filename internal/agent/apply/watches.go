package apply

import (
	"context"
	"maps"
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
	// object is nil where the object is known to be gone. Of kinds that are available at once it has metadata and status alone.
	object *unstructured.Unstructured
	// fingerprint stands for what of it is ours.
	fingerprint string
	version     uint64
	// whole stands for all of it, where a Work that has it compares more than what is ours; else it is empty.
	whole string
}

// asCompared tells whether the object is as it was when it was compared; an empty hash stands for none.
func (s *sight) asCompared(hash string) bool {
	switch {
	case s == nil:
		return false
	case s.object == nil:
		return hash == ""
	default:
		return hash != "" && s.whole == hash
	}
}

// is tells whether the object is there and has a fingerprint.
func (s *sight) is(fingerprint string) bool {
	return s != nil && s.object != nil && s.fingerprint == fingerprint
}

// narrow is in how many namespaces a resource is watched by a watch for each. From one more on a single watch covers all
// namespaces: what nobody wants is dropped as it arrives.
const narrow = 20

// watches watches the objects that Works have: one watch for each resource and namespace in which there is one, or for the
// whole resource. Of all other objects nothing is kept.
type watches struct {
	objects dynamic.Interface
	heads   metadata.Interface
	changed func(work string)
	kinds   func()

	mu    sync.Mutex
	ctx   context.Context // set while started
	feeds map[place]*feed
	wide  map[schema.GroupVersionResource]bool                 // resources that one watch covers
	works map[string]map[objectKey]schema.GroupVersionResource // Work → its objects
	whole map[string]bool                                      // Works that compare more of their objects than what is ours
}

// place is where objects are watched: a namespace, or all of them.
type place struct {
	schema.GroupVersionResource
	namespace string
}

func newWatches(objects dynamic.Interface, heads metadata.Interface, changed func(string), kinds func()) *watches {
	return &watches{
		objects: objects, heads: heads, changed: changed, kinds: kinds,
		feeds: map[place]*feed{}, wide: map[schema.GroupVersionResource]bool{}, works: map[string]map[objectKey]schema.GroupVersionResource{}, whole: map[string]bool{},
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
		delete(w.whole, work)
		return
	}
	w.works[work] = objects
}

// compareWhole says whether a Work compares more of its objects than what of them is ours.
func (w *watches) compareWhole(work string, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if whole {
		w.whole[work] = true
	} else {
		delete(w.whole, work)
	}
}

// mind gives a sight what stands for the whole object, if one of the Works that have it needs that. The lock is held.
func (w *watches) mind(s *sight, object *unstructured.Unstructured, wanted map[string]bool) {
	for work := range wanted {
		if w.whole[work] {
			s.whole = drift.Hash(object)
			return
		}
	}
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

// placeOf is where an object is watched. The lock is held, as in what follows.
func (w *watches) placeOf(gvr schema.GroupVersionResource, key objectKey) place {
	if w.wide[gvr] {
		return place{gvr, metav1.NamespaceAll}
	}
	return place{gvr, key.namespace}
}

func (w *watches) add(work string, key objectKey, gvr schema.GroupVersionResource) {
	f := w.feeds[w.placeOf(gvr, key)]
	if f == nil {
		w.widen(gvr)
		p := w.placeOf(gvr, key)
		if f = w.feeds[p]; f == nil {
			f = w.begin(p)
		}
	}
	name := nameOf(key)
	if f.wanted[name] == nil {
		f.wanted[name] = map[string]bool{}
	}
	f.wanted[name][work] = true
}

func (w *watches) begin(p place) *feed {
	f := &feed{watches: w, wanted: map[cache.ObjectName]map[string]bool{}, seen: map[cache.ObjectName]*sight{}}
	w.feeds[p] = f
	if w.ctx != nil {
		f.start(w.ctx, w.objects, p)
	}
	return f
}

// widen puts one watch in the place of many, if a resource has as many as there may be. What they have seen stays known.
func (w *watches) widen(gvr schema.GroupVersionResource) {
	var places []place
	for p := range w.feeds {
		if p.GroupVersionResource == gvr && p.namespace != metav1.NamespaceAll {
			places = append(places, p)
		}
	}
	if len(places) < narrow {
		return
	}
	w.wide[gvr] = true
	all := &feed{watches: w, wanted: map[cache.ObjectName]map[string]bool{}, seen: map[cache.ObjectName]*sight{}}
	for _, p := range places {
		f := w.feeds[p]
		maps.Copy(all.wanted, f.wanted)
		maps.Copy(all.seen, f.seen)
		w.end(p)
	}
	p := place{gvr, metav1.NamespaceAll}
	w.feeds[p] = all
	if w.ctx != nil {
		all.start(w.ctx, w.objects, p)
	}
}

// end ends a watch. An event that it still brings finds nobody who wants it.
func (w *watches) end(p place) {
	f := w.feeds[p]
	if f.stop != nil {
		f.stop()
	}
	f.wanted, f.seen = nil, nil
	delete(w.feeds, p)
}

func (w *watches) remove(work string, key objectKey, gvr schema.GroupVersionResource) {
	p := w.placeOf(gvr, key)
	f := w.feeds[p]
	if f == nil {
		return
	}
	name := nameOf(key)
	delete(f.wanted[name], work)
	if len(f.wanted[name]) == 0 {
		delete(f.wanted, name)
		delete(f.seen, name)
	}
	if len(f.wanted) == 0 {
		w.end(p)
		delete(w.wide, gvr)
	}
}

// get returns an object as it was seen last; nil where nothing is known of it.
func (w *watches) get(gvr schema.GroupVersionResource, key objectKey) *sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.feeds[w.placeOf(gvr, key)]; f != nil {
		return f.seen[nameOf(key)]
	}
	return nil
}

// put says what an object is after we wrote it, so that its own event is no news. It counts for more than what was seen at
// the same version.
func (w *watches) put(gvr schema.GroupVersionResource, key objectKey, object *unstructured.Unstructured, fingerprint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, name := w.feeds[w.placeOf(gvr, key)], nameOf(key)
	if f == nil || f.wanted[name] == nil {
		return
	}
	s := &sight{object: slim(object), fingerprint: fingerprint, version: versionOf(object)}
	w.mind(s, object, f.wanted[name])
	if before := f.seen[name]; before == nil || before.version <= s.version || s.version == 0 {
		f.seen[name] = s
	}
}

func nameOf(key objectKey) cache.ObjectName { return cache.NewObjectName(key.namespace, key.name) }

// feed is one watch. It is the store of a reflector, and keeps no object that nobody wants.
type feed struct {
	*watches
	stop   context.CancelFunc
	wanted map[cache.ObjectName]map[string]bool // object → the Works that have it
	seen   map[cache.ObjectName]*sight
	// reached is the latest version that the watch has brought.
	reached uint64
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
func (f *feed) keep(name cache.ObjectName, s *sight) bool {
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
	name := cache.MetaObjectToName(object)
	s := &sight{version: versionOf(object)}
	f.reached = max(f.reached, s.version)
	wanted := f.wanted[name]
	if wanted == nil {
		f.mu.Unlock()
		return
	}
	reduced := !gone && object.GetUID() == ""
	if !gone && !reduced {
		s.fingerprint = drift.Fingerprint(object, placementv1.FieldManager)
		s.object = slim(object)
		f.mind(s, object, wanted)
	}
	var tell []string
	if f.keep(name, s) {
		if reduced {
			delete(f.seen, name) // nobody wanted it when it arrived: now it has to be read
		}
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

// Replace is told all that there is, at a moment: what is not among it and was seen before that is gone. A moment before
// what the watch has brought is another history, that of a backup: nothing that was seen counts any more.
func (f *feed) Replace(all []any, version string) error {
	moment, _ := strconv.ParseUint(version, 10, 64)
	f.mu.Lock()
	anew := moment != 0 && moment < f.reached
	if anew {
		clear(f.seen)
		f.reached = moment
	}
	f.mu.Unlock()
	there := map[cache.ObjectName]bool{}
	for _, o := range all {
		if object, ok := o.(*unstructured.Unstructured); ok {
			there[cache.MetaObjectToName(object)] = true
			f.observe(object, false)
		}
	}
	f.mu.Lock()
	f.reached = max(f.reached, moment)
	var tell []string
	for name, works := range f.wanted {
		before := f.seen[name]
		lost := before != nil && before.object != nil && before.version <= moment
		if there[name] || (!anew && !lost) {
			continue
		}
		if lost || before == nil {
			f.seen[name] = &sight{version: moment}
		}
		for work := range works {
			tell = append(tell, work)
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
		wanted := f.wanted[cache.MetaObjectToName(object)] != nil
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
		o.SetGeneration(object.GetGeneration())
		o.SetFinalizers(object.GetFinalizers())
		o.SetDeletionTimestamp(object.GetDeletionTimestamp())
		if status, has := object.Object["status"]; has && !unmirrored[object.GroupVersionKind().GroupKind()] {
			o.Object["status"] = runtime.DeepCopyJSONValue(status) // a Namespace's or a ResourceQuota's, which is small
		}
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
