package properties

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// mostNamespaces and namespacesBudget are how many namespaces are told of, and how many bytes their names and owners may
	// take in a status.
	mostNamespaces, namespacesBudget = 5000, 192 << 10
	// perNamespace is what a name takes besides its letters: quotes, a colon, a comma.
	perNamespace = 6
	// moment is for how long changes of namespaces are gathered at the least: where one is made, more are.
	moment = 300 * time.Millisecond
	// inARow is how often changes are told of after no more than a moment. Placements wait for namespaces; but where they come
	// and go all the time, the hub is told every ten seconds.
	inARow = 5
)

// Namespaces finds out which namespaces a cluster has, and which of them were placed.
type Namespaces struct {
	// Member reaches the cluster.
	Member *rest.Config
	// Clock is the clock.
	Clock clock.WithTicker
}

// Run finds out until ctx ends. It says the name of each namespace with that of the AppliedWork that owns it; "" for one that
// was not placed.
func (n *Namespaces) Run(ctx context.Context, say func(map[string]string, error)) error {
	client, err := metadata.NewForConfig(n.Member)
	if err != nil {
		return fmt.Errorf("make a client for the member's namespaces: %w", err)
	}
	resource := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	store := &namespaceStore{all: map[string]string{}, dirty: make(chan struct{}, 1)}
	listed := attentive(ctx, resource.List, resource.Watch, func(err error) {
		if err != nil {
			say(nil, fmt.Errorf("read namespaces: %w", err))
		} else if all := store.now(); all != nil {
			say(all, nil)
		}
	})
	reflector := cache.NewReflectorWithOptions(listed, &metav1.PartialObjectMetadata{}, store, cache.ReflectorOptions{Name: "namespaces of the member"})
	var watching sync.WaitGroup
	watching.Go(func() { reflector.RunWithContext(ctx) })
	n.gather(ctx, store, say)
	watching.Wait()
	return nil
}

// restraint is how far ahead of one word in each settle the words are that were said.
type restraint struct{ paid time.Time }

// wait is for how long to gather before the next word.
func (r *restraint) wait(now time.Time) time.Duration {
	ahead := max(0, r.paid.Sub(now)) // before the first word it is as far behind as can be
	return max(moment, ahead-(inARow-1)*settle)
}

// spoke takes note of a word.
func (r *restraint) spoke(now time.Time) {
	if r.paid.Before(now) {
		r.paid = now
	}
	r.paid = r.paid.Add(settle)
}

// gather tells of changes: soon after they have come, or later where there are many.
func (n *Namespaces) gather(ctx context.Context, store *namespaceStore, say func(map[string]string, error)) {
	var r restraint
	for {
		select {
		case <-ctx.Done():
			return
		case <-store.dirty:
		}
		select {
		case <-ctx.Done():
			return
		case <-n.Clock.After(r.wait(n.Clock.Now())):
		}
		select { // what came in the meantime is told of now
		case <-store.dirty:
		default:
		}
		if all := store.now(); all != nil {
			r.spoke(n.Clock.Now())
			say(all, nil)
		}
	}
}

// namespaceStore receives namespaces from a watch and keeps their names and owners alone.
type namespaceStore struct {
	dirty chan struct{}

	mu    sync.Mutex
	all   map[string]string
	whole bool // a whole list was seen
}

// now returns a copy of what is known; nil while that is nothing.
func (s *namespaceStore) now() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.whole {
		return nil
	}
	return maps.Clone(s.all)
}

func (s *namespaceStore) mark() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// Add takes note of a namespace.
func (s *namespaceStore) Add(object any) error { return s.Update(object) }

// Update takes note of a namespace as it is now. One that is going takes nothing in any more, and is left out.
func (s *namespaceStore) Update(object any) error {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("want a Namespace's metadata, got %T", object)
	}
	if namespace.DeletionTimestamp != nil {
		return s.Delete(object)
	}
	owner := ownerOf(namespace)
	s.mu.Lock()
	before, had := s.all[namespace.Name]
	s.all[namespace.Name] = owner
	s.mu.Unlock()
	if !had || before != owner {
		s.mark()
	}
	return nil
}

// Delete forgets a namespace.
func (s *namespaceStore) Delete(object any) error {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("want a Namespace's metadata, got %T", object)
	}
	s.mu.Lock()
	_, had := s.all[namespace.Name]
	delete(s.all, namespace.Name)
	s.mu.Unlock()
	if had {
		s.mark()
	}
	return nil
}

// Replace takes note of all namespaces at once.
func (s *namespaceStore) Replace(objects []any, _ string) error {
	all := make(map[string]string, len(objects))
	for _, object := range objects {
		namespace, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("want a Namespace's metadata, got %T", object)
		}
		if namespace.DeletionTimestamp == nil {
			all[namespace.Name] = ownerOf(namespace)
		}
	}
	s.mu.Lock()
	same := s.whole && maps.Equal(s.all, all)
	s.all, s.whole = all, true
	s.mu.Unlock()
	if !same {
		s.mark()
	}
	return nil
}

// Resync does nothing.
func (s *namespaceStore) Resync() error { return nil }

// ownerOf is the name of the AppliedWork that owns an object; "" where none does.
func ownerOf(object metav1.Object) string {
	for _, owner := range object.GetOwnerReferences() {
		if placement.IsAppliedWork(owner) {
			return owner.Name
		}
	}
	return ""
}

// namespacesWord is what is known of namespaces.
type namespacesWord struct {
	// all are those that are told of, of so many that there are.
	all   map[string]string
	count int
	trouble
}

// fit returns as many namespaces as a status has room for: those that were placed first, then in the order of their names.
func fit(all map[string]string) map[string]string {
	size := 0
	for name, owner := range all {
		size += len(name) + len(owner) + perNamespace
	}
	if len(all) <= mostNamespaces && size <= namespacesBudget {
		return all
	}
	names := sortedKeys(all)
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case (all[a] != "") == (all[b] != ""):
			return 0
		case all[a] != "":
			return -1
		}
		return 1
	})
	fitting, left := map[string]string{}, namespacesBudget
	for _, name := range names[:min(len(names), mostNamespaces)] {
		if left -= len(name) + len(all[name]) + perNamespace; left < 0 {
			break
		}
		fitting[name] = all[name]
	}
	return fitting
}

// namespacesCondition tells whether the namespaces that are told of are all that there are now.
func (c *Collector) namespacesCondition(now time.Time) *metav1.Condition {
	w := &c.namespace
	degraded := func(message string) *metav1.Condition {
		return says(clusterv1.ConditionNamespaceCollectionSucceeded, metav1.ConditionFalse, clusterv1.ReasonNamespaceCollectionDegraded, message)
	}
	switch {
	case c.spaces == nil:
		return nil
	case w.why != nil && !now.Before(w.since.Add(grace)):
		return degraded(fmt.Sprintf("the namespaces told of are those last seen, since they cannot be read (since %s): %v", w.since.UTC().Format(time.RFC3339), w.why))
	case w.all == nil && !c.begun.IsZero() && !now.Before(c.begun.Add(firstWord)):
		return degraded(fmt.Sprintf("the cluster's namespaces are not known after %s; goes on trying", firstWord))
	case w.all == nil:
		return nil
	case len(w.all) < w.count:
		return degraded(fmt.Sprintf("%d of %d namespaces are told of, those that were placed first; the status has no room for more", len(w.all), w.count))
	}
	return says(clusterv1.ConditionNamespaceCollectionSucceeded, metav1.ConditionTrue, clusterv1.ReasonNamespaceCollectionSucceeded,
		"all namespaces of the cluster are told of")
}
