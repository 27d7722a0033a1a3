// Package consistency keeps decisions from being made on a cache that has not yet seen our own last write.
package consistency

import (
	"math/big"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Tracker remembers, per object, the resource version of our own last write. Its zero value is ready for use, and it may
// be used by several goroutines at once.
//
// An object is known by its UID, so that one which was deleted and made again under its name is never mistaken for the
// one that was written. Forget it when it is gone.
type Tracker struct {
	mu      sync.Mutex
	written map[types.UID]string // UID of an object → resource version of our last write of it
}

// Wrote records that obj, as the API server returned it, is what we wrote last.
func (t *Tracker) Wrote(obj metav1.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.written == nil {
		t.written = map[types.UID]string{}
	}
	if last, known := t.written[obj.GetUID()]; !known || newer(obj.GetResourceVersion(), last) {
		t.written[obj.GetUID()] = obj.GetResourceVersion()
	}
}

// Behind tells whether obj, as read from a cache, is older than our own last write of it. The event that brings the
// newer one also brings the next reconcile, so a caller that finds it behind returns and waits.
func (t *Tracker) Behind(obj metav1.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.written[obj.GetUID()]
	if !known {
		return false
	}
	if newer(last, obj.GetResourceVersion()) {
		return true
	}
	// The cache has caught up. What is remembered beyond this moment would only take up memory.
	delete(t.written, obj.GetUID())
	return false
}

// Ours tells whether obj is as our own last write left it. As soon as Behind has seen that, it is not known any more.
func (t *Tracker) Ours(obj metav1.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.written[obj.GetUID()]
	return known && last == obj.GetResourceVersion()
}

// Forget drops what is known of an object that is gone.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.written, uid)
}

// newer tells whether resource version a is later than b. Since Kubernetes 1.35 the versions of one resource are
// decimal numbers that clients may compare; anything else counts as not newer.
func newer(a, b string) bool {
	x, okA := new(big.Int).SetString(a, 10)
	y, okB := new(big.Int).SetString(b, 10)
	return okA && okB && x.Cmp(y) > 0
}
