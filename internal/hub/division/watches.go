package division

import (
	"context"
	"fmt"
	"strings"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// workers is how many objects are placed at once.
	workers = 16
	// gather is how long what agents say is gathered before it makes a status.
	gather = 200 * time.Millisecond
)

// Changes tells of changes of the objects that policies select.
type Changes interface {
	AddFollower(selection.Follower)
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	c.Changes.AddFollower(selection.Follower{
		Changed: func(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) {
			if (o.Namespace != "") == c.Carriage.Namespaced {
				name := placement.ObjectPlacementName(kind.GroupKind(), o.Namespace, o.Name)
				c.objects.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: name}})
			}
			for _, key := range c.needs.by(kind.GroupKind(), o.Namespace, o.Name) {
				c.objects.Add(ctrl.Request{NamespacedName: key})
			}
		},
		Begun: func(schema.GroupVersionKind) {}, // who keeps the claims looks at them all
	})
	b := ctrl.NewControllerManagedBy(mgr)
	if c.Carriage.Namespaced {
		b = b.Watches(&policyv1alpha1.OverridePolicy{}, c.toAwaiting(claim.Namespaced), builder.WithPredicates(whenThere()))
	}
	err := b.
		Named("division-"+strings.ToLower(c.Carriage.Parent)).
		For(c.Carriage.NewParent(), builder.WithPredicates(c.forgets())).
		WatchesRawSource(source.Func(c.objects.Start)).
		Watches(c.Carriage.NewBinding(), c.toParent(), builder.WithPredicates(c.seen())).
		Watches(&placementv1.Work{}, c.whileMoving()).
		Watches(c.Carriage.NewResourceSnapshot(), c.damaged(), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, c.toAwaiting(claim.Cluster), builder.WithPredicates(whenThere())).
		Watches(&clusterv1.MemberCluster{}, c.toAll(), builder.WithPredicates(whenFleetChanges())).
		Watches(&clusterv1.MemberCluster{}, c.toUnscheduled(), builder.WithPredicates(whenReported())).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of claimed objects' clusters: %w", err)
	}
	return nil
}

// toParent maps a binding to the internal placement that it belongs to. What agents say of it comes from many clusters at about the
// same time, and is gathered.
func (c *Controller) toParent() handler.EventHandler {
	request := func(o client.Object) (ctrl.Request, bool) {
		name := o.GetLabels()[placementv1.LabelParentObject]
		return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}, name != ""
	}
	add := func(o client.Object, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		if r, ok := request(o); ok {
			q.Add(r)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(e.Object, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			r, ok := request(e.ObjectNew)
			if ok && e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() && e.ObjectNew.GetDeletionTimestamp().IsZero() {
				q.AddAfter(r, gather)
				return
			}
			add(e.ObjectOld, q) // it may have lost its label
			add(e.ObjectNew, q)
		},
	}
}

// whileMoving maps a Work to the internal placement that it belongs to, where that waits for what clusters report, or where other
// replicas than before find no node.
func (c *Controller) whileMoving() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			labels := e.ObjectNew.GetLabels()
			key := types.NamespacedName{Namespace: labels[placementv1.LabelParentNamespace], Name: labels[placementv1.LabelParentObject]}
			if key.Name != "" && (namespaced(key) == c.Carriage.Namespaced) && (c.moving.has(key) || stranded(e.ObjectOld) != stranded(e.ObjectNew)) {
				q.AddAfter(ctrl.Request{NamespacedName: key}, gather)
			}
		},
	}
}

func namespaced(key types.NamespacedName) bool { return key.Namespace != "" }

// stranded is how many replicas a cluster has no node for.
func stranded(o client.Object) int32 {
	total := int32(0)
	if w, ok := o.(*placementv1.Work); ok {
		for i := range w.Status.ManifestConditions {
			total += w.Status.ManifestConditions[i].UnschedulableReplicas
		}
	}
	return total
}

// toAll maps a member to all internal placements: any of them may want it, or be on it.
func (c *Controller) toAll() handler.EventHandler {
	return c.toThose(func(policyv1alpha1.ObjectPlacementObject) bool { return true })
}

// toUnscheduled maps a member to the internal placements that wait for room.
func (c *Controller) toUnscheduled() handler.EventHandler {
	return c.toThose(func(p policyv1alpha1.ObjectPlacementObject) bool {
		scheduled := meta.FindStatusCondition(p.ObjectPlacementStatus().Conditions, policyv1alpha1.ConditionScheduled)
		return scheduled != nil && scheduled.Reason == policyv1alpha1.ReasonUnschedulable
	})
}

// toThose maps a member to some internal placements.
func (c *Controller) toThose(concerned func(policyv1alpha1.ObjectPlacementObject) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request {
		placements, err := c.placements(ctx, "")
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot look at the internal placements for a change of the fleet")
		}
		var all []ctrl.Request
		for _, p := range placements {
			if concerned(p) {
				all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
			}
		}
		return all
	})
}

// placements lists the internal placements in a namespace; without one those in all of them.
func (c *Controller) placements(ctx context.Context, namespace client.InNamespace) ([]policyv1alpha1.ObjectPlacementObject, error) {
	var all []policyv1alpha1.ObjectPlacementObject
	if c.Carriage.Namespaced {
		var list policyv1alpha1.ObjectPlacementList
		if err := c.Client.List(ctx, &list, namespace, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the ObjectPlacements: %w", err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		return all, nil
	}
	var list policyv1alpha1.ClusterObjectPlacementList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ClusterObjectPlacements: %w", err)
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// forgets drops what is known of an internal placement that is gone, and lets everything pass.
func (c *Controller) forgets() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		c.tracker.Forget(e.Object.GetUID())
		c.kept.forget(e.Object.GetUID())
		c.needs.set(client.ObjectKeyFromObject(e.Object), nil)
		c.moving.set(client.ObjectKeyFromObject(e.Object), false)
		c.waiting.set(client.ObjectKeyFromObject(e.Object), false)
		for _, owner := range e.Object.GetOwnerReferences() {
			c.forget(owner.UID)
		}
		return true
	}}
}

// damaged maps a revision that somebody deleted to the internal placement that it belongs to.
func (c *Controller) damaged() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		name := o.GetLabels()[placementv1.LabelParentObject]
		if name == "" {
			return nil
		}
		c.kept.forget(types.UID(o.GetAnnotations()[placementv1.AnnotationPlacementUID]))
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
	})
}

// seen takes note of what the cache has come to show, and lets everything pass.
func (c *Controller) seen() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { c.made.Remove(client.ObjectKeyFromObject(e.Object)); return true },
		UpdateFunc: func(e event.UpdateEvent) bool { c.made.Remove(client.ObjectKeyFromObject(e.ObjectNew)); return true },
		DeleteFunc: func(e event.DeleteEvent) bool {
			c.made.Remove(client.ObjectKeyFromObject(e.Object))
			c.tracker.Forget(e.Object.GetUID())
			return true
		},
	}
}

// whenFleetChanges lets pass what may change which clusters an object may go to.
func whenFleetChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.MemberCluster)
		after, ok2 := e.ObjectNew.(*clusterv1.MemberCluster)
		if !ok1 || !ok2 {
			return false
		}
		was, is := schedule.Observe(before), schedule.Observe(after)
		return !was.SameStanding(&is) || !equality.Semantic.DeepEqual(was.Taints, is.Taints)
	}}
}

// whenReported lets pass a member that reports something else to be free than before. That may be less, and what others were given is
// in it now.
func whenReported() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*clusterv1.MemberCluster)
			after, ok2 := e.ObjectNew.(*clusterv1.MemberCluster)
			return ok1 && ok2 && !equality.Semantic.DeepEqual(before.Status.ResourceUsage, after.Status.ResourceUsage)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
