package work

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crashing is the client of a hub that crashes at its n-th write: the write still reaches the server, or just does not, but
// the hub does not learn of it, and writes nothing more.
type crashing struct {
	client.Client
	left    atomic.Int32
	reaches bool
	crashed chan struct{}
}

var errCrash = errors.New("the hub has crashed")

func (c *crashing) write(write func() error) error {
	switch left := c.left.Add(-1); {
	case left > 0:
		return write()
	case left < 0:
		return errCrash
	}
	if c.reaches {
		_ = write() // whatever came of it, the hub does not know
	}
	close(c.crashed)
	return errCrash
}

func (c *crashing) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(func() error { return c.Client.Create(ctx, o, opts...) })
}

func (c *crashing) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(func() error { return c.Client.Update(ctx, o, opts...) })
}

func (c *crashing) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.write(func() error { return c.Client.Patch(ctx, o, p, opts...) })
}

func (c *crashing) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.write(func() error { return c.Client.Delete(ctx, o, opts...) })
}

func (c *crashing) Status() client.SubResourceWriter {
	return &crashingStatus{SubResourceWriter: c.Client.Status(), crash: c}
}

type crashingStatus struct {
	client.SubResourceWriter
	crash *crashing
}

func (c *crashingStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.crash.write(func() error { return c.SubResourceWriter.Patch(ctx, o, p, opts...) })
}

// A cluster is given a snapshot of two parts, then one of a single part, and then its binding is deleted. Wherever a hub
// crashes on that way, the next one ends where the first would have. It crashes later each time, until it makes it all the
// way.
func TestCrashes(t *testing.T) {
	const least = 10 // writes on the way: two Works, one that goes and one that changes, its going, and statuses
	arrived := false
	for n := int32(0); !arrived && !t.Failed(); n++ {
		t.Run(fmt.Sprint("at write ", n+1), func(t *testing.T) {
			f := newFixture(t)
			f.Stop()
			crash := &crashing{reaches: n%2 == 0, crashed: make(chan struct{})}
			crash.left.Store(n + 1)
			f.wrap = func(c client.Client) client.Client {
				crash.Client = c
				return crash
			}
			f.Start()
			crashed := crash.crashed
			reach := func(o client.Object, done func(exists bool) bool) {
				t.Helper()
				result := make(chan error, 1)
				go func() { result <- framework.AwaitE(t.Context(), f, o, done) }()
				select {
				case err := <-result:
					result <- err
				case <-crashed:
					crashed, f.wrap = nil, nil
					f.Stop()
					f.Start()
				}
				if err := <-result; err != nil {
					t.Fatalf("%T %s: %v", o, o.GetName(), err)
				}
			}

			a := f.join("c")
			f.snapshot(0, []string{"a"}, []string{"b"})
			f.snapshot(1, []string{"a", "b"})
			b := f.bind("c", 0)
			reach(b, func(exists bool) bool { return exists && isOn(b, "0") })
			f.move(b, 1)
			reach(b, func(exists bool) bool { return exists && isOn(b, "1") })
			f.delete(b)
			reach(b, func(exists bool) bool { return !exists })
			select {
			case <-crash.crashed:
			default:
				arrived = true
				if n < least {
					t.Errorf("the hub made %d writes, want %d at least", n, least)
				}
			}
			if _, released := a.story(); len(released) > 0 {
				t.Errorf("Works were deleted without the hub's word: %v", released)
			}
		})
	}
}

// isOn tells whether a binding says, of itself as it is, that a snapshot is available.
func isOn(b *placementv1.ClusterResourceBinding, index string) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionAvailable)
	return c != nil && c.Status == "True" && c.ObservedGeneration == b.Generation && b.Status.ObservedResourceIndex == index
}

// However many clusters move to a snapshot at once, its content is read once, and a hub that starts anew writes nothing.
func TestManyClusters(t *testing.T) {
	f := newFixture(t)
	f.snapshot(0, []string{"a"})
	const clusters = 25
	for i := range clusters {
		f.join(fmt.Sprint(i))
	}
	var bindings []*placementv1.ClusterResourceBinding
	for i := range clusters {
		bindings = append(bindings, f.bind(fmt.Sprint(i), 0))
	}
	for _, b := range bindings {
		f.await(b, placementv1.ConditionAvailable, isAvailable)
	}
	if n := f.reads.count.Load(); n != 1 {
		t.Errorf("the content was read %d times for %d clusters", n, clusters)
	}
	f.writes()
	f.Stop()
	f.Start()
	if got := f.writes(); len(got) > 0 {
		t.Errorf("writes after a restart: %v", got)
	}
}
