// Package apply keeps in a member what the hub's Works say: it applies, watches what it applied, repairs what drifts, says
// whether it is available, and removes what is no longer wanted, but only on the hub's confirmed wish.
package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

var appliedWorks = placementv1.GroupVersion.WithResource("appliedworks")

// concurrency is how many Works are worked on at once.
const concurrency = 5

// Options are what an Applier needs.
type Options struct {
	// Member reaches the cluster that the agent runs in.
	Member *rest.Config
	// Namespace is the cluster's namespace on the hub.
	Namespace string
	// Clock is the clock.
	Clock clock.WithTicker
	// UnschedulableAfter is how long pods must have found no node to be reported. Default: 30 seconds.
	UnschedulableAfter time.Duration
	// Recorder records events on Works; nil records none.
	Recorder events.EventRecorder
}

// Applier applies the Works of one cluster.
type Applier struct {
	Options
	hub      client.Client
	member   dynamic.Interface
	metadata metadata.Interface
	discover discovery.DiscoveryInterfaceWithContext
	kinds    *kinds
	watches  *watches
	locks    locks
	// autoscalers tells when what scales workloads in the member has changed.
	autoscalers *autoscalers
	// rollouts knows the member's Kruise Rollouts.
	rollouts *rollouts
	// settling is how long what would go with an object may stay the same before that is left to it.
	settling time.Duration

	// gate is held for reading by whoever works on a Work, and for writing by who lets the applier work, or stops it.
	gate sync.RWMutex
	// active is false while the cluster has not joined, or leaves: nothing is applied then.
	active bool

	// mu guards what follows.
	mu       sync.Mutex
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
	backlog  []string // Works to look at once there is a queue
	memory   map[string]*workMemory
	listings map[types.UID]*listing
	waiting  map[string]waits
	woken    map[string]bool
	orphaned map[string]bool   // AppliedWorks whose Works the hub does not have
	asleep   map[string]bool   // Works, and AppliedWorks without one, that were not looked at since the applier did not work
	told     map[string]string // Work → what stands for the status that was written last
}

// waits is what the next try of a Work depends on, besides time.
type waits struct {
	// works: another Work may give up an object, or take one over. kinds: the member may come to know a kind.
	works, kinds bool
	// rollouts: a Rollout may come to guard a Deployment.
	rollouts bool
}

// workMemory is what an agent remembers of a Work between passes. It is used by the one pass over that Work. All of it can
// be lost: then objects are applied once more, and waits begin anew.
type workMemory struct {
	uid        types.UID
	generation int64
	// failures is how often in a row something of the Work has failed, and retryAt when that is tried again.
	failures int
	retryAt  time.Time
	// applied is what an object was when it was applied last; failed are those of which that failed.
	applied map[objectKey]appliedState
	failed  map[objectKey]failure
	// findings are what comparisons came to.
	findings map[objectKey]finding
	// pending is since when an object waits to be applied.
	pending map[objectKey]wait
	// unwanted is since when an object is not wanted any more.
	unwanted map[objectKey]time.Time
	// strangers are what keeps a namespace or a definition that is not wanted any more from being deleted.
	strangers map[objectKey]*strangers
	// released says which objects were left in the member while the Work was removed, and why.
	released []string
	// carried are the records of an AppliedWork that somebody deleted, and letGo the objects that it was taken off.
	carried []placementv1.AppliedResourceMeta
	letGo   sets.Set[types.UID]
	// written is the status that we wrote last, and the version of the Work that it made, until the cache has it.
	written *placementv1.Work
	// writtenAt is when we wrote last.
	writtenAt time.Time
}

func newMemory() *workMemory {
	return &workMemory{
		applied: map[objectKey]appliedState{}, failed: map[objectKey]failure{}, pending: map[objectKey]wait{},
		unwanted: map[objectKey]time.Time{}, strangers: map[objectKey]*strangers{}, letGo: sets.New[types.UID](),
	}
}

// New makes an Applier. It applies nothing before Activate.
func New(options Options) (*Applier, error) {
	if options.UnschedulableAfter <= 0 {
		options.UnschedulableAfter = UnschedulableAfter
	}
	member := rest.CopyConfig(options.Member)
	member.QPS = -1 // the member's priority and fairness decides who waits
	member.WarningHandlerWithContext = warnings{}
	transport, err := rest.HTTPClientFor(member)
	if err != nil {
		return nil, fmt.Errorf("make a client for the member: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(member, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client for the member: %w", err)
	}
	heads, err := metadata.NewForConfigAndClient(member, transport)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client for the member: %w", err)
	}
	discover, err := discovery.NewDiscoveryClientForConfigAndClient(member, transport)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client for the member: %w", err)
	}
	a := &Applier{
		Options: options, member: objects, metadata: heads, discover: discover,
		kinds:    &kinds{client: discover, versions: map[schema.GroupVersion]map[string]resource{}},
		settling: settling, memory: map[string]*workMemory{}, waiting: map[string]waits{}, woken: map[string]bool{}, orphaned: map[string]bool{}, asleep: map[string]bool{}, told: map[string]string{},
	}
	a.watches = newWatches(objects, heads, a.enqueue, a.kindsChanged)
	a.autoscalers = newAutoscalers(objects.Resource(autoscalerResource), a.enqueue)
	a.rollouts = newRollouts(objects, a.rolloutChanged)
	return a, nil
}

// SetupWithManager registers the controller with the manager of the hub's side, whose cache holds the cluster's namespace.
func (a *Applier) SetupWithManager(mgr ctrl.Manager) error {
	a.hub = mgr.GetClient()
	err := ctrl.NewControllerManagedBy(mgr).Named("work").
		Watches(&placementv1.Work{}, a.onWork(), builder.WithPredicates(a.asked())).
		WatchesRawSource(source.Func(a.start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, maxBackoff),
		}).
		Complete(a)
	if err != nil {
		return fmt.Errorf("set up the controller of Works: %w", err)
	}
	for _, r := range []manager.Runnable{a.watches, a.autoscalers, a.rollouts} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("add the watches of the member: %w", err)
		}
	}
	return nil
}

// start is given the controller's queue.
func (a *Applier) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	a.mu.Lock()
	a.queue = queue
	backlog := a.backlog
	a.backlog = nil
	a.mu.Unlock()
	for _, name := range backlog {
		a.enqueue(name)
	}
	return nil
}

// enqueue asks for a look at a Work.
func (a *Applier) enqueue(name string) {
	a.mu.Lock()
	queue := a.queue
	if queue == nil {
		a.backlog = append(a.backlog, name)
	}
	a.mu.Unlock()
	if queue != nil {
		queue.Add(a.request(name))
	}
}

func (a *Applier) request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: a.Namespace, Name: name}}
}

// Activate lets the applier work, or keeps it from it. A change waits for passes that are under way; to ask for what is so
// already waits for nothing, so that a member which does not answer holds up no heartbeat.
func (a *Applier) Activate(ctx context.Context, active bool) error {
	if !a.switchTo(active) || !active {
		return nil
	}
	all, err := a.readWorks(ctx)
	if err != nil {
		a.switchTo(false) // the next call tries again, and no Work is passed over
		return err
	}
	for name := range all {
		a.enqueue(name)
	}
	for _, name := range a.awaken() {
		a.enqueue(name)
	}
	return nil
}

// sleep takes note of what was to be looked at while the applier does not work.
func (a *Applier) sleep(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asleep[name] = true
}

// awaken returns what was to be looked at meanwhile.
func (a *Applier) awaken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := slices.Collect(maps.Keys(a.asleep))
	clear(a.asleep)
	return names
}

// switchTo opens the gate or closes it, and tells whether that is a change.
func (a *Applier) switchTo(active bool) bool {
	a.gate.RLock()
	same := a.active == active
	a.gate.RUnlock()
	if same {
		return false
	}
	a.gate.Lock()
	defer a.gate.Unlock()
	changed := a.active != active
	a.active = active
	return changed
}

// kindsChanged forgets which kinds the member serves, since a definition was added, changed or removed, and has another
// look at the Works that wait for one.
func (a *Applier) kindsChanged() {
	a.kinds.forget()
	a.wake("", func(w waits) bool { return w.kinds || w.rollouts })
	for _, name := range a.rollouts.works() { // the kind Rollout may have come, or gone
		a.enqueue(name)
	}
}

// rolloutChanged looks at a Work that has a Deployment beside a Rollout which has changed; at once, where a Deployment waits for one.
func (a *Applier) rolloutChanged(name string) {
	a.mu.Lock()
	if a.waiting[name].rollouts {
		a.woken[name] = true
	}
	a.mu.Unlock()
	a.enqueue(name)
}

// wake has those Works tried again at once, however often they have failed, that wait for what has happened. It passes
// over the Work that made it happen.
func (a *Applier) wake(but string, concerned func(waits) bool) {
	a.mu.Lock()
	var names []string
	for name, w := range a.waiting {
		if name != but && concerned(w) {
			a.woken[name] = true
			names = append(names, name)
		}
	}
	a.mu.Unlock()
	for _, name := range names {
		a.enqueue(name)
	}
}

// remember returns what is remembered of a Work.
func (a *Applier) remember(name string) *workMemory {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.memory[name]
	if m == nil {
		m = newMemory()
		a.memory[name] = m
	}
	return m
}

// forget drops what is remembered of a Work, and watches its objects no longer.
func (a *Applier) forget(name string) {
	a.mu.Lock()
	delete(a.memory, name)
	delete(a.waiting, name)
	delete(a.woken, name)
	delete(a.told, name)
	a.mu.Unlock()
	a.watches.set(name, nil)
	a.autoscalers.set(name, nil)
	a.rollouts.set(name, schema.GroupVersionResource{}, nil)
}

// resource returns the dynamic client for objects of a resource in a namespace, or for cluster-scoped ones.
func (a *Applier) resource(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return a.member.Resource(gvr)
	}
	return a.member.Resource(gvr).Namespace(namespace)
}

// locks let one goroutine at a time decide on an object: what one Work gives up another may take over, and the two must not
// be decided on at once.
type locks [64]sync.Mutex

// hold locks an object until the returned function is called.
func (l *locks) hold(key objectKey) (release func()) {
	var sum uint32 = 2166136261
	for _, c := range []byte(key.String()) {
		sum = (sum ^ uint32(c)) * 16777619
	}
	mu := &l[sum%uint32(len(l))]
	mu.Lock()
	return mu.Unlock
}
