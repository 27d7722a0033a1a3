// Package apply keeps in a member what the hub's Works say: it applies, watches what it applied, repairs what drifts, says
// whether it is available, and removes what is no longer wanted, but only on the hub's confirmed wish.
package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

var appliedWorks = placementv1.GroupVersion.WithResource("appliedworks")

// Options are what an Applier needs.
type Options struct {
	// Member reaches the cluster that the agent runs in.
	Member *rest.Config
	// Namespace is the cluster's namespace on the hub.
	Namespace string
	// Clock is the clock.
	Clock clock.WithTicker
	// Recorder records events on Works; nil records none.
	Recorder events.EventRecorder
}

// Applier applies the Works of one cluster.
type Applier struct {
	Options
	hub      client.Client
	member   dynamic.Interface
	discover discovery.CachedDiscoveryInterface
	mapper   meta.ResettableRESTMapper
	watches  *watches
	events   chan event.TypedGenericEvent[*placementv1.Work]

	// mu lets one Work at a time be worked on: what one Work gives up another may take over, and the two must not be
	// decided on at once.
	mu sync.Mutex
	// active is false while the cluster has not joined, or leaves: nothing is applied then.
	active bool
	memory map[string]*workMemory // Work name → what is remembered between passes
}

// workMemory is what an agent remembers of a Work. All of it can be lost: then objects are applied once more, and waits
// begin anew.
type workMemory struct {
	generation int64
	failures   int
	// written is the Work as our last write of its status left it. A cached one that is older is not looked at: the event
	// that brings the newer one brings the next pass.
	written *placementv1.Work
	// applied is what an object was when we last applied it: object → hash of manifest and live content.
	applied map[objectKey]appliedState
	// unwanted is since when an object is not wanted any more.
	unwanted map[objectKey]time.Time
	// released are objects that were left in the member while the Work was removed.
	released []string
	// carried are records of an AppliedWork that somebody deleted.
	carried []placementv1.AppliedResourceMeta
}

// New makes an Applier. It applies nothing before Activate.
func New(options Options) (*Applier, error) {
	member, err := dynamic.NewForConfig(options.Member)
	if err != nil {
		return nil, fmt.Errorf("make a client for the member: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(options.Member)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client for the member: %w", err)
	}
	cached := memory.NewMemCacheClient(d)
	a := &Applier{
		Options: options, member: member, discover: cached,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached),
		events: make(chan event.TypedGenericEvent[*placementv1.Work], 1024),
		memory: map[string]*workMemory{},
	}
	a.watches = newWatches(member, a.enqueue, a.kindsChanged)
	return a, nil
}

// SetupWithManager registers the controller with the manager of the hub's side, whose cache holds the cluster's namespace.
func (a *Applier) SetupWithManager(mgr ctrl.Manager) error {
	a.hub = mgr.GetClient()
	err := ctrl.NewControllerManagedBy(mgr).Named("work").
		Watches(&placementv1.Work{}, a.onWork()).
		WatchesRawSource(source.Channel(a.events, &handler.TypedEnqueueRequestForObject[*placementv1.Work]{})).
		Complete(a)
	if err != nil {
		return fmt.Errorf("set up the controller of Works: %w", err)
	}
	if err := mgr.Add(a.watches); err != nil {
		return fmt.Errorf("add the watches of the member: %w", err)
	}
	return nil
}

// Activate lets the applier work, or keeps it from it.
func (a *Applier) Activate(ctx context.Context, active bool) error {
	a.mu.Lock()
	changed := a.active != active
	a.active = active
	a.mu.Unlock()
	if !changed || !active {
		return nil
	}
	var works placementv1.WorkList
	if err := a.hub.List(ctx, &works, client.InNamespace(a.Namespace)); err != nil {
		return fmt.Errorf("list Works: %w", err)
	}
	for i := range works.Items {
		a.enqueue(works.Items[i].Name)
	}
	return nil
}

// enqueue asks for a look at a Work.
func (a *Applier) enqueue(name string) {
	work := &placementv1.Work{}
	work.Namespace, work.Name = a.Namespace, name
	a.events <- event.TypedGenericEvent[*placementv1.Work]{Object: work}
}

// kindsChanged forgets which kinds the member serves: a definition was added, changed or removed.
func (a *Applier) kindsChanged() {
	a.mapper.Reset()
	a.mu.Lock()
	names := make([]string, 0, len(a.memory))
	for name, m := range a.memory {
		if m.failures > 0 {
			names = append(names, name)
		}
	}
	a.mu.Unlock()
	for _, name := range names {
		a.enqueue(name)
	}
}

func (a *Applier) remember(name string) *workMemory {
	m := a.memory[name]
	if m == nil {
		m = &workMemory{applied: map[objectKey]appliedState{}, unwanted: map[objectKey]time.Time{}}
		a.memory[name] = m
	}
	return m
}

// resource returns the dynamic client for objects of a resource in a namespace, or for cluster-scoped ones.
func (a *Applier) resource(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return a.member.Resource(gvr)
	}
	return a.member.Resource(gvr).Namespace(namespace)
}
