package work

import (
	"context"
	"fmt"
	"strings"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// workers is how many bindings are looked at at once.
const workers = 32

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	c.contents = newContents(c.APIReader, c.Carriage, c.Clock)
	if err := mgr.Add(manager.RunnableFunc(c.contents.run)); err != nil {
		return fmt.Errorf("set up what lets go of snapshot content: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr)
	if c.follows() {
		b = b.Watches(&policyv1alpha1.ClusterOverridePolicy{}, c.toBindingsOverridden(), builder.WithPredicates(whenSaid())).
			Watches(&clusterv1.MemberCluster{}, c.toBindingsOf(client.Object.GetName), builder.WithPredicates(whenLabelled()))
		if c.Carriage.Namespaced {
			b = b.Watches(&policyv1alpha1.OverridePolicy{}, c.toBindingsOverridden(), builder.WithPredicates(whenSaid()))
		}
	}
	err := b.
		Named("work-"+strings.ToLower(c.Carriage.Parent)).
		For(c.Carriage.NewBinding(), builder.WithPredicates(c.forgets())). // our own status writes too: a pass that found the cache behind waits for them
		Watches(&placementv1.Work{}, c.toBinding(), builder.WithPredicates(c.seen())).
		Watches(c.Carriage.NewResourceSnapshot(), c.toBindingsOnIt(), builder.WithPredicates(whenMade())).
		Watches(&clusterv1.MemberCluster{}, c.toBindingsOf(client.Object.GetName), builder.WithPredicates(whenMembershipChanges())).
		Watches(&corev1.Namespace{}, c.toBindingsOf(clusterOfNamespace), builder.WithPredicates(whenMade())).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of Works: %w", err)
	}
	return nil
}

// byBinding indexes Works by the binding that they were made for. An index may be added to a cache once alone, so that each
// scope has its own.
func byBinding(carriage *placement.Carriage) string { return "parent" + carriage.Binding }

// AddIndexes adds to a cache, once, the indexes that the controllers of all scopes share.
func AddIndexes(indexer client.FieldIndexer) error {
	for _, kinds := range placement.AllKinds() {
		if err := index(indexer, &kinds.Carriage); err != nil {
			return err
		}
	}
	return nil
}

// index has the cache find without a look at everything in the fleet what one cluster, or one binding, has.
func index(indexer client.FieldIndexer, carriage *placement.Carriage) error {
	if err := listing.IndexByCluster(indexer, carriage); err != nil {
		return err
	}
	err := indexer.IndexField(context.Background(), &placementv1.Work{}, byBinding(carriage), func(o client.Object) []string {
		return []string{o.GetLabels()[placementv1.LabelParentBinding]}
	})
	if err != nil {
		return fmt.Errorf("index Works by binding: %w", err)
	}
	return nil
}

// seen takes note of what the cache has come to show, and lets everything pass.
func (c *Controller) seen() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { c.made.Remove(client.ObjectKeyFromObject(e.Object)); return true },
		UpdateFunc: func(e event.UpdateEvent) bool { c.made.Remove(client.ObjectKeyFromObject(e.ObjectNew)); return true },
		DeleteFunc: func(e event.DeleteEvent) bool {
			c.made.Remove(client.ObjectKeyFromObject(e.Object))
			c.deleted.Remove(e.Object.GetUID())
			c.lifted.Remove(e.Object.GetUID())
			c.Tracker.Forget(e.Object.GetUID())
			return true
		},
	}
}

// forgets drops what is known of a binding that is gone, and lets everything pass.
func (c *Controller) forgets() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		c.Tracker.Forget(e.Object.GetUID())
		c.patience.forget(e.Object.GetUID())
		return true
	}}
}

// whenMade lets pass what has just been made. What is there at the start is found by the bindings themselves.
func whenMade() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// whenMembershipChanges lets pass what can end a wait for a cluster: that it can be reached, or is no member any more.
func whenMembershipChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*clusterv1.MemberCluster)
			after, ok2 := e.ObjectNew.(*clusterv1.MemberCluster)
			return ok1 && ok2 && reach(before) != reach(after)
		},
	}
}

// standing is what a binding's status says of its cluster.
type standing struct {
	uid          types.UID
	leaving      bool
	disconnected string
}

// reach leaves out what an agent reports of its cluster every now and then, and what schedules: no Work follows from it.
func reach(m *clusterv1.MemberCluster) standing {
	c := schedule.Observe(m)
	return standing{uid: c.UID, leaving: c.Leaving, disconnected: c.Disconnected}
}

// toBinding maps a Work to its binding, if that is of this scope.
func (c *Controller) toBinding() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		name, namespace := o.GetLabels()[placementv1.LabelParentBinding], o.GetLabels()[placementv1.LabelParentNamespace]
		if name == "" || (namespace != "") != c.Carriage.Namespaced || c.foreign(o) {
			return nil
		}
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
	})
}

// foreign tells whether an object says that it belongs to a parent of the other sort. One that says nothing has lost its label.
func (c *Controller) foreign(o client.Object) bool {
	labels := o.GetLabels()
	return labels[c.Carriage.Label] == "" && (labels[placementv1.LabelParentPlacement] != "" || labels[placementv1.LabelParentObject] != "")
}

// toBindingsOnIt maps a snapshot object to the bindings whose snapshot it is a part of: they may wait for it.
func (c *Controller) toBindingsOnIt() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		name, index := o.GetLabels()[c.Carriage.Label], o.GetLabels()[placementv1.LabelResourceIndex]
		if name == "" {
			return nil
		}
		key := placement.Key{Namespace: o.GetNamespace(), Name: name}
		bindings, err := listing.Bindings(ctx, c.Client, c.Carriage, key, listing.Shared)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot look at the bindings to a resource snapshot", "snapshot", o.GetName())
			return nil
		}
		master := name + "-" + index + "-snapshot"
		return requests(bindings, func(s *placementv1.ResourceBindingSpec) bool { return c.follows() || s.ResourceSnapshotName == master })
	})
}

// toBindingsOf maps an object that stands for a cluster to the bindings to that cluster.
func (c *Controller) toBindingsOf(cluster func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		name := cluster(o)
		if name == "" {
			return nil
		}
		bindings, err := listing.BindingsTo(ctx, c.Client, c.Carriage, name, listing.Shared)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot look at the bindings to a cluster", "cluster", name)
			return nil
		}
		return requests(bindings, func(*placementv1.ResourceBindingSpec) bool { return true })
	})
}

// clusterOfNamespace is the cluster whose namespace on the hub it is; empty for other namespaces.
func clusterOfNamespace(o client.Object) string {
	name, ok := strings.CutPrefix(o.GetName(), placementv1.MemberNamespacePrefix)
	if !ok {
		return ""
	}
	return name
}

func requests(bindings []placementv1.BindingObject, wanted func(*placementv1.ResourceBindingSpec) bool) []ctrl.Request {
	var all []ctrl.Request
	for _, b := range bindings {
		if wanted(b.BindingSpec()) {
			all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return all
}
