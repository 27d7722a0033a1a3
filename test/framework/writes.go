package framework

import (
	"context"
	"fmt"
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writes counts what clients write, attempts that fail included, by verb and type: "update *v1.Work", or "status *v1.Work"
// for a status however it is written. A status that was decided on an older version than there is, and was refused for that,
// is none: a hub that was just started may see such. Its zero value is ready for use.
type Writes struct {
	// Placement is the placement whose objects are counted; empty for all objects.
	Placement string

	mu  sync.Mutex
	all map[string]int
}

// Count returns a client that does what c does, and is counted.
func (w *Writes) Count(c client.Client) client.Client { return &counting{Client: c, writes: w} }

// Take returns what was counted since it was last called.
func (w *Writes) Take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// add counts a write that is sent, and returns what takes it back. What a hub tries that was stopped is never sent.
func (w *Writes) add(ctx context.Context, verb string, o client.Object) (undo func()) {
	if ctx.Err() != nil {
		return func() {}
	}
	w.count(verb, o, 1)
	return func() { w.count(verb, o, -1) }
}

func (w *Writes) count(verb string, o client.Object, n int) {
	if w.Placement != "" && o.GetLabels()[placementv1.LabelParentPlacement] != w.Placement {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]int{}
	}
	key := fmt.Sprintf("%s %T", verb, o)
	if w.all[key] += n; w.all[key] == 0 {
		delete(w.all, key)
	}
}

type counting struct {
	client.Client
	writes *Writes
}

func (c *counting) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	c.writes.add(ctx, "create", o)
	return c.Client.Create(ctx, o, opts...)
}

func (c *counting) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	c.writes.add(ctx, "update", o)
	return c.Client.Update(ctx, o, opts...)
}

func (c *counting) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	c.writes.add(ctx, "patch", o)
	return c.Client.Patch(ctx, o, p, opts...)
}

func (c *counting) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	c.writes.add(ctx, "delete", o)
	return c.Client.Delete(ctx, o, opts...)
}

func (c *counting) Status() client.SubResourceWriter {
	return &countingStatus{SubResourceWriter: c.Client.Status(), writes: c.writes}
}

type countingStatus struct {
	client.SubResourceWriter
	writes *Writes
}

func (c *countingStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	undo := c.writes.add(ctx, "status", o) // before anybody can see what was written
	err := c.SubResourceWriter.Update(ctx, o, opts...)
	if apierrors.IsConflict(err) {
		undo()
	}
	return err
}

func (c *countingStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	undo := c.writes.add(ctx, "status", o) // before anybody can see what was written
	err := c.SubResourceWriter.Patch(ctx, o, p, opts...)
	if apierrors.IsConflict(err) {
		undo()
	}
	return err
}
