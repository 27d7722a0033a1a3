// Package statusback copies the statuses that placed objects have in their one cluster to the objects on the hub, for placements
// that ask for it. It is the only one to write a status of an object that is not the fleet's own.
package statusback

import (
	"context"
	"errors"
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// workers is how many Works are looked at at once.
	workers = 4
	// unsettledRetry is when to look again while two clusters have the placement's objects.
	unsettledRetry = time.Second
	// doubtful is how long after a change on the hub its objects are looked at: our own writes are changes, too.
	doubtful = 5 * time.Second
	// refusedRetry is when what was refused is tried again, in silence: a right may have been given meanwhile.
	refusedRetry = time.Minute
)

// Controller copies the statuses of both scopes' placements.
type Controller struct {
	// Client reads from the cache, which has no manifests and no statuses of placed objects. APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	// Kinds are the kinds of placements.
	Kinds    []*placement.Kinds
	Recorder events.EventRecorder
	// Changes tells of changes on the hub; without it an object that is made anew gets its status when the member's changes.
	Changes Changes

	memory memory
}

// Changes tells of placements of which something that they select may have changed on the hub.
type Changes interface {
	OnChange(kinds *placement.Kinds, changed func(placement.Key))
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("statusback").
		For(&placementv1.Work{}, builder.WithPredicates(whenReporting())).
		WithOptions(enqueue.Options(workers))
	for _, kinds := range c.Kinds {
		b = b.Watches(kinds.NewPlacement(), c.toWorks(kinds), builder.WithPredicates(whenSwitchedOn()))
	}
	if c.Changes != nil {
		b = b.WatchesRawSource(source.Func(c.follow))
	}
	if err := b.Complete(c); err != nil {
		return fmt.Errorf("set up the controller of reported statuses: %w", err)
	}
	return nil
}

// reports tells whether a Work carries statuses that may be copied: those of what is in an envelope have no object on the hub.
func reports(o client.Object) bool {
	w, ok := o.(*placementv1.Work)
	return ok && w.Spec.ReportBackStrategy.ToOriginal() && w.Labels[placementv1.LabelEnvelopeType] == "" && w.DeletionTimestamp.IsZero()
}

// follow has a placement's Works looked at some time after something that it selects has changed.
func (c *Controller) follow(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	for _, kinds := range c.Kinds {
		c.Changes.OnChange(kinds, func(key placement.Key) {
			for _, work := range c.memory.doubt(key) {
				queue.AddAfter(ctrl.Request{NamespacedName: work}, doubtful)
			}
		})
	}
	return nil
}

// whenReporting lets pass Works that carry statuses, and those that have done so until now.
func whenReporting() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return reports(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return reports(e.ObjectOld) || reports(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return reports(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// whenSwitchedOn lets pass a placement that has come to ask for statuses.
func whenSwitchedOn() predicate.Predicate {
	asks := func(o client.Object) bool {
		p, ok := o.(placementv1.PlacementObject)
		return ok && p.PlacementSpec().Strategy.ReportBackStrategy.ToOriginal()
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false }, // its Works are looked at by themselves
		UpdateFunc:  func(e event.UpdateEvent) bool { return asks(e.ObjectNew) && !asks(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// toWorks maps a placement to its Works that carry statuses.
func (c *Controller) toWorks(kinds *placement.Kinds) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		key := client.ObjectKeyFromObject(o)
		bindings, err := listing.Bindings(ctx, c.Client, &kinds.Carriage, key, listing.Shared)
		var requests []ctrl.Request
		for _, b := range bindings {
			var works placementv1.WorkList
			err = errors.Join(err, c.Client.List(ctx, &works, listing.Shared, client.InNamespace(placement.MemberNamespace(b.BindingSpec().TargetCluster)),
				client.MatchingLabels{placementv1.LabelParentBinding: b.GetName()}))
			for i := range works.Items {
				if reports(&works.Items[i]) {
					requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&works.Items[i])})
				}
			}
		}
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot look at the Works of a placement", "placement", key)
		}
		return requests
	})
}

// Reconcile copies the statuses that one Work carries.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cached := &placementv1.Work{}
	err := c.Client.Get(ctx, request.NamespacedName, cached, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || (err == nil && !reports(cached)) {
		c.memory.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read Work %s: %w", request.NamespacedName, err)
	}
	from, settled, err := c.originOf(ctx, cached)
	if err != nil || from == nil {
		if err == nil && !settled {
			return ctrl.Result{RequeueAfter: unsettledRetry}, nil
		}
		c.memory.forget(request.NamespacedName)
		return ctrl.Result{}, err
	}
	work := &placementv1.Work{}
	if err := c.APIReader.Get(ctx, request.NamespacedName, work); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read Work %s with its statuses: %w", request.NamespacedName, err)
	}
	if work.UID != cached.UID || !reports(work) {
		return ctrl.Result{}, nil // it was replaced, or changed, and the event for that brings the next pass
	}
	from.work = work
	refused, err := c.copyAll(ctx, from)
	if isRefused := c.tell(from, refused); err == nil && isRefused {
		return ctrl.Result{RequeueAfter: refusedRetry}, nil
	}
	if apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("Looking again: an object has changed meanwhile", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{}, err
}

// origin is where statuses come from, and for whom.
type origin struct {
	kinds     *placement.Kinds
	placement placementv1.PlacementObject
	binding   placementv1.BindingObject
	work      *placementv1.Work
}

// originOf finds the placement that a Work was made for, if that still wants the statuses of this cluster; nil where it does not.
// settled tells that this stays so until something changes.
func (c *Controller) originOf(ctx context.Context, w *placementv1.Work) (from *origin, settled bool, err error) {
	key := placement.Key{Namespace: w.Labels[placementv1.LabelParentNamespace], Name: w.Labels[placementv1.LabelParentPlacement]}
	for _, kinds := range c.Kinds {
		if kinds.Namespaced != (key.Namespace != "") {
			continue
		}
		p := kinds.NewPlacement()
		if err := c.Client.Get(ctx, key, p); err != nil {
			return nil, true, client.IgnoreNotFound(err)
		}
		spec := p.PlacementSpec()
		if !p.GetDeletionTimestamp().IsZero() || string(p.GetUID()) != w.Annotations[placementv1.AnnotationPlacementUID] ||
			!spec.Strategy.ReportBackStrategy.ToOriginal() || !spec.ChoosesOneAtMost() {
			return nil, true, nil
		}
		bindings, err := listing.Bindings(ctx, c.Client, &kinds.Carriage, key, listing.Shared)
		if err != nil {
			return nil, true, err
		}
		var bound []placementv1.BindingObject
		for _, b := range bindings {
			if b.GetAnnotations()[placementv1.AnnotationPlacementUID] == string(p.GetUID()) && b.GetDeletionTimestamp().IsZero() &&
				b.BindingSpec().State == placementv1.BindingStateBound {
				bound = append(bound, b)
			}
		}
		if len(bound) != 1 {
			return nil, len(bound) == 0, nil // two while one cluster takes the place of another: which of them counts is about to be known
		}
		if b := bound[0]; b.GetName() == w.Labels[placementv1.LabelParentBinding] && placement.MemberNamespace(b.BindingSpec().TargetCluster) == w.Namespace {
			return &origin{kinds: kinds, placement: p, binding: b}, true, nil
		}
	}
	return nil, true, nil
}
