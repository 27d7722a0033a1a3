package division

import (
	"context"
	"errors"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// remove takes away all that belongs to a deleted internal placement: its bindings, each of which goes when its cluster has removed
// or released what was placed, then its revisions, then its finalizer.
func (c *Controller) remove(ctx context.Context, p *pass) error {
	if !controllerutil.ContainsFinalizer(p.placement, policyv1alpha1.FinalizerObjectPlacement) {
		return nil
	}
	// The cache may not have seen a binding that was made last, and somebody may have taken the label off another.
	all, err := listing.AllBindings(ctx, c.APIReader, c.Carriage, client.InNamespace(p.placement.GetNamespace()))
	if err != nil {
		return err
	}
	live := slices.DeleteFunc(all, func(b placementv1.BindingObject) bool {
		return b.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.placement.GetUID())
	})
	if len(live) > 0 {
		var failures []error
		for _, b := range live {
			if b.GetDeletionTimestamp().IsZero() {
				failures = append(failures, c.deleteBinding(ctx, b))
			}
		}
		p.removing(c.Clock.Now(), live)
		return errors.Join(append(failures, c.report(ctx, p))...)
	}
	revisions, err := listing.ResourceSnapshots(ctx, c.APIReader, c.Carriage, p.key())
	if err != nil {
		return err
	}
	for _, s := range revisions {
		if s.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.placement.GetUID()) {
			continue
		}
		err := c.Client.Delete(ctx, s, client.Preconditions{UID: ptr.To(s.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete revision %s: %w", s.GetName(), err)
		}
	}
	before := p.placement.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of an object is one
	controllerutil.RemoveFinalizer(p.placement, policyv1alpha1.FinalizerObjectPlacement)
	err = c.Client.Patch(ctx, p.placement, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from %s %s: %w", c.Carriage.Parent, p.key(), err)
	}
	c.tracker.Forget(p.placement.GetUID())
	return nil
}
