package scheduler

import (
	"context"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// toPlacements maps a change of the fleet to the placements that it may make a difference to: a cluster that comes or goes to
// all, a cluster that changes to those whose policies speak of what has changed, and a heartbeat to none.
func (c *Controller) toPlacements() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	all := func(placementv1.PlacementObject) bool { return true }
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { c.enqueue(ctx, q, all) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { c.enqueue(ctx, q, all) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, okBefore := e.ObjectOld.(*clusterv1.MemberCluster)
			after, okAfter := e.ObjectNew.(*clusterv1.MemberCluster)
			if !okBefore || !okAfter {
				return
			}
			was, is := schedule.Observe(before), schedule.Observe(after)
			c.enqueue(ctx, q, func(p placementv1.PlacementObject) bool {
				settled := c.settled.has(client.ObjectKeyFromObject(p))
				return schedule.Concerned(p.PlacementSpec().Policy, p.GetNamespace(), settled, &was, &is)
			})
		},
	}
}

// enqueue has those placements scheduled that a change of the fleet concerns.
func (c *Controller) enqueue(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request], concerned func(placementv1.PlacementObject) bool) {
	placements, err := listing.Placements(ctx, c.Client, c.Kinds, listing.Shared)
	if err != nil {
		log.FromContext(ctx).Error(err, "A change of the fleet could not be passed on to the placements")
		return
	}
	for _, p := range placements {
		if concerned(p) {
			q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
}

func whenPlacementChanges() builder.Predicates {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// whenPolicyChanges lets pass all changes of a policy snapshot but our own of its status. Somebody may write over that, and
// nothing else would tell.
func (c *Controller) whenPolicyChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && !c.tracker.Ours(e.ObjectNew)
	}})
}

// whenGoneOrDamaged lets pass deletions that are complete, and changes that only somebody's hand makes. It takes note of what
// the cache has come to show.
func (c *Controller) whenGoneOrDamaged() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			c.made.Remove(client.ObjectKeyFromObject(e.Object))
			return false
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			c.made.Remove(client.ObjectKeyFromObject(e.ObjectNew))
			before, okBefore := e.ObjectOld.(placementv1.BindingObject)
			after, okAfter := e.ObjectNew.(placementv1.BindingObject)
			return okBefore && okAfter && damaged(before, after)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			c.made.Remove(client.ObjectKeyFromObject(e.Object))
			c.tracker.Forget(e.Object.GetUID())
			return true
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// damaged tells whether a binding has lost something that the scheduler put there, or was given up, which its own hand does
// too: where its cluster is gone, there is a next step to it.
func damaged(before, after placementv1.BindingObject) bool {
	if !after.GetDeletionTimestamp().IsZero() {
		return false
	}
	lost := func(of func(client.Object) map[string]string, key string) bool {
		return of(before)[key] != "" && of(before)[key] != of(after)[key]
	}
	return lost(client.Object.GetLabels, placementv1.LabelParentPlacement) ||
		lost(client.Object.GetAnnotations, placementv1.AnnotationPlacementUID) ||
		lost(client.Object.GetAnnotations, placementv1.AnnotationClusterUID) ||
		!controllerutil.ContainsFinalizer(after, placementv1.FinalizerWorkCleanup) ||
		before.BindingSpec().TargetCluster != after.BindingSpec().TargetCluster ||
		(before.BindingSpec().State != placementv1.BindingStateUnscheduled && after.BindingSpec().State == placementv1.BindingStateUnscheduled)
}
