package selection

import (
	"context"
	"sync"
	"time"

	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// settling is when to ask again which kinds the API serves after a definition has changed: it takes a moment until the
// API serves a new kind and says so.
var settling = []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

// undiscovered is how long to wait after the API could not be asked.
const undiscovered = 5 * time.Second

// Watches tells placements when what they select may have changed. It watches only the kinds that some placement may
// select, each with one watch, sees no more of an object than its metadata, and keeps none of it: what it holds in memory
// are the names that selectors found.
type Watches struct {
	// Discovery and Client talk to the hub's API server.
	Discovery Discovery
	Client    metadata.Interface
	Clock     clock.WithTicker

	mu sync.Mutex
	// cluster and namespaced are told of placements of their scope.
	cluster, namespaced []func(placement.Key)
	interests           map[placement.Key]*interest
	// follows are the kinds of which every change is told to followers.
	follows   map[schema.GroupVersionKind]bool
	followers []Follower
	running   map[schema.GroupVersionResource]context.CancelFunc
	known     *catalogue
	// refresh holds a token while watches do not fit interests, or the catalogue may be old.
	refresh chan struct{}
	// altered holds a token when a definition of kinds has changed.
	altered chan struct{}
}

// NewWatches makes Watches. OnChange is to be called for a scope before any of its placements is set.
func NewWatches(d Discovery, c metadata.Interface, clock clock.WithTicker) *Watches {
	return &Watches{
		Discovery: d, Client: c, Clock: clock,
		interests: map[placement.Key]*interest{},
		running:   map[schema.GroupVersionResource]context.CancelFunc{},
		refresh:   make(chan struct{}, 1),
		altered:   make(chan struct{}, 1),
	}
}

// OnChange says who is told, beside others, of a placement of one scope whose selection may have changed. It must not block.
func (w *Watches) OnChange(kinds *placement.Kinds, changed func(placement.Key)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kinds.Namespaced {
		w.namespaced = append(w.namespaced, changed)
	} else {
		w.cluster = append(w.cluster, changed)
	}
}

func (w *Watches) changed(key placement.Key) {
	all := w.cluster
	if key.Namespace != "" {
		all = w.namespaced
	}
	for _, tell := range all {
		tell(key)
	}
}

// Set says what a placement wants to be told of from now on.
func (w *Watches) Set(key placement.Key, i Interest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.interests[key]
	w.interests[key] = newInterest(i)
	if before != nil && before.missed(i.Roots) {
		w.changed(key)
	}
	if w.known == nil || (i.Unresolved && i.Catalogue != w.known.print) || !w.watched(w.interests[key]) {
		offer(w.refresh)
	}
}

// watched tells whether all that is to be watched for an interest is.
func (w *Watches) watched(i *interest) bool {
	for _, r := range i.resources(w.known) {
		if w.running[r.gvr] == nil {
			return false
		}
	}
	return true
}

// Forget says that a placement wants to be told of nothing any more.
func (w *Watches) Forget(key placement.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.interests[key]; known {
		delete(w.interests, key)
		offer(w.refresh)
	}
}

// Start watches until the context ends.
func (w *Watches) Start(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, gvr := range []schema.GroupVersionResource{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	} {
		follower := &follower{
			client: w.Client, clock: w.Clock, gvr: gvr, watchable: true,
			begun:   func(bool, bool) { offer(w.altered) },
			changed: func(*metav1.PartialObjectMetadata) { offer(w.altered) },
		}
		all.Go(func() { follower.run(ctx) })
	}
	offer(w.refresh)
	w.keepUp(ctx, &all)
	return nil
}

// keepUp makes the watches fit whenever interests or definitions have changed.
func (w *Watches) keepUp(ctx context.Context, all *sync.WaitGroup) {
	var again reminders
	for {
		var timer <-chan time.Time
		if wait, any := again.wait(w.Clock.Now()); any {
			timer = w.Clock.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.altered:
			again = nil // the later ones are enough
			again.after(w.Clock.Now(), settling...)
		case <-w.refresh:
		case <-timer:
		}
		again.passed(w.Clock.Now())
		if err := w.fit(ctx, all); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "The watches of selected kinds are not up to date; trying again")
			if wait, any := again.wait(w.Clock.Now()); !any || wait > undiscovered {
				again.after(w.Clock.Now(), undiscovered)
			}
		}
	}
}

// fit asks what the API serves, starts and stops watches accordingly, and tells those whom a change concerns.
func (w *Watches) fit(ctx context.Context, all *sync.WaitGroup) error {
	served, err := discover(ctx, w.Discovery)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.known
	if before == nil {
		before = served
	}
	w.known = served
	wanted := map[schema.GroupVersionResource]resource{}
	for key, i := range w.interests {
		for _, r := range i.resources(served) {
			wanted[r.gvr] = r
		}
		if i.affected(before, served) {
			w.changed(key)
		}
	}
	for kind := range w.follows {
		if r, known := served.kinds[kind]; known {
			wanted[r.gvr] = r
		}
	}
	for gvr, stop := range w.running {
		if _, still := wanted[gvr]; !still {
			stop()
			delete(w.running, gvr)
		}
	}
	for gvr, r := range wanted {
		if w.running[gvr] == nil {
			w.running[gvr] = w.follow(ctx, r, all)
		}
	}
	return nil
}

// follow starts the watch of a resource and returns what stops it.
func (w *Watches) follow(ctx context.Context, r resource, all *sync.WaitGroup) context.CancelFunc {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{
		client: w.Client, clock: w.Clock, gvr: r.gvr, watchable: r.watchable,
		begun: func(first, exists bool) {
			w.begun(r, first, exists)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tellBegun(r)
		},
		changed: func(o *metav1.PartialObjectMetadata) {
			w.tell(func(i *interest) bool { return i.wants(r, o) })
			w.tellFollowers(r, o)
		},
	}
	all.Go(func() { f.run(ctx) })
	return cancel
}

// begun tells those who may have missed something of a resource until now. Before its watch began for the first time, that
// can be no more than what is there, or what a selection found and is gone since; between two watches it can be anything.
func (w *Watches) begun(r resource, first, exists bool) {
	w.tell(func(i *interest) bool { return i.mayHold(r) && (!first || exists || i.held(r)) })
}

// tell tells all placements whose interest is of a sort.
func (w *Watches) tell(concerned func(*interest) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, i := range w.interests {
		if concerned(i) {
			w.changed(key)
		}
	}
}

// offer puts a token into a channel that holds one.
func offer(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
