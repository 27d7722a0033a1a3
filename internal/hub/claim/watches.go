package claim

import (
	"context"
	"fmt"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// workers is how many objects are looked at at once.
const workers = 16

// policyWorkers is how many policies' objects are listed at once.
const policyWorkers = 2

// Changes tells of changes of the objects of some kinds.
type Changes interface {
	AddFollower(selection.Follower)
	Follow(...schema.GroupVersionKind)
}

// policyKey names a policy; or, with Followed, all policies that select objects of a kind.
type policyKey struct {
	Kind, Namespace, Name string
	Followed              schema.GroupVersionKind
}

// SetupWithManager registers the controllers of claimed objects, of policies, and of what policies say of themselves.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	kinds := &enqueue.Queue[policyKey]{}
	c.Changes.AddFollower(selection.Follower{
		Changed: func(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) {
			c.objects.Add(Object{Kind: kind.GroupKind(), Namespace: o.Namespace, Name: o.Name})
		},
		Begun: func(kind schema.GroupVersionKind) { kinds.Add(policyKey{Followed: kind}) },
	})
	err := builder.TypedControllerManagedBy[Object](mgr).Named("claim").
		WatchesRawSource(source.TypedFunc[Object](c.objects.Start)).
		Watches(&policyv1alpha1.ObjectPlacement{}, c.toObject(), builder.WithPredicates(c.seen())).
		Watches(&policyv1alpha1.ClusterObjectPlacement{}, c.toObject(), builder.WithPredicates(c.seen())).
		WithOptions(enqueue.TypedOptions[Object](workers)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of claimed objects: %w", err)
	}
	err = builder.TypedControllerManagedBy[policyKey](mgr).Named("policy").
		WatchesRawSource(source.TypedFunc[policyKey](kinds.Start)).
		Watches(&policyv1alpha1.PropagationPolicy{}, toPolicy(claim.Namespaced), builder.WithPredicates(whenSaid())).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, toPolicy(claim.Cluster), builder.WithPredicates(whenSaid())).
		WithOptions(enqueue.TypedOptions[policyKey](policyWorkers)).
		Complete(reconcile.TypedFunc[policyKey](c.spread))
	if err != nil {
		return fmt.Errorf("set up the controller of policies: %w", err)
	}
	return nil
}

// whenSaid lets pass what changes what a policy says.
func whenSaid() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.NewPredicateFuncs(func(o client.Object) bool {
		return !o.GetDeletionTimestamp().IsZero()
	}))
}

func toPolicy(kind string) handler.TypedEventHandler[client.Object, policyKey] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []policyKey {
		return []policyKey{{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}}
	})
}

// toObject maps an internal placement to its object.
func (c *Controller) toObject() handler.TypedEventHandler[client.Object, Object] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []Object {
		p, ok := o.(policyv1alpha1.ObjectPlacementObject)
		if !ok {
			return nil
		}
		return []Object{objectOf(p)}
	})
}

// seen takes note of what the cache has come to show. What others say of an internal placement is no concern of its claim.
func (c *Controller) seen() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { c.made.Remove(client.ObjectKeyFromObject(e.Object)); return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || c.tracker.Behind(e.ObjectOld) ||
				e.ObjectNew.GetDeletionTimestamp().IsZero() != e.ObjectOld.GetDeletionTimestamp().IsZero()
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			c.made.Remove(client.ObjectKeyFromObject(e.Object))
			c.tracker.Forget(e.Object.GetUID())
			return true
		},
	}
}
