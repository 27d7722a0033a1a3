package rolling

import (
	"context"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/rolling"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// latestSnapshot returns the name of the newest resource snapshot of this very placement, once all its parts exist; ""
// while it is not there or not whole.
func (c *Controller) latestSnapshot(ctx context.Context, key placement.Key, p placementv1.PlacementObject) (string, error) {
	snapshots, err := listing.ResourceSnapshots(ctx, c.Client, c.Kinds, key, listing.Shared)
	if err != nil {
		return "", err
	}
	return latestComplete(key, p.GetUID(), snapshots), nil
}

func latestComplete(key placement.Key, uid types.UID, snapshots []placementv1.ResourceSnapshotObject) string {
	names := sets.New[string]()
	var master placementv1.ResourceSnapshotObject
	latest := -1
	for _, s := range snapshots {
		if s.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(uid) || !s.GetDeletionTimestamp().IsZero() {
			continue
		}
		names.Insert(s.GetName())
		index, err := strconv.Atoi(s.GetLabels()[placementv1.LabelResourceIndex])
		if err == nil && index > latest && s.GetLabels()[placementv1.LabelIsLatestSnapshot] == "true" &&
			s.GetName() == placement.ResourceSnapshotName(key.Name, index) {
			master, latest = s, index
		}
	}
	if master == nil {
		return ""
	}
	count, err := strconv.Atoi(master.GetAnnotations()[placementv1.AnnotationSnapshotCount])
	if err != nil || count < 1 {
		return ""
	}
	for sub := range count - 1 {
		if !names.Has(placement.ResourceSnapshotPartName(key.Name, latest, sub)) {
			return ""
		}
	}
	return master.GetName()
}

// whenSpecChanges lets no status pass.
func whenSpecChanges() builder.Predicates {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// whenBindingChanges lets pass what a plan could depend on: of a status no more than how the cluster fares. It takes note of
// what the cache has come to show.
func (c *Controller) whenBindingChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(placementv1.BindingObject)
			after, okAfter := e.ObjectNew.(placementv1.BindingObject)
			if !okBefore || !okAfter {
				return false
			}
			if !after.GetDeletionTimestamp().IsZero() {
				c.Takings.Deleted.Remove(after.GetUID())
			}
			return before.GetGeneration() != after.GetGeneration() ||
				before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
				rolling.FareOf(before) != rolling.FareOf(after)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			c.tracker.Forget(e.Object.GetUID())
			c.Takings.Deleted.Remove(e.Object.GetUID())
			return true
		},
	})
}

// whenSnapshotChanges lets pass what can make another snapshot the latest one, or make it whole.
func whenSnapshotChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
}
