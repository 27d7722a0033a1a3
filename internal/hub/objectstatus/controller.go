// Package objectstatus shows on an object of the hub that a policy claims how it is in its clusters: what they report of it makes one
// status, which is written where Kubernetes writes it. Nobody else writes the status of such an object.
package objectstatus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/aggregate"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

const (
	// workers is how many objects are looked at at once.
	workers = 8
	// gather is how long what clusters report is waited for and gathered, so that many reports make one status.
	gather = 150 * time.Millisecond
	// refusedRetry is when what was refused is tried again: a right may have been given meanwhile.
	refusedRetry = time.Minute
)

// Controller writes the statuses of the objects of one scope.
type Controller struct {
	// Client reads from the cache, which has what clusters report of claimed objects. APIReader reads the objects themselves.
	Client    client.Client
	APIReader client.Reader
	Carriage  *placement.Carriage
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("objectstatus-"+strings.ToLower(c.Carriage.Parent)).
		For(c.Carriage.NewParent()).
		Watches(&placementv1.Work{}, c.later()).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of claimed objects' statuses: %w", err)
	}
	return nil
}

// later maps a Work to the internal placement that it belongs to, to be looked at in a while.
func (c *Controller) later() handler.EventHandler {
	add := func(o client.Object, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		name, namespace := o.GetLabels()[placementv1.LabelParentObject], o.GetLabels()[placementv1.LabelParentNamespace]
		if name != "" && (namespace != "") == c.Carriage.Namespaced {
			q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}, gather)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(e.Object, q)
		},
	}
}

// Reconcile writes the status of one object.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p, ok := c.Carriage.NewParent().(policyv1alpha1.ObjectPlacementObject)
	if !ok {
		return ctrl.Result{}, fmt.Errorf("a %s is no internal placement", c.Carriage.Parent)
	}
	if err := c.Client.Get(ctx, request.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r := &p.ObjectPlacementSpec().Resource
	kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	if !aggregate.Knows(kind.GroupKind()) || !p.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kind)
	if err := c.APIReader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, live); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return ctrl.Result{}, nil // it is gone, and so soon are its copies
		}
		return ctrl.Result{}, fmt.Errorf("read %s %s, whose status is to be written: %w", r.Kind, r.Name, err)
	}
	if owners := p.GetOwnerReferences(); len(owners) == 0 || owners[0].UID != live.GetUID() {
		return ctrl.Result{}, nil
	}
	if by := placement.StatusWriter(live); by != "" {
		ctrl.LoggerFrom(ctx).Info("The object's status is written on the hub itself, and left alone", "kind", r.Kind, "name", r.Name, "by", by)
		return ctrl.Result{}, nil
	}
	items, err := c.items(ctx, p, kind, live)
	if err != nil {
		return ctrl.Result{}, err
	}
	before, _, _ := unstructured.NestedMap(live.Object, "status")
	wanted := aggregate.Status(kind.GroupKind(), live.GetGeneration(), before, items)
	if equality.Semantic.DeepEqual(wanted, before) || len(wanted) == 0 && len(before) == 0 {
		return ctrl.Result{}, nil
	}
	live.Object["status"] = wanted
	return c.write(ctx, p, live)
}

// write writes the status of an object on the hub.
func (c *Controller) write(ctx context.Context, p client.Object, live *unstructured.Unstructured) (ctrl.Result, error) {
	err := c.Client.Status().Update(ctx, live, client.FieldOwner(placementv1.StatusFieldManager))
	switch {
	case err == nil:
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Info("The hub may not write this status: give it the right by a ClusterRole with the label "+
			placementv1.LabelAggregateToHubStatus, "kind", live.GetKind(), "placement", p.GetName())
		return ctrl.Result{RequeueAfter: refusedRetry}, nil
	default:
		return ctrl.Result{}, fmt.Errorf("write the status of %s %s: %w", live.GetKind(), live.GetName(), err)
	}
}

// items are what is known of the object in each of its clusters.
func (c *Controller) items(ctx context.Context, p policyv1alpha1.ObjectPlacementObject, kind schema.GroupVersionKind, live *unstructured.Unstructured) ([]aggregate.Item, error) {
	key := client.ObjectKeyFromObject(p)
	bindings, err := listing.Bindings(ctx, c.Client, c.Carriage, key, listing.Shared)
	if err != nil {
		return nil, err
	}
	revisions, err := listing.ResourceSnapshots(ctx, c.Client, c.Carriage, key, listing.Shared)
	if err != nil {
		return nil, err
	}
	newest := -1
	for _, s := range revisions {
		if index, ok := placement.ResourceSnapshotIndex(key.Name, s.GetName()); ok {
			newest = max(newest, index)
		}
	}
	divided := p.ObjectPlacementStatus().ObjectGeneration == live.GetGeneration()
	items := make([]aggregate.Item, 0, len(bindings))
	for _, b := range bindings {
		cluster := b.BindingSpec().TargetCluster
		item := aggregate.Item{Cluster: cluster}
		silent, err := c.silent(ctx, cluster)
		if err != nil {
			return nil, err
		}
		w := &placementv1.Work{}
		err = c.Client.Get(ctx, client.ObjectKey{Namespace: placement.MemberNamespace(cluster), Name: placement.WorkName(key, 0)}, w)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Work of %s in cluster %s: %w", key, cluster, err)
		}
		if err == nil && !silent {
			current := divided && w.Labels[placementv1.LabelParentSnapshotIndex] == strconv.Itoa(newest) && shares(w, b)
			reported(&item, w, kind, &p.ObjectPlacementSpec().Resource, current)
		}
		items = append(items, item)
	}
	return items, nil
}

// silent tells whether nothing is heard of a cluster.
func (c *Controller) silent(ctx context.Context, name string) (bool, error) {
	m := &clusterv1.MemberCluster{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, m)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read MemberCluster %s: %w", name, err)
	}
	observed := schedule.Observe(m)
	return observed.Disconnected != "", nil
}

// shares tells whether a Work has the share that its binding says.
func shares(w *placementv1.Work, b placementv1.BindingObject) bool {
	replicas := b.BindingSpec().Replicas
	return replicas == nil || w.Annotations[placementv1.AnnotationReplicas] == strconv.Itoa(int(*replicas))
}

// reported puts into an item what a cluster reports of the object. current tells that the Work is what is wanted.
func reported(item *aggregate.Item, w *placementv1.Work, kind schema.GroupVersionKind, of *policyv1alpha1.ObjectReference, current bool) {
	for i := range w.Status.ManifestConditions {
		m := &w.Status.ManifestConditions[i]
		if m.Identifier.Group != kind.Group || m.Identifier.Kind != kind.Kind || m.Identifier.Name != of.Name || m.Identifier.Namespace != of.Namespace {
			continue
		}
		applied := meta.FindStatusCondition(m.Conditions, placementv1.ConditionApplied)
		if applied == nil || applied.Status != metav1.ConditionTrue || m.BackReportedStatus == nil {
			return
		}
		var object map[string]any
		if err := json.Unmarshal(m.BackReportedStatus.ObservedStatus.Raw, &object); err != nil {
			return
		}
		item.Status, _ = object["status"].(map[string]any)
		observed, counts := item.Status["observedGeneration"].(int64)
		item.Observed = current && applied.ObservedGeneration == w.Generation &&
			(!counts || observed >= m.BackReportedStatus.ObservedInMemberClusterGeneration)
		return
	}
}
