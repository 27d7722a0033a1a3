package claim

import (
	"context"
	"fmt"
	"strings"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// byPolicy indexes internal placements by the policy that has their objects.
const byPolicy = "spec.policy"

// StatusController says on each policy what has become of its objects.
type StatusController struct {
	// Client reads from the cache.
	Client client.Client
	Clock  clock.Clock
}

// SetupWithManager registers the controller.
func (c *StatusController) SetupWithManager(mgr ctrl.Manager) error {
	for _, o := range []client.Object{&policyv1alpha1.ObjectPlacement{}, &policyv1alpha1.ClusterObjectPlacement{}} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), o, byPolicy, indexByPolicy); err != nil {
			return fmt.Errorf("index internal placements by policy: %w", err)
		}
	}
	err := builder.TypedControllerManagedBy[policyKey](mgr).Named("policystatus").
		Watches(&policyv1alpha1.PropagationPolicy{}, toPolicy(claim.Namespaced), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&policyv1alpha1.ClusterPropagationPolicy{}, toPolicy(claim.Cluster), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&policyv1alpha1.ObjectPlacement{}, toPolicies(), builder.WithPredicates(whenCounted())).
		Watches(&policyv1alpha1.ClusterObjectPlacement{}, toPolicies(), builder.WithPredicates(whenCounted())).
		WithOptions(enqueue.TypedOptions[policyKey](policyWorkers)).
		Complete(reconcile.TypedFunc[policyKey](c.Reconcile))
	if err != nil {
		return fmt.Errorf("set up the controller of policies' statuses: %w", err)
	}
	return nil
}

func indexByPolicy(o client.Object) []string {
	p, ok := o.(policyv1alpha1.ObjectPlacementObject)
	if !ok || p.ObjectPlacementSpec().Policy == nil {
		return nil
	}
	return []string{p.ObjectPlacementSpec().Policy.Kind + "/" + p.ObjectPlacementSpec().Policy.Name}
}

// whenCounted lets pass what changes a count: whose the object is, whether it is decided where it goes, and whether it is available.
func whenCounted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(policyv1alpha1.ObjectPlacementObject)
		after, ok2 := e.ObjectNew.(policyv1alpha1.ObjectPlacementObject)
		return ok1 && ok2 && (standingOf(before) != standingOf(after) || !equality.Semantic.DeepEqual(before.ObjectPlacementSpec().Policy, after.ObjectPlacementSpec().Policy))
	}}
}

// standing is what a policy's status says of one of its objects.
type standing struct {
	scheduled, available bool
	why                  string
}

func standingOf(p policyv1alpha1.ObjectPlacementObject) standing {
	status := p.ObjectPlacementStatus()
	s := standing{
		scheduled: meta.IsStatusConditionTrue(status.Conditions, policyv1alpha1.ConditionScheduled),
		available: meta.IsStatusConditionTrue(status.Conditions, policyv1alpha1.ConditionAvailable),
	}
	if c := meta.FindStatusCondition(status.Conditions, policyv1alpha1.ConditionScheduled); c != nil && !s.scheduled {
		s.why = c.Message
	}
	return s
}

// toPolicies maps an internal placement to the policies that have it, or have had it until now.
func toPolicies() handler.TypedEventHandler[client.Object, policyKey] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []policyKey {
		p, ok := o.(policyv1alpha1.ObjectPlacementObject)
		if !ok {
			return nil
		}
		if policy, ok := policyOf(p); ok {
			return []policyKey{policy}
		}
		return nil
	})
}

// Reconcile says on one policy what has become of its objects.
func (c *StatusController) Reconcile(ctx context.Context, key policyKey) (ctrl.Result, error) {
	var o client.Object = &policyv1alpha1.PropagationPolicy{}
	if key.Kind == claim.Cluster {
		o = &policyv1alpha1.ClusterPropagationPolicy{}
	}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of an object is one
	spec, status := parts(o)
	all, err := c.claimed(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	policy := &claim.Policy{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Spec: spec}
	c.observe(policy, status, o.GetGeneration(), all)
	if equality.Semantic.DeepEqual(before, o) {
		return ctrl.Result{}, nil
	}
	err = c.Client.Status().Update(ctx, o) // whole, so that a count of nought is there, too
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write the status of %s: %w", policy, err)
	}
	return ctrl.Result{}, nil
}

func parts(o client.Object) (*policyv1alpha1.PropagationSpec, *policyv1alpha1.PropagationStatus) {
	switch p := o.(type) {
	case *policyv1alpha1.ClusterPropagationPolicy:
		return &p.Spec, &p.Status
	case *policyv1alpha1.PropagationPolicy:
		return &p.Spec, &p.Status
	default:
		return &policyv1alpha1.PropagationSpec{}, &policyv1alpha1.PropagationStatus{}
	}
}

// claimed are the internal placements of a policy's objects.
func (c *StatusController) claimed(ctx context.Context, key policyKey) ([]policyv1alpha1.ObjectPlacementObject, error) {
	options := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{byPolicy: key.Kind + "/" + key.Name}, client.UnsafeDisableDeepCopy}
	var own policyv1alpha1.ObjectPlacementList
	if err := c.Client.List(ctx, &own, options...); err != nil {
		return nil, fmt.Errorf("list the objects of %s %s: %w", key.Kind, key.Name, err)
	}
	all := make([]policyv1alpha1.ObjectPlacementObject, 0, len(own.Items))
	for i := range own.Items {
		all = append(all, &own.Items[i])
	}
	if key.Kind != claim.Cluster {
		return all, nil
	}
	var cluster policyv1alpha1.ClusterObjectPlacementList
	if err := c.Client.List(ctx, &cluster, options...); err != nil {
		return nil, fmt.Errorf("list the cluster-scoped objects of %s %s: %w", key.Kind, key.Name, err)
	}
	for i := range cluster.Items {
		all = append(all, &cluster.Items[i])
	}
	return all, nil
}

// observe fills in a policy's status.
func (c *StatusController) observe(policy *claim.Policy, status *policyv1alpha1.PropagationStatus, generation int64, all []policyv1alpha1.ObjectPlacementObject) {
	status.ObservedGeneration = generation
	status.Claimed, status.Scheduled, status.Available = 0, 0, 0
	var waiting []string
	for _, p := range all {
		s := standingOf(p)
		status.Claimed++
		if s.scheduled {
			status.Scheduled++
		} else if s.why != "" {
			waiting = append(waiting, fmt.Sprintf("%s: %s", objectOf(p), s.why))
		}
		if s.available {
			status.Available++
		}
	}
	ready := metav1.Condition{Type: policyv1alpha1.ConditionReady, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(c.Clock.Now())}
	switch err := policy.Validate(); {
	case err != nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, policyv1alpha1.ReasonInvalidSelector, err.Error()+"; until then nothing changes in the members"
	case status.Claimed == 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, policyv1alpha1.ReasonNothingClaimed
		ready.Message = "The policy has no object: what spec.resourceSelectors selects does not exist yet, " +
			"belongs to another policy (kubectl get objp,cobjp -A), or is never placed, as what is in reserved namespaces"
	case status.Scheduled < status.Claimed:
		ready.Status, ready.Reason = metav1.ConditionFalse, policyv1alpha1.ReasonNotPropagated
		ready.Message = fmt.Sprintf("Of %d of %d objects it is not decided where they go", status.Claimed-status.Scheduled, status.Claimed)
		const most = 3
		if len(waiting) > most {
			waiting = append(waiting[:most], "and others")
		}
		if len(waiting) > 0 {
			ready.Message += ": " + strings.Join(waiting, "; ")
		}
	default:
		ready.Status, ready.Reason = metav1.ConditionTrue, policyv1alpha1.ReasonPropagated
		ready.Message = fmt.Sprintf("It is decided where all %d objects go", status.Claimed)
	}
	meta.SetStatusCondition(&status.Conditions, ready)
}
