package rolling

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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// overridesOf returns what tells which overrides, of those that r knows, the cluster of a binding gets along with a resource
// snapshot.
func (c *Controller) overridesOf(ctx context.Context, r client.Reader, p placementv1.PlacementObject, master string) (func(placementv1.BindingObject) override.Applied, error) {
	index, ok := placement.ResourceSnapshotIndex(p.GetName(), master)
	if !ok {
		return override.AppliedTo, nil
	}
	matching, err := c.Overrides.Match(ctx, r, p, index)
	if err != nil {
		return nil, fmt.Errorf("find the overrides of %s %s: %w", c.Kinds.Placement, client.ObjectKeyFromObject(p), err)
	}
	if matching.Empty() {
		return func(placementv1.BindingObject) override.Applied { return override.Applied{} }, nil
	}
	var members clusterv1.MemberClusterList
	if err := c.Client.List(ctx, &members, listing.Shared); err != nil {
		return nil, fmt.Errorf("list member clusters: %w", err)
	}
	labels := make(map[string]map[string]string, len(members.Items))
	for i := range members.Items {
		labels[members.Items[i].Name] = members.Items[i].Labels
	}
	return func(b placementv1.BindingObject) override.Applied {
		if l, known := labels[b.BindingSpec().TargetCluster]; known {
			return matching.For(l)
		}
		return override.AppliedTo(b) // of a cluster that is no member any more nothing is known, so nothing changes
	}, nil
}

// toPlacements maps an override snapshot to the placements that the override is for.
func (c *Controller) toPlacements() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		s, ok := o.(placementv1.OverrideSnapshotObject)
		if !ok {
			return nil
		}
		placements, err := listing.Placements(ctx, c.Client, c.Kinds, listing.Shared)
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
func (c *Controller) toPlacementsOn() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		bindings, err := listing.AllBindings(ctx, c.Client, c.Kinds, listing.Shared)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot look at the placements on a cluster", "cluster", o.GetName())
			return nil
		}
		var all []ctrl.Request
		for _, b := range bindings {
			if b.BindingSpec().TargetCluster == o.GetName() {
				all = append(all, ctrl.Request{NamespacedName: placement.Key{Namespace: b.GetNamespace(), Name: b.GetLabels()[placementv1.LabelParentPlacement]}})
			}
		}
		return all
	})
}

// whenLabelsChange lets pass changes of labels alone: overrides go by them.
func whenLabelsChange() builder.Predicates {
	return builder.WithPredicates(predicate.LabelChangedPredicate{})
}
