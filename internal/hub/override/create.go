package override

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errStale says that the cache has yet to show a snapshot that is there.
var errStale = errors.New("the cache is behind")

// create makes a new snapshot of an override, under the next index whose name is free.
func (c *Controller) create(ctx context.Context, o placementv1.OverrideObject, wanted placementv1.OverrideSnapshotObject, snapshots []placementv1.OverrideSnapshotObject) error {
	index, err := c.next(ctx, client.ObjectKeyFromObject(o), snapshots)
	if err != nil {
		return err
	}
	for ; ; index++ {
		wanted.SetName(override.SnapshotName(o.GetName(), index))
		wanted.SetLabels(map[string]string{
			placementv1.LabelParentOverride: o.GetName(), placementv1.LabelOverrideIndex: strconv.Itoa(index), placementv1.LabelIsLatestSnapshot: "true",
		})
		err := c.Client.Create(ctx, wanted)
		if apierrors.IsAlreadyExists(err) {
			if err = c.reclaim(ctx, wanted); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("create snapshot %s of override %s: %w", wanted.GetName(), client.ObjectKeyFromObject(o), err)
		}
		c.Tracker.Wrote(wanted)
		return nil
	}
}

// reclaim looks live at what has the name of a snapshot that was to be made. One from which somebody took the labels that it is
// known by gets them back: errStale is returned then, and where the cache is about to show the snapshot. What is another's, or is
// being deleted, is left alone, and its name is not free.
func (c *Controller) reclaim(ctx context.Context, wanted placementv1.OverrideSnapshotObject) error {
	there := c.newSnapshot()
	switch err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), there); {
	case apierrors.IsNotFound(err):
		return errStale
	case err != nil:
		return fmt.Errorf("read what has its name: %w", err)
	}
	parent, labelled := there.GetLabels()[placementv1.LabelParentOverride]
	switch {
	case labelled && parent == wanted.GetLabels()[placementv1.LabelParentOverride]:
		return errStale
	case labelled || !there.GetDeletionTimestamp().IsZero():
		return nil
	}
	before, ok := there.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy of override snapshot %s is no object", there.GetName())
	}
	labels := there.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for _, key := range []string{placementv1.LabelParentOverride, placementv1.LabelOverrideIndex} {
		labels[key] = wanted.GetLabels()[key]
	}
	there.SetLabels(labels)
	if err := c.Client.Patch(ctx, there, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("put its labels back: %w", err)
	}
	c.Tracker.Wrote(there)
	return errStale
}
