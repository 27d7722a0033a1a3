// Package clusterprofile keeps a ClusterProfile of SIG Multicluster for each member, so that tools which know nothing of this
// system find the clusters of the fleet.
package clusterprofile

import (
	"context"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	inventoryv1alpha1 "github.com/fleetwright/fleetwright/api/inventory/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// workers is how many clusters are looked at at once.
const workers = 2

// Controller keeps ClusterProfiles.
type Controller struct {
	// Client reads from the cache, APIReader from the API server.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.PassiveClock
	// Namespace is where ClusterProfiles are.
	Namespace string
}

// CacheByObject keeps out of the hub's cache the profiles that other systems write elsewhere.
func CacheByObject(namespace string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&inventoryv1alpha1.ClusterProfile{}: {Namespaces: map[string]cache.Config{namespace: {}}},
	}
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	// By name, and not by owner: one that lost its owner is looked at as well.
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetName()}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("clusterprofile").
		For(&clusterv1.MemberCluster{}).
		Watches(&inventoryv1alpha1.ClusterProfile{}, byName).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of ClusterProfiles: %w", err)
	}
	return nil
}

// Reconcile brings the profile of a cluster in line with its MemberCluster.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.MemberCluster{}
	switch err := c.Client.Get(ctx, client.ObjectKey{Name: request.Name}, cluster); {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, c.remove(ctx, request.Name)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read MemberCluster %s: %w", request.Name, err)
	}
	profile, err := c.ensure(ctx, cluster)
	if err != nil || profile == nil {
		return ctrl.Result{}, again(err)
	}
	want := Status(cluster, &profile.Status, profile.Generation, c.Clock.Now())
	if equality.Semantic.DeepEqual(&profile.Status, want) {
		return ctrl.Result{}, nil
	}
	profile.Status = *want
	if err := c.Client.Status().Update(ctx, profile); err != nil {
		return ctrl.Result{}, again(fmt.Errorf("write the status of ClusterProfile %s/%s: %w", c.Namespace, profile.Name, err))
	}
	return ctrl.Result{}, nil
}

// again drops an error that says no more than that the cache is behind: the event that it waits for brings the next pass.
func again(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ensure makes the profile of a cluster that has joined, or brings it in line. It returns nil where there is none to write
// to: the cluster has never joined, or another system has a profile of that name.
func (c *Controller) ensure(ctx context.Context, cluster *clusterv1.MemberCluster) (*inventoryv1alpha1.ClusterProfile, error) {
	profile := &inventoryv1alpha1.ClusterProfile{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: cluster.Name}, profile)
	switch {
	case apierrors.IsNotFound(err):
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionJoined) || cluster.DeletionTimestamp != nil {
			return nil, nil //nolint:nilnil // none is an answer, not an error
		}
		return c.create(ctx, cluster)
	case err != nil:
		return nil, fmt.Errorf("read ClusterProfile %s/%s: %w", c.Namespace, cluster.Name, err)
	case !ours(profile):
		ctrl.LoggerFrom(ctx).Info("a ClusterProfile of this name belongs to another cluster manager, and is left alone",
			"cluster", cluster.Name, "namespace", c.Namespace, "manager", profile.Spec.ClusterManager.Name)
		return nil, nil //nolint:nilnil // none is an answer, not an error
	case profile.DeletionTimestamp != nil:
		return nil, nil //nolint:nilnil // its going brings the next pass
	}
	before := profile.DeepCopy()
	shape(profile, cluster)
	if equality.Semantic.DeepEqual(before, profile) {
		return profile, nil
	}
	if err := c.Client.Patch(ctx, profile, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("bring ClusterProfile %s/%s in line: %w", c.Namespace, profile.Name, err)
	}
	return profile, nil
}

// shape sets what the hub says of a cluster, apart from its status.
func shape(profile *inventoryv1alpha1.ClusterProfile, cluster *clusterv1.MemberCluster) {
	metav1.SetMetaDataLabel(&profile.ObjectMeta, inventoryv1alpha1.LabelClusterManager, inventoryv1alpha1.ManagerName)
	profile.Spec.DisplayName, profile.Spec.ClusterManager.Name = cluster.Name, inventoryv1alpha1.ManagerName
	profile.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "MemberCluster", Name: cluster.Name, UID: cluster.UID, Controller: ptr.To(true),
	}}
}

func ours(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile.Spec.ClusterManager.Name == inventoryv1alpha1.ManagerName
}

func (c *Controller) create(ctx context.Context, cluster *clusterv1.MemberCluster) (*inventoryv1alpha1.ClusterProfile, error) {
	attempt := func() (*inventoryv1alpha1.ClusterProfile, error) {
		profile := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: cluster.Name}}
		shape(profile, cluster)
		return profile, c.Client.Create(ctx, profile)
	}
	profile, err := attempt()
	if apierrors.IsNotFound(err) { // a hub that runs outside its cluster need not have the namespace
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
		if err := c.Client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("make namespace %s for ClusterProfiles: %w", c.Namespace, err)
		}
		profile, err = attempt()
	}
	if err != nil {
		return nil, fmt.Errorf("make ClusterProfile %s/%s: %w", c.Namespace, cluster.Name, err)
	}
	return profile, nil
}

// remove removes the profile of a cluster that is gone. The garbage collector would do so too, in its time.
func (c *Controller) remove(ctx context.Context, name string) error {
	profile := &inventoryv1alpha1.ClusterProfile{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, profile); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !ours(profile) || profile.DeletionTimestamp != nil {
		return nil
	}
	if err := c.APIReader.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.MemberCluster{}); !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err) // it was made a moment ago, and is looked at by itself
	}
	err := c.Client.Delete(ctx, profile, client.Preconditions{UID: ptr.To(profile.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove ClusterProfile %s/%s: %w", c.Namespace, name, err)
	}
	return nil
}
