package rolling

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/rolling"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// latestSnapshot returns the name of the newest resource snapshot of this very placement, once all its parts exist; ""
// while it is not there or not whole.
func (c *Controller) latestSnapshot(ctx context.Context, key placement.Key, p placementv1.PlacementObject) (string, error) {
	snapshots, err := listing.ResourceSnapshots(ctx, c.Client, &c.Kinds.Carriage, key, listing.Shared)
	if err != nil {
		return "", err
	}
	return latestComplete(key, p.GetUID(), snapshots), nil
}

// latestNow returns what latestSnapshot does, as the API server has it.
func (c *Controller) latestNow(ctx context.Context, key placement.Key, p placementv1.PlacementObject) (string, error) {
	gvk, err := c.Client.GroupVersionKindFor(c.Kinds.NewResourceSnapshot())
	if err != nil {
		return "", fmt.Errorf("find the kind of a resource snapshot: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = c.Overrides.APIReader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{placementv1.LabelParentPlacement: key.Name})
	if err != nil {
		return "", fmt.Errorf("list the resource snapshots of %s %s: %w", c.Kinds.Placement, key, err)
	}
	snapshots := make([]*metav1.PartialObjectMetadata, 0, len(list.Items))
	for i := range list.Items {
		snapshots = append(snapshots, &list.Items[i])
	}
	return latestComplete(key, p.GetUID(), snapshots), nil
}

// lowers tells whether some of the bindings are on a later snapshot than the one that counts as the latest.
func lowers(key placement.Key, latest string, bindings []placementv1.BindingObject) bool {
	to, ok := placement.ResourceSnapshotIndex(key.Name, latest)
	return ok && slices.ContainsFunc(bindings, func(b placementv1.BindingObject) bool {
		from, ok := placement.ResourceSnapshotIndex(key.Name, b.BindingSpec().ResourceSnapshotName)
		return ok && from > to
	})
}

func latestComplete[T metav1.Object](key placement.Key, uid types.UID, snapshots []T) string {
	names := sets.New[string]()
	var master metav1.Object
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
