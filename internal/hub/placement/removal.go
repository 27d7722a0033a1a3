package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"github.com/fleetwright/fleetwright/internal/schedule"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// remove takes away all that belongs to a deleted placement: its bindings, each of which goes when its cluster has removed
// what was placed there, then its snapshots, and then its finalizer.
func (c *Controller) remove(ctx context.Context, key model.Key, p placementv1.PlacementObject, m *memory) (time.Duration, error) {
	c.Watches.Forget(key)
	c.quiet.settle(key)
	if !controllerutil.ContainsFinalizer(p, placementv1.FinalizerPlacementCleanup) {
		return 0, nil
	}
	bindings, err := c.removeBindings(ctx, key, p)
	if err != nil {
		return 0, err
	}
	if len(bindings) == 0 {
		if bindings, err = c.bindOrphans(ctx, key, p); err != nil {
			return 0, err
		}
	}
	if len(bindings) > 0 {
		return c.reportRemoval(ctx, key, p, bindings, m)
	}
	if err := errors.Join(c.removeSnapshots(ctx, key, p), c.unshare(ctx, p)); err != nil {
		return 0, err
	}
	before := p.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a placement is an object
	controllerutil.RemoveFinalizer(p, placementv1.FinalizerPlacementCleanup)
	err = c.Client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("remove the finalizer from %s %s: %w", c.Kinds.Placement, key, err)
	}
	c.Tracker.Forget(p.GetUID())
	became := "All that was placed is gone from the clusters"
	if p.PlacementSpec().Strategy.DeleteStrategy.Abandons() {
		became = "All that was placed stays in the clusters, and is the fleet's no more, since the deleteStrategy is Abandon"
	}
	c.event(p, corev1.EventTypeNormal, EventFinalizerRemoved, became+"; all snapshots are gone from the hub")
	return 0, nil
}

// removeBindings deletes the placement's bindings and returns those that are still there. That there are none is asked
// of the API server: the cache may not have seen one that was made last.
func (c *Controller) removeBindings(ctx context.Context, key model.Key, p placementv1.PlacementObject) ([]placementv1.BindingObject, error) {
	var left []placementv1.BindingObject
	for _, reader := range []client.Reader{c.Client, c.APIReader} {
		bindings, err := listing.Bindings(ctx, reader, &c.Kinds.Carriage, key)
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			if b.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.GetUID()) {
				continue
			}
			if b.GetDeletionTimestamp().IsZero() {
				switch err := c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID())}); {
				case apierrors.IsNotFound(err):
					continue
				case err != nil:
					return nil, fmt.Errorf("delete %s %s: %w", c.Kinds.Binding, b.GetName(), err)
				}
			}
			left = append(left, b)
		}
		if len(left) > 0 {
			return left, nil
		}
	}
	return nil, nil
}

// removeSnapshots deletes the placement's policy and resource snapshots.
func (c *Controller) removeSnapshots(ctx context.Context, key model.Key, p placementv1.PlacementObject) error {
	resources, err := listing.ResourceSnapshots(ctx, c.APIReader, &c.Kinds.Carriage, key)
	if err != nil {
		return err
	}
	policies, err := listing.PolicySnapshots(ctx, c.APIReader, c.Kinds, key)
	if err != nil {
		return err
	}
	var all []client.Object
	for _, s := range resources {
		all = append(all, s)
	}
	for _, s := range policies {
		all = append(all, s)
	}
	for _, s := range all {
		if s.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.GetUID()) {
			continue
		}
		if err := c.Client.Delete(ctx, s, client.Preconditions{UID: ptr.To(s.GetUID())}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete snapshot %s: %w", s.GetName(), err)
		}
	}
	return nil
}

// reportRemoval says which clusters a deleted placement waits for. A removal that is over within a moment says nothing.
func (c *Controller) reportRemoval(ctx context.Context, key model.Key, p placementv1.PlacementObject, bindings []placementv1.BindingObject, m *memory) (time.Duration, error) {
	now := c.Clock.Now()
	if !m.removing {
		m.removing, m.written = true, now
	}
	if after := m.written.Add(statusPeriod).Sub(now); after > 0 {
		return after, nil
	}
	var clusters []string
	for _, b := range bindings {
		clusters = append(clusters, b.BindingSpec().TargetCluster)
	}
	slices.Sort(clusters)
	status := rollup.Removing(c.Kinds, p, clusters, func(cluster string) string { return c.trouble(ctx, cluster) }, now)
	waiting := status.Conditions[0]
	first := meta.FindStatusCondition(p.PlacementStatus().Conditions, waiting.Type) == nil
	again, err := c.share(ctx, p, &status)
	if err != nil {
		return 0, err
	}
	if err := c.write(ctx, key, p, status, m); err != nil {
		return 0, err
	}
	if first {
		c.event(p, corev1.EventTypeNormal, EventRemovalWaiting, waiting.Message)
	}
	return again, nil
}

// trouble says why a cluster may take long; empty for one that is well.
func (c *Controller) trouble(ctx context.Context, cluster string) string {
	member := &clusterv1.MemberCluster{}
	switch err := c.Client.Get(ctx, client.ObjectKey{Name: cluster}, member); {
	case apierrors.IsNotFound(err):
		return "not a member any more"
	case err != nil:
		return "its state cannot be read"
	}
	observed := schedule.Observe(member)
	if observed.Leaving {
		return "leaving the fleet"
	}
	return observed.Disconnected
}

// gone forgets a placement that does not exist, and removes bindings that the scheduler made for it when it did not know
// yet: nothing was ever placed through those.
func (c *Controller) gone(ctx context.Context, key model.Key) error {
	c.Watches.Forget(key)
	c.quiet.settle(key)
	c.memories.forget(key)
	c.unmeasure(key)
	bindings, err := listing.Bindings(ctx, c.Client, &c.Kinds.Carriage, key, listing.Shared)
	if err != nil {
		return err
	}
	bindings = slices.DeleteFunc(bindings, func(b placementv1.BindingObject) bool {
		return !b.GetDeletionTimestamp().IsZero() || b.BindingSpec().State != placementv1.BindingStateScheduled ||
			b.BindingSpec().ResourceSnapshotName != "" || b.BindingStatus().ObservedResourceIndex != ""
	})
	if len(bindings) == 0 {
		return nil
	}
	if err := c.APIReader.Get(ctx, key, c.Kinds.NewPlacement()); !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err) // it was made a moment ago
	}
	for _, b := range bindings {
		err := c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID()), ResourceVersion: ptr.To(b.GetResourceVersion())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s of a placement that is gone: %w", c.Kinds.Binding, b.GetName(), err)
		}
	}
	return nil
}
