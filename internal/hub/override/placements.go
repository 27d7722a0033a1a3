package override

import (
	"context"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ByCluster returns what tells which overrides, of those that r knows, the clusters of a placement get along with a resource
// snapshot. The labels of the clusters are those that members knows. Without a snapshot every cluster keeps what it has.
func (f *Finder) ByCluster(ctx context.Context, r, members client.Reader, p placementv1.PlacementObject, master string) (override.ByCluster, error) {
	index, ok := placement.ResourceSnapshotIndex(p.GetName(), master)
	if !ok {
		return override.AppliedTo, nil
	}
	matching, err := f.Match(ctx, r, p, index)
	if err != nil {
		return nil, fmt.Errorf("find the overrides of %s %s: %w", f.Kinds.Placement, client.ObjectKeyFromObject(p), err)
	}
	if matching.Empty() {
		return matching.ByCluster(nil), nil
	}
	var list clusterv1.MemberClusterList
	if err := members.List(ctx, &list, listing.Shared); err != nil {
		return nil, fmt.Errorf("list member clusters: %w", err)
	}
	labels := make(map[string]map[string]string, len(list.Items))
	for i := range list.Items {
		labels[list.Items[i].Name] = list.Items[i].Labels
	}
	return matching.ByCluster(labels), nil
}

// WatchFor makes a controller of placements look again at those whose overrides may have come to be others: when there is
// another snapshot of an override, and when the labels of a cluster change.
func WatchFor(b *builder.Builder, c client.Reader, kinds *placement.Kinds) *builder.Builder {
	changed := builder.WithPredicates(predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	return b.
		Watches(&placementv1.ClusterResourceOverrideSnapshot{}, toPlacements(c, kinds), changed).
		Watches(&placementv1.ResourceOverrideSnapshot{}, toPlacements(c, kinds), changed).
		Watches(&clusterv1.MemberCluster{}, toPlacementsOn(c, kinds), builder.WithPredicates(whenRelabelled()))
}

// whenRelabelled lets pass what changes which labels a cluster has. What is there at the start is found by the placements
// themselves.
func whenRelabelled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc:  predicate.LabelChangedPredicate{}.Update,
		DeleteFunc:  func(event.DeleteEvent) bool { return false }, // of a cluster that is gone nothing is known, and it keeps what it has
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// toPlacements maps an override snapshot to the placements that the override is for.
func toPlacements(c client.Reader, kinds *placement.Kinds) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		s, ok := o.(placementv1.OverrideSnapshotObject)
		if !ok {
			return nil
		}
		placements, err := listing.Placements(ctx, c, kinds, listing.Shared)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot look at the placements of an override", "snapshot", o.GetName())
			return nil
		}
		var all []ctrl.Request
		for _, p := range placements {
			if key := client.ObjectKeyFromObject(p); override.IsFor(s, key) {
				all = append(all, ctrl.Request{NamespacedName: key})
			}
		}
		return all
	})
}

// toPlacementsOn maps a member to the placements that have a binding to it.
func toPlacementsOn(c client.Reader, kinds *placement.Kinds) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		bindings, err := listing.BindingsTo(ctx, c, &kinds.Carriage, o.GetName(), listing.Shared)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot look at the placements on a cluster", "cluster", o.GetName())
			return nil
		}
		var all []ctrl.Request
		for _, b := range bindings {
			all = append(all, ctrl.Request{NamespacedName: placement.Key{Namespace: b.GetNamespace(), Name: b.GetLabels()[placementv1.LabelParentPlacement]}})
		}
		return all
	})
}
