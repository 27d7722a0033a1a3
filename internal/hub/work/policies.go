package work

import (
	"context"
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/override/policy"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"github.com/fleetwright/fleetwright/internal/schedule/clusteraffinity"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// policies finds the override policies that change something of a revision in a cluster. What they select by is in the snapshot's
// metadata, so that a hub that starts finds out which Works are as they should be without a live read for each of them.
func (c *Controller) policies(ctx context.Context, t render.Target, r *revision, cluster *schedule.Cluster) (policy.Set, error) {
	if !c.follows() {
		return policy.Set{}, nil
	}
	all, err := c.listPolicies(ctx, t.Placement.Namespace)
	if err != nil || len(all) == 0 {
		return policy.Set{}, err
	}
	objects, known := policy.Described(r.objects)
	if !known {
		if objects, err = c.objects(ctx, t, r); err != nil {
			return policy.Set{}, err
		}
	}
	where := clusteraffinity.Cluster{Name: t.Cluster}
	if cluster != nil {
		where = clusteraffinity.Locate(t.Cluster, cluster.Labels)
	}
	return policy.Match(all, objects, &where), nil
}

// listPolicies lists the override policies that can be for objects in a namespace, or for cluster-scoped ones, those that are being
// deleted aside.
func (c *Controller) listPolicies(ctx context.Context, namespace string) ([]policy.Policy, error) {
	var all []policy.Policy
	var cluster policyv1alpha1.ClusterOverridePolicyList
	if err := c.Client.List(ctx, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ClusterOverridePolicies: %w", err)
	}
	for i := range cluster.Items {
		if p := &cluster.Items[i]; p.DeletionTimestamp.IsZero() {
			all = append(all, policy.OfCluster(p))
		}
	}
	if namespace == "" {
		return all, nil
	}
	var own policyv1alpha1.OverridePolicyList
	if err := c.Client.List(ctx, &own, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the OverridePolicies of namespace %s: %w", namespace, err)
	}
	for i := range own.Items {
		if p := &own.Items[i]; p.DeletionTimestamp.IsZero() {
			all = append(all, policy.Of(p))
		}
	}
	return all, nil
}

// objects reads from a revision's content what selectors look at, where the metadata does not say it.
func (c *Controller) objects(ctx context.Context, t render.Target, r *revision) ([]policy.Object, error) {
	var all []policy.Object
	for i, part := range r.Parts {
		content, err := c.contents.get(ctx, client.ObjectKey{Namespace: t.Placement.Namespace, Name: part}, r.uids[i])
		if err != nil {
			return nil, err
		}
		for j := range content {
			o, err := policy.Look(content[j].Raw)
			if err != nil {
				return nil, fmt.Errorf("object %d of resource snapshot %s: %w", j, part, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// applyPolicies puts content into a Work, with the changes of override policies.
func (c *Controller) applyPolicies(ctx context.Context, w *wish, wanted *placementv1.Work, content []placementv1.ResourceContent) error {
	manifests, failures, held, err := render.Change(content, func(_ placementv1.ResourceIdentifier, raw []byte) ([]byte, bool, error) {
		changed, err := w.policies.Apply(raw)
		return changed, err == nil, err //nolint:wrapcheck // it says which policy, object and cluster
	}, func(id placementv1.ResourceIdentifier) ([]byte, error) {
		return c.previous(ctx, w, id)
	})
	if err != nil {
		return err
	}
	render.Fill(wanted, manifests)
	render.FailOverrides(wanted, failures, held)
	return nil
}

// whenSaid lets pass what changes what a policy says. What is there at the start is found by the bindings themselves.
func whenSaid() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
		},
	}
}

// whenLabelled lets pass that a cluster's labels are others: rules of override policies may be for it now, or not any more.
func whenLabelled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: predicate.LabelChangedPredicate{}.Update,
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// toBindingsOverridden maps an override policy to the bindings of the objects that it selects, or did before it was changed.
func (c *Controller) toBindingsOverridden() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { c.enqueueOverridden(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { c.enqueueOverridden(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			c.enqueueOverridden(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		GenericFunc: func(context.Context, event.GenericEvent, queue) {},
	}
}

func (c *Controller) enqueueOverridden(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request], editions ...client.Object) {
	var policies []policy.Policy
	var namespace client.InNamespace // of a ClusterOverridePolicy none, which is all of them
	for _, o := range editions {
		namespace = client.InNamespace(o.GetNamespace())
		switch p := o.(type) {
		case *policyv1alpha1.OverridePolicy:
			policies = append(policies, policy.Of(p))
		case *policyv1alpha1.ClusterOverridePolicy:
			policies = append(policies, policy.OfCluster(p))
		}
	}
	bindings, err := c.overriddenBy(ctx, policies, namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot look at the bindings to an override policy", "policy", client.ObjectKeyFromObject(editions[0]))
		return
	}
	for _, b := range bindings {
		q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	}
}

// overriddenBy returns the bindings of objects that policies select. One of which the metadata of its revisions does not say what they hold
// may be one of them.
func (c *Controller) overriddenBy(ctx context.Context, policies []policy.Policy, namespace client.InNamespace) ([]placementv1.BindingObject, error) {
	snapshots, err := listing.AllResourceSnapshots(ctx, c.Client, c.Carriage, namespace, listing.Shared)
	if err != nil {
		return nil, err
	}
	parents := sets.New[types.NamespacedName]()
	for _, s := range snapshots {
		if key, is := c.parentOf(s); is && s.GetAnnotations()[placementv1.AnnotationSnapshotCount] != "" && !parents.Has(key) && concerns(policies, s) {
			parents.Insert(key)
		}
	}
	if parents.Len() == 0 {
		return nil, nil
	}
	bindings, err := listing.AllBindings(ctx, c.Client, c.Carriage, namespace, listing.Shared)
	if err != nil {
		return nil, err
	}
	var all []placementv1.BindingObject
	for _, b := range bindings {
		if key, is := c.parentOf(b); is && parents.Has(key) {
			all = append(all, b)
		}
	}
	return all, nil
}

// parentOf names the internal placement that something belongs to.
func (c *Controller) parentOf(o client.Object) (key placement.Key, is bool) {
	name := o.GetLabels()[c.Carriage.Label]
	return placement.Key{Namespace: o.GetNamespace(), Name: name}, name != ""
}

// concerns tells whether one of some policies is for one of a revision's objects, or may be.
func concerns(policies []policy.Policy, s client.Object) bool {
	objects, known := policy.Described(s.GetAnnotations()[policyv1alpha1.AnnotationObjects])
	if !known {
		return true
	}
	for i := range policies {
		for j := range objects {
			if policies[i].Selects(&objects[j]) {
				return true
			}
		}
	}
	return false
}
