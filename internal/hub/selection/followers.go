package selection

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Follower is told of the objects of the kinds that are followed. Its functions must not block, and must not call Watches.
type Follower struct {
	// Changed is told of an object, of which no more than the metadata is seen, that was made, changed or deleted.
	Changed func(schema.GroupVersionKind, *metav1.PartialObjectMetadata)
	// Begun is told that the objects of a kind are followed from now on, and that what happened until now may have been missed.
	Begun func(schema.GroupVersionKind)
}

// AddFollower says who else is told. It is to be called before the first kind is followed.
func (w *Watches) AddFollower(f Follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.followers = append(w.followers, f)
}

// Follow says which kinds are followed from now on, besides those that placements select. A kind that the API does not serve
// is followed once it does.
func (w *Watches) Follow(kinds ...schema.GroupVersionKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	follows := make(map[schema.GroupVersionKind]bool, len(kinds))
	changed := len(kinds) != len(w.follows)
	for _, kind := range kinds {
		follows[kind] = true
		if w.follows[kind] {
			continue
		}
		changed = true
		if r, running := w.runs(kind); running { // for a placement's sake, and so it begins for followers now
			w.follows = follows
			w.tellBegun(r)
		}
	}
	w.follows = follows
	if changed {
		offer(w.refresh)
	}
}

// runs finds the watch of a kind, if there is one.
func (w *Watches) runs(kind schema.GroupVersionKind) (resource, bool) {
	if w.known == nil {
		return resource{}, false
	}
	r, served := w.known.kinds[kind]
	return r, served && w.running[r.gvr] != nil
}

func (w *Watches) tellFollowers(r resource, o *metav1.PartialObjectMetadata) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := r.gvr.GroupVersion().WithKind(r.kind)
	if !w.follows[kind] {
		return
	}
	for _, f := range w.followers {
		f.Changed(kind, o)
	}
}

// tellBegun is called under the lock.
func (w *Watches) tellBegun(r resource) {
	kind := r.gvr.GroupVersion().WithKind(r.kind)
	if !w.follows[kind] {
		return
	}
	for _, f := range w.followers {
		f.Begun(kind)
	}
}
