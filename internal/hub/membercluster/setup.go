package membercluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// workers is how many clusters are looked at at once. What passes share is locked, or belongs to one cluster.
const workers = 8

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// CacheByObject keeps out of the hub's cache what is not made for members: the hub may be an ordinary cluster with roles
// and Leases of its own.
func CacheByObject() map[client.Object]cache.ByObject {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{clusterv1.LabelIsFleetResource: "true"})}
	return map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}:      {Field: fields.OneTermEqualSelector("metadata.name", clusterv1.HeartbeatLease)},
		&rbacv1.Role{}:               ours,
		&rbacv1.RoleBinding{}:        ours,
		&rbacv1.ClusterRole{}:        ours,
		&rbacv1.ClusterRoleBinding{}: ours,
		&corev1.ServiceAccount{}:     ours,
	}
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	c.noticed = make(chan event.TypedGenericEvent[*clusterv1.MemberCluster])
	builder := ctrl.NewControllerManagedBy(mgr).Named("membercluster").For(&clusterv1.MemberCluster{}).WithOptions(enqueue.Options(workers))
	for _, owned := range []client.Object{
		&corev1.Namespace{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &corev1.ServiceAccount{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
	} {
		builder = builder.Owns(owned)
	}
	err := builder.
		Watches(&clusterv1.InternalMemberCluster{}, c.onInternal()).
		Watches(&coordinationv1.Lease{}, c.onLease()).
		Watches(&placementv1.Work{}, onWorkGoing()).
		WatchesRawSource(source.Channel(c.noticed, &handler.TypedEnqueueRequestForObject[*clusterv1.MemberCluster]{})).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of MemberClusters: %w", err)
	}
	return nil
}

// SecondCluster notes that a cluster with another ID than the member's tried to sign in under its name.
func (c *Controller) SecondCluster(ctx context.Context, cluster, clusterID string) {
	c.liveness.other(cluster, clusterID, c.Clock.Now())
	object := &clusterv1.MemberCluster{}
	object.Name = cluster
	select {
	case c.noticed <- event.TypedGenericEvent[*clusterv1.MemberCluster]{Object: object}:
	case <-ctx.Done():
	}
}

// clusterOf returns the cluster whose namespace this is.
func clusterOf(namespace string) (string, bool) {
	return strings.CutPrefix(namespace, placementv1.MemberNamespacePrefix)
}

// look has the cluster looked at whose namespace this is.
func look(q queue, namespace string) {
	if name, ok := clusterOf(namespace); ok {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
}

// onInternal takes a changed status as a sign of life, and looks at every change.
func (c *Controller) onInternal() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { look(q, e.Object.GetNamespace()) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(q, e.Object.GetNamespace()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*clusterv1.InternalMemberCluster), e.ObjectNew.(*clusterv1.InternalMemberCluster)
			if !equality.Semantic.DeepEqual(before.Status.AgentStatus, after.Status.AgentStatus) {
				c.sign(after.Namespace, time.Time{})
			}
			look(q, after.Namespace)
		},
	}
}

// onLease takes a renewal as a sign of life. A renewal alone is no reason to look at the cluster, unless it was lost.
func (c *Controller) onLease() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(context.Context, event.CreateEvent, queue) {},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(q, e.Object.GetNamespace()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
			if !before.Spec.RenewTime.Equal(after.Spec.RenewTime) {
				if wasLost := c.sign(after.Namespace, renewalOf(after)); wasLost {
					look(q, after.Namespace)
				}
				return
			}
			look(q, after.Namespace)
		},
	}
}

func (c *Controller) sign(namespace string, renewal time.Time) (wasLost bool) {
	name, ok := clusterOf(namespace)
	return ok && c.liveness.sign(name, renewal, c.Clock.Now())
}

// onWorkGoing looks at a cluster when a Work of its is going: its namespace may be waiting for that.
func onWorkGoing() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(context.Context, event.CreateEvent, queue) {},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(q, e.Object.GetNamespace()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectNew.GetDeletionTimestamp() != nil && len(e.ObjectNew.GetFinalizers()) != len(e.ObjectOld.GetFinalizers()) {
				look(q, e.ObjectNew.GetNamespace())
			}
		},
	}
}
