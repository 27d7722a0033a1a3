package framework

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// placements counts placements of tests, so that each has a name of its own, however often a test is run.
var placements atomic.Int32

// Hub is a hub that runs one controller alone, and a placement for a test to make. Its client has no cache: with it the
// test plays the users, the other controllers and the agents.
type Hub struct {
	client.WithWatch
	// Name is the placement's name, and stands before the names of its clusters.
	Name string
	// UID is what the placement's objects say of whose they are.
	UID types.UID
	// Writes are those of the controller to what is the placement's.
	Writes *Writes
	// Stop stops the controller, when it has ended what it is doing.
	Stop func()

	t      testing.TB
	config *rest.Config
	caches cache.Options
	add    func(ctrl.Manager) error
}

// NewHub makes a hub on the API server of config that runs nothing yet.
func NewHub(t testing.TB, config *rest.Config) *Hub {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	name := fmt.Sprintf("app%d", placements.Add(1))
	return &Hub{WithWatch: c, Name: name, UID: types.UID("uid-of-" + name), Writes: &Writes{Placement: name}, Stop: func() {}, t: t, config: config}
}

// Later returns the same hub with a placement that is made later than anything else.
func (h *Hub) Later() *Hub {
	later := *h
	later.Name = fmt.Sprintf("%s-later%d", h.Name, placements.Add(1))
	later.UID = types.UID("uid-of-" + later.Name)
	return &later
}

// Run starts the controller that add adds to a manager, until Stop, or the end of the test.
func (h *Hub) Run(caches cache.Options, add func(ctrl.Manager) error) {
	h.t.Helper()
	h.caches, h.add = caches, add
	h.Start()
}

// Start starts the controller anew, as a hub that knows nothing of the one before.
func (h *Hub) Start() {
	h.t.Helper()
	mgr, err := ctrl.NewManager(h.config, ctrl.Options{
		Scheme: Scheme(), Metrics: server.Options{BindAddress: "0"}, Cache: h.caches,
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		h.t.Fatalf("make a manager: %v", err)
	}
	if err := h.add(mgr); err != nil {
		h.t.Fatalf("add the controller: %v", err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			h.t.Errorf("the hub ended: %v", err)
		}
	})
	h.Stop = func() {
		cancel()
		running.Wait()
	}
	h.t.Cleanup(h.Stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		h.t.Fatal("the hub's cache does not fill")
	}
}

// Cluster is the name of one of the placement's clusters.
func (h *Hub) Cluster(short string) string { return h.Name + "-" + short }

// Owned is the metadata of something that was made for the placement.
func (h *Hub) Owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{placementv1.LabelParentPlacement: h.Name},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: string(h.UID)},
	}
}

// Place makes the placement itself, of a namespace, with a strategy.
func (h *Hub) Place(strategy placementv1.RolloutStrategyType) *placementv1.ClusterResourcePlacement {
	h.t.Helper()
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
	p.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "test"}}
	p.Spec.Strategy.Type = strategy
	h.Make(p)
	h.UID = p.UID
	return p
}

// Make creates an object.
func (h *Hub) Make(o client.Object) {
	h.t.Helper()
	if err := h.Create(h.t.Context(), o); err != nil {
		h.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// Change changes an object by a merge patch.
func (h *Hub) Change(o client.Object, patch string) {
	h.t.Helper()
	if err := h.Patch(h.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		h.t.Fatalf("change %T %s: %v", o, o.GetName(), err)
	}
}

// LetGo takes the finalizers off an object.
func (h *Hub) LetGo(o client.Object) {
	h.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := h.Patch(CleanupContext(h.t), o, patch); client.IgnoreNotFound(err) != nil {
		h.t.Fatalf("let %T %s go: %v", o, o.GetName(), err)
	}
}

// Erase deletes an object, whatever holds it, at the end of a test too.
func (h *Hub) Erase(o client.Object) {
	h.t.Helper()
	if err := h.Delete(CleanupContext(h.t), o); client.IgnoreNotFound(err) != nil {
		h.t.Fatalf("delete %T %s: %v", o, o.GetName(), err)
	}
	h.LetGo(o)
}
