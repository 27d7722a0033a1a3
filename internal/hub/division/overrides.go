package division

import (
	"context"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// awaitOverrides ends the pass where override policies do not exist that must before anything is decided, or a new revision is sent. What
// is in the members stays.
func (c *Controller) awaitOverrides(ctx context.Context, p *pass) error {
	kind, missing := "ClusterOverridePolicy", []string{}
	for _, name := range p.spec().DependentOverrides {
		var o client.Object = &policyv1alpha1.ClusterOverridePolicy{}
		key := client.ObjectKey{Name: name}
		if p.spec().Policy.Kind == claim.Namespaced {
			kind, key.Namespace, o = "OverridePolicy", p.placement.GetNamespace(), &policyv1alpha1.OverridePolicy{}
		}
		err := c.Client.Get(ctx, key, o)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read %s %s, which %s %s waits for: %w", kind, name, p.spec().Resource.Kind, p.spec().Resource.Name, err)
		}
		if err != nil || !o.GetDeletionTimestamp().IsZero() {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	p.set(c.Clock.Now(), policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, policyv1alpha1.ReasonAwaitingOverrides, fmt.Sprintf(
		"Waiting for %s %s, which spec.dependentOverrides of the policy names: create it, or take it off; until then nothing is changed in the members",
		kind, strings.Join(missing, ", ")))
	return errRefused
}

// whenThere lets pass that an override policy comes to be, or is gone. What is there at the start is found by the internal placements.
func whenThere() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	}
}

// toAwaiting maps an override policy to the internal placements that may not be without it. kind is that of the policies which name it.
func (c *Controller) toAwaiting(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		placements, err := c.placements(ctx, client.InNamespace(o.GetNamespace()))
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot look at the internal placements for an override policy", "policy", client.ObjectKeyFromObject(o))
		}
		var all []ctrl.Request
		for _, p := range placements {
			if s := p.ObjectPlacementSpec(); s.Policy != nil && s.Policy.Kind == kind && slices.Contains(s.DependentOverrides, o.GetName()) {
				all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
			}
		}
		return all
	})
}
