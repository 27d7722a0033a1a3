// Package eviction carries evictions out: it takes from a cluster what a placement has placed there, where the placement's
// disruption budget lets it. The cluster is chosen again if the scheduler may; a taint keeps it from that.
package eviction

import (
	"context"
	"fmt"
	"maps"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/eviction"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// workers is how many evictions are carried out at once: one after the other, so that each sees what the last one took.
	workers = 1
)

// Controller carries evictions from placements of the cluster scope out.
type Controller struct {
	// Client reads from the cache. APIReader reads from the API server, as all is read that is decided on.
	Client    client.Client
	APIReader client.Reader
	Kinds     *placement.Kinds
	Clock     clock.PassiveClock
	Recorder  events.EventRecorder
	// Takings are shared with the rolling update.
	Takings *consistency.Takings

	tracker consistency.Tracker
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("eviction").
		For(&placementv1.ClusterResourcePlacementEviction{}).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
}

// Reconcile takes the next step with one eviction.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &placementv1.ClusterResourcePlacementEviction{}
	err := c.Client.Get(ctx, request.NamespacedName, e)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read eviction %s: %w", request.Name, err)
	}
	if c.tracker.Behind(e) || !e.DeletionTimestamp.IsZero() || eviction.Finished(e) {
		return ctrl.Result{}, nil // of one that is behind the event brings the next pass
	}
	err = c.step(ctx, e)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		log.FromContext(ctx).V(1).Info("Looking again: something has changed meanwhile", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{}, err
}

// step decides and acts while no rolling update of the placement does.
func (c *Controller) step(ctx context.Context, e *placementv1.ClusterResourcePlacementEviction) error {
	key := placement.Key{Name: e.Spec.PlacementName}
	defer c.Takings.Lock(key)()
	in, err := c.observe(ctx, key, e)
	if err != nil {
		return err
	}
	outcome := eviction.Decide(in)
	for _, b := range in.Bindings {
		if err := c.mark(ctx, e, b, b == outcome.Delete); err != nil {
			return err
		}
	}
	if b := outcome.Delete; b != nil {
		log.FromContext(ctx).Info("Evicting", "placement", key.Name, "cluster", e.Spec.ClusterName, "binding", b.GetName(), "reason", outcome.Condition.Message)
		if err := c.delete(ctx, e, b); err != nil {
			return err
		}
	}
	condition := outcome.Condition
	condition.ObservedGeneration, condition.LastTransitionTime = e.Generation, metav1.NewTime(c.Clock.Now())
	meta.SetStatusCondition(&e.Status.Conditions, condition)
	if err := c.Client.Status().Update(ctx, e); err != nil {
		return fmt.Errorf("write the status of eviction %s: %w", e.Name, err)
	}
	c.tracker.Wrote(e)
	c.tell(e, in.Placement, outcome)
	c.measure(outcome)
	return nil
}

// mark has a binding say that the eviction deletes it. A mark that a hub left which crashed before it deleted is taken off,
// where the eviction is not executed any more.
func (c *Controller) mark(ctx context.Context, e *placementv1.ClusterResourcePlacementEviction, b placementv1.BindingObject, evicted bool) error {
	if is := b.GetAnnotations()[placementv1.AnnotationEvictedBy] == string(e.UID); is == evicted || !b.GetDeletionTimestamp().IsZero() {
		return nil
	}
	before, ok := b.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy binding %s: a %T is no object", b.GetName(), b)
	}
	annotations := maps.Clone(b.GetAnnotations()) // not empty: a binding has its placement's UID among them
	if evicted {
		annotations[placementv1.AnnotationEvictedBy] = string(e.UID)
	} else {
		delete(annotations, placementv1.AnnotationEvictedBy)
	}
	b.SetAnnotations(annotations)
	if err := c.Client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("mark binding %s for eviction %s: %w", b.GetName(), e.Name, err)
	}
	return nil
}

// delete deletes a binding as it was when it was decided on.
func (c *Controller) delete(ctx context.Context, e *placementv1.ClusterResourcePlacementEviction, b placementv1.BindingObject) error {
	c.Takings.Deleted.Add(b.GetUID(), c.Clock.Now())
	err := c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID()), ResourceVersion: ptr.To(b.GetResourceVersion())})
	if err != nil {
		c.Takings.Deleted.Remove(b.GetUID())
		return fmt.Errorf("delete binding %s, which eviction %s asks for: %w", b.GetName(), e.Name, err)
	}
	return nil
}

// observe reads all that the eviction concerns, as it is now.
func (c *Controller) observe(ctx context.Context, key placement.Key, e *placementv1.ClusterResourcePlacementEviction) (eviction.Input, error) {
	in := eviction.Input{Eviction: e}
	p := c.Kinds.NewPlacement()
	err := c.APIReader.Get(ctx, key, p)
	if apierrors.IsNotFound(err) {
		return in, nil
	}
	if err != nil {
		return in, fmt.Errorf("read placement %s: %w", key.Name, err)
	}
	in.Placement = p
	bindings, err := listing.Bindings(ctx, c.APIReader, &c.Kinds.Carriage, key)
	if err != nil {
		return in, err
	}
	for _, b := range bindings {
		if b.GetAnnotations()[placementv1.AnnotationPlacementUID] == string(p.GetUID()) {
			in.Bindings = append(in.Bindings, b)
		}
	}
	budget := &placementv1.ClusterResourcePlacementDisruptionBudget{}
	switch err := c.APIReader.Get(ctx, key, budget); {
	case err == nil:
		in.Budget = budget
	case !apierrors.IsNotFound(err):
		return in, fmt.Errorf("read disruption budget %s: %w", key.Name, err)
	}
	return in, nil
}
