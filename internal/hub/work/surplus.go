package work

import (
	"context"
	"fmt"
	"maps"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/render"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// removeSurplus deletes the binding's Works that a snapshot of fewer parts does not need. Where nothing is written in the
// member nothing is removed there either: they stay until the binding applies again.
func (c *Controller) removeSurplus(ctx context.Context, t render.Target, works map[string]*placementv1.Work, w *wish) error {
	needed := map[string]bool{}
	for _, wanted := range w.works {
		needed[wanted.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(works)) {
		work := works[name]
		if needed[name] || !t.Made(work) {
			continue
		}
		if err := c.mark(ctx, t, work); err != nil { // with its labels the agent's answer finds the binding
			return err
		}
		give := c.removeSurplusWork
		if t.ApplyStrategy.ReportsOnly() {
			give = c.keepSurplusWork
		}
		if err := give(ctx, t, work); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) removeSurplusWork(ctx context.Context, t render.Target, w *placementv1.Work) error {
	return c.removeWork(ctx, t, w, toBeRemoved)
}

// keepSurplusWork has a Work that is not needed, and that is not removed, write nothing either. One that is being deleted
// goes as it was meant: a removal that the agent was told of before cannot be taken back.
func (c *Controller) keepSurplusWork(ctx context.Context, t render.Target, w *placementv1.Work) error {
	switch {
	case !w.DeletionTimestamp.IsZero() && isConfirmed(w):
		return c.removeWork(ctx, t, w, toBeRemoved)
	case !w.DeletionTimestamp.IsZero():
		return c.lift(ctx, w)
	case !isConfirmed(w) && w.Spec.ApplyStrategy.Same(t.ApplyStrategy):
		return nil
	}
	before := w.DeepCopy()
	w.Spec.ApplyStrategy = t.ApplyStrategy
	delete(w.Annotations, placementv1.AnnotationRemovalConfirmed)
	err := c.Client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("have Work %s/%s report only: %w", w.Namespace, w.Name, err)
	}
	c.Tracker.Wrote(w)
	return nil
}
