// Package override keeps snapshots of overrides, and finds those that matter to a placement. An override that is edited does
// nothing by itself: its new snapshot reaches clusters as a new resource snapshot does, by the placement's strategy.
package override

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// kept is how many snapshots of an override are kept; those in use are kept beyond it.
	kept = 10
)

// Controller keeps the snapshots of the overrides of one kind.
type Controller struct {
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Namespaced tells ResourceOverrides from ClusterResourceOverrides.
	Namespaced bool
	// Kinds are the kinds of placements, of which bindings and runs may use a snapshot.
	Kinds   []*placement.Kinds
	Tracker *consistency.Tracker
}

// Reconcile keeps the snapshots of one override.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	err := c.reconcile(ctx, request.NamespacedName)
	if apierrors.IsConflict(err) || errors.Is(err, errStale) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{}, err
}

func (c *Controller) reconcile(ctx context.Context, key client.ObjectKey) error {
	o := c.newOverride()
	err := c.Client.Get(ctx, key, o)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read override %s: %w", key, err)
	}
	gone := apierrors.IsNotFound(err) || !o.GetDeletionTimestamp().IsZero()
	snapshots, behind, err := c.snapshots(ctx, key)
	if err != nil || behind || (err == nil && !gone && c.Tracker.Behind(o)) {
		return err // the event that the cache waits for brings the next pass
	}
	if !gone {
		return c.keep(ctx, o, snapshots)
	}
	if err := c.retire(ctx, snapshots, nil); err != nil {
		return err
	}
	if err := c.prune(ctx, key, snapshots, 0); err != nil {
		return err
	}
	return c.release(ctx, o)
}

// keep sees to it that the newest snapshot is what the override says. It is made before the one before it is retired, so that
// there is always one.
func (c *Controller) keep(ctx context.Context, o placementv1.OverrideObject, snapshots []placementv1.OverrideSnapshotObject) error {
	if err := c.hold(ctx, o); err != nil {
		return err
	}
	wanted := o.NewSnapshot()
	var latest placementv1.OverrideSnapshotObject
	if n := len(snapshots); n > 0 && snapshots[n-1].OverrideHash() == wanted.OverrideHash() && snapshots[n-1].GetDeletionTimestamp().IsZero() {
		latest = snapshots[n-1]
	} else {
		if err := c.create(ctx, o, wanted, snapshots); err != nil {
			return err
		}
		latest = wanted
		snapshots = append(snapshots, wanted)
	}
	if err := c.retire(ctx, snapshots, latest); err != nil {
		return err
	}
	return c.prune(ctx, client.ObjectKeyFromObject(o), snapshots, kept)
}

// snapshots returns an override's snapshots by index. behind tells that one is not yet as we wrote it.
func (c *Controller) snapshots(ctx context.Context, key client.ObjectKey) (all []placementv1.OverrideSnapshotObject, behind bool, err error) {
	all, err = list(ctx, c.Client, c.Namespaced, client.InNamespace(key.Namespace), client.MatchingLabels{placementv1.LabelParentOverride: key.Name})
	if err != nil {
		return nil, false, err
	}
	all = slices.DeleteFunc(all, func(s placementv1.OverrideSnapshotObject) bool {
		name, index := override.SplitName(s.GetName())
		behind = c.Tracker.Behind(s) || behind
		return name != key.Name || index < 0
	})
	slices.SortFunc(all, func(a, b placementv1.OverrideSnapshotObject) int { return override.Index(a) - override.Index(b) })
	return all, behind, nil
}

// retire takes the label of the latest from all snapshots but one, which gets it if it has lost it.
func (c *Controller) retire(ctx context.Context, snapshots []placementv1.OverrideSnapshotObject, latest placementv1.OverrideSnapshotObject) error {
	for _, s := range snapshots {
		want := strconv.FormatBool(s == latest)
		if s.GetLabels()[placementv1.LabelIsLatestSnapshot] == want || !s.GetDeletionTimestamp().IsZero() {
			continue
		}
		before, ok := s.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("copy of override snapshot %s is no object", s.GetName())
		}
		s.GetLabels()[placementv1.LabelIsLatestSnapshot] = want
		err := c.Client.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("set label %s of override snapshot %s to %s: %w", placementv1.LabelIsLatestSnapshot, s.GetName(), want, err)
		}
		c.Tracker.Wrote(s)
	}
	return nil
}

// prune deletes the oldest snapshots beyond a number. One that a binding or an unfinished run names stays.
func (c *Controller) prune(ctx context.Context, key client.ObjectKey, snapshots []placementv1.OverrideSnapshotObject, keep int) error {
	if len(snapshots) <= keep {
		return nil
	}
	used, err := c.used(ctx, c.Client, key)
	if err != nil {
		return err
	}
	surplus := slices.DeleteFunc(slices.Clone(snapshots[:len(snapshots)-keep]), func(s placementv1.OverrideSnapshotObject) bool {
		return used[override.Index(s)] || !s.GetDeletionTimestamp().IsZero()
	})
	if len(surplus) == 0 {
		return nil
	}
	if used, err = c.used(ctx, c.APIReader, key); err != nil { // what was given out just now may not be in the cache
		return err
	}
	for _, s := range surplus {
		if used[override.Index(s)] {
			continue
		}
		if err := c.Client.Delete(ctx, s, client.Preconditions{UID: ptr.To(s.GetUID())}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete override snapshot %s: %w", s.GetName(), err)
		}
		c.Tracker.Forget(s.GetUID())
	}
	return nil
}

// next returns the index of a new snapshot: one that no binding and no run has ever heard of.
func (c *Controller) next(ctx context.Context, key client.ObjectKey, snapshots []placementv1.OverrideSnapshotObject) (int, error) {
	used, err := c.used(ctx, c.Client, key)
	if err != nil {
		return 0, err
	}
	next := 0
	for index := range used {
		next = max(next, index+1)
	}
	if n := len(snapshots); n > 0 {
		next = max(next, override.Index(snapshots[n-1])+1)
	}
	return next, nil
}

// hold sees to it that an override stays until its snapshots are retired.
func (c *Controller) hold(ctx context.Context, o placementv1.OverrideObject) error {
	if controllerutil.ContainsFinalizer(o, placementv1.FinalizerOverrideCleanup) {
		return nil
	}
	return c.change(ctx, o, "add the finalizer to", func() { controllerutil.AddFinalizer(o, placementv1.FinalizerOverrideCleanup) })
}

// release lets an override go. Snapshots that bindings still name outlive it, until a rollout has taken them off the clusters.
func (c *Controller) release(ctx context.Context, o placementv1.OverrideObject) error {
	if !controllerutil.ContainsFinalizer(o, placementv1.FinalizerOverrideCleanup) {
		return nil
	}
	return client.IgnoreNotFound(c.change(ctx, o, "remove the finalizer from", func() {
		controllerutil.RemoveFinalizer(o, placementv1.FinalizerOverrideCleanup)
	}))
}

func (c *Controller) change(ctx context.Context, o placementv1.OverrideObject, what string, change func()) error {
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy of override %s is no object", o.GetName())
	}
	change()
	if err := c.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("%s override %s: %w", what, client.ObjectKeyFromObject(o), err)
	}
	c.Tracker.Wrote(o)
	return nil
}

func (c *Controller) newOverride() placementv1.OverrideObject {
	if c.Namespaced {
		return &placementv1.ResourceOverride{}
	}
	return &placementv1.ClusterResourceOverride{}
}

func (c *Controller) newSnapshot() placementv1.OverrideSnapshotObject {
	if c.Namespaced {
		return &placementv1.ResourceOverrideSnapshot{}
	}
	return &placementv1.ClusterResourceOverrideSnapshot{}
}
