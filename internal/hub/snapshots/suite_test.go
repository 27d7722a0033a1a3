package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// hub leads to the API server that the tests share. They run one after the other.
var hub *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(framework.RunWithAPIServer(m, &hub))
}

// fixture is a placement with what it selects.
type fixture struct {
	client.Client
	t *testing.T
	p *placementv1.ClusterResourcePlacement

	mu      sync.Mutex
	objects []snapshot.Object
	err     error
}

func newFixture(t *testing.T, name string) *fixture {
	t.Helper()
	c, err := client.NewWithWatch(hub, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Client: c, t: t, p: &placementv1.ClusterResourcePlacement{}}
	f.p.Name = name
	f.p.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "demo"}}
	if err := c.Create(t.Context(), f.p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.removeAll(c) })
	return f
}

// removeAll removes the placement and what was made for it.
func (f *fixture) removeAll(c client.WithWatch) {
	f.t.Helper()
	ctx := framework.CleanupContext(f.t)
	kinds, key := placement.ClusterKinds(), client.ObjectKeyFromObject(f.p)
	snapshots, err := listing.ResourceSnapshots(ctx, c, &kinds.Carriage, key)
	if err != nil {
		f.t.Error(err)
	}
	bindings, err := listing.Bindings(ctx, c, &kinds.Carriage, key)
	if err != nil {
		f.t.Error(err)
	}
	for _, s := range snapshots {
		framework.Remove(f.t, c, s)
	}
	for _, b := range bindings {
		framework.Remove(f.t, c, b)
	}
	framework.Remove(f.t, c, f.p)
}

// Select plays the selection.
func (f *fixture) Select(context.Context, placementv1.PlacementObject) (*selection.Selection, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &selection.Selection{Objects: f.objects}, f.err
}

// selects sets what is selected: one ConfigMap of a size for each number, in KiB, filled with a letter.
func (f *fixture) selects(letter string, sizes ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects = contents(f.t, letter, sizes...)
}

func contents(t testing.TB, letter string, sizes ...int) []snapshot.Object {
	t.Helper()
	var objects []snapshot.Object
	for i, size := range sizes {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"x": strings.Repeat(letter, size*1024)}}}
		o.SetName(fmt.Sprintf("c%d", i))
		o.SetNamespace("demo")
		made, err := snapshot.NewObject(o)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, made)
	}
	snapshot.Sort(objects)
	return objects
}

// store makes a store of its own, as a hub that is started anew does.
func (f *fixture) store() *snapshots.Store { return f.storeOf(f.Client) }

func (f *fixture) storeOf(c client.Client) *snapshots.Store {
	return &snapshots.Store{Client: c, APIReader: f.Client, Carriage: &placement.ClusterKinds().Carriage, Kinds: placement.ClusterKinds(), Selector: f}
}

func (f *fixture) ensure(s *snapshots.Store) int {
	f.t.Helper()
	index, err := s.Ensure(f.t.Context(), f.p)
	if err != nil {
		f.t.Fatalf("make a snapshot: %v", err)
	}
	return index
}

func (f *fixture) all() []placementv1.ResourceSnapshotObject {
	f.t.Helper()
	all, err := listing.ResourceSnapshots(f.t.Context(), f.Client, &placement.ClusterKinds().Carriage, client.ObjectKeyFromObject(f.p))
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// names are the snapshot objects, with a star for the latest.
func (f *fixture) names() []string {
	var names []string
	for _, o := range f.all() {
		name := strings.TrimPrefix(o.GetName(), f.p.Name+"-")
		if o.GetLabels()[placementv1.LabelIsLatestSnapshot] == "true" {
			name += "*"
		}
		names = append(names, name)
	}
	return names
}

// bind makes a binding that is to be on a snapshot.
func (f *fixture) bind(cluster string, index int) {
	f.t.Helper()
	b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name:        placement.BindingName(client.ObjectKeyFromObject(f.p), cluster),
		Labels:      map[string]string{placementv1.LabelParentPlacement: f.p.Name},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: string(f.p.UID)},
	}}
	b.Spec = placementv1.ResourceBindingSpec{
		State: placementv1.BindingStateBound, TargetCluster: cluster, SchedulingPolicySnapshotName: f.p.Name + "-0",
		ResourceSnapshotName: placement.ResourceSnapshotName(f.p.Name, index),
		ClusterDecision:      placementv1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "picked"},
	}
	if err := f.Create(f.t.Context(), b); err != nil {
		f.t.Fatal(err)
	}
}

// errCrash is what a client says that its process does not live to hear.
var errCrash = errors.New("crash")

// crashing returns a client that carries out n writes and then none.
func (f *fixture) crashing(n int) client.Client {
	f.t.Helper()
	underlying, ok := f.Client.(client.WithWatch)
	if !ok {
		f.t.Fatal("the client cannot watch")
	}
	write := func(do func() error) error {
		if n--; n < 0 {
			return errCrash
		}
		return do()
	}
	return interceptor.NewClient(underlying, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, o, patch, opts...) })
		},
	})
}
