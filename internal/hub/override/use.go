package override

import (
	"context"
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// workers is how many overrides are looked at at once.
const workers = 4

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	name := "override"
	if c.Namespaced {
		name = "resourceoverride"
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(c.newOverride(), builder.WithPredicates(c.forgets())).
		Watches(c.newSnapshot(), handler.EnqueueRequestsFromMapFunc(toOverride), builder.WithPredicates(c.forgets())).
		WithOptions(enqueue.Options(workers))
	for _, kinds := range c.Kinds {
		b = b.Watches(kinds.NewBinding(), handler.EnqueueRequestsFromMapFunc(c.toOverrides), builder.WithPredicates(whenLetGo())).
			Watches(kinds.NewUpdateRun(), handler.EnqueueRequestsFromMapFunc(c.ofRun), builder.WithPredicates(whenRunEnds()))
	}
	if err := b.Complete(c); err != nil {
		return fmt.Errorf("set up the controller of overrides: %w", err)
	}
	return nil
}

// forgets drops what is known of what is gone, and lets everything pass.
func (c *Controller) forgets() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		c.Tracker.Forget(e.Object.GetUID())
		return true
	}}
}

func toOverride(_ context.Context, o client.Object) []ctrl.Request {
	if key := override.ParentOf(o); key.Name != "" {
		return []ctrl.Request{{NamespacedName: key}}
	}
	return nil
}

// whenLetGo lets pass what may have left a snapshot unused: that a binding names others, or is gone.
func whenLetGo() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(placementv1.BindingObject)
			after, ok2 := e.ObjectNew.(placementv1.BindingObject)
			return ok1 && ok2 && !override.AppliedTo(before).Empty() && !override.AppliedTo(before).Equal(override.AppliedTo(after))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// toOverrides maps a binding to the overrides that it names. Of a binding that was changed both states are mapped.
func (c *Controller) toOverrides(_ context.Context, o client.Object) []ctrl.Request {
	b, ok := o.(placementv1.BindingObject)
	if !ok {
		return nil
	}
	var requests []ctrl.Request
	c.each(b.BindingSpec().AppliedOverrides, func(namespace, name string, _ int) {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	})
	return requests
}

// whenRunEnds lets pass what may have left a snapshot unused: that a run ends, or is gone.
func whenRunEnds() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(placementv1.UpdateRunObject)
			after, ok2 := e.ObjectNew.(placementv1.UpdateRunObject)
			return ok1 && ok2 && !updaterun.Finished(before.UpdateRunStatus()) && updaterun.Finished(after.UpdateRunStatus())
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofRun maps a run to the overrides that its plan names.
func (c *Controller) ofRun(_ context.Context, o client.Object) []ctrl.Request {
	run, ok := o.(placementv1.UpdateRunObject)
	if !ok {
		return nil
	}
	var requests []ctrl.Request
	for key := range planned([]placementv1.UpdateRunObject{run}) {
		if name, _ := override.SplitName(key.Name); (key.Namespace != "") == c.Namespaced && name != "" {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: name}})
		}
	}
	return requests
}

// each visits the snapshots in a list that are of the controller's kind.
func (c *Controller) each(a placementv1.AppliedOverrides, visit func(namespace, name string, index int)) {
	a.Each(func(namespace, snapshot string) {
		if (namespace != "") == c.Namespaced {
			name, index := override.SplitName(snapshot)
			visit(namespace, name, index)
		}
	})
}

// used returns the indexes of an override's snapshots that bindings and unfinished runs name.
func (c *Controller) used(ctx context.Context, r client.Reader, key client.ObjectKey) (map[int]bool, error) {
	used := map[int]bool{}
	note := func(a placementv1.AppliedOverrides) {
		c.each(a, func(namespace, name string, index int) {
			if namespace == key.Namespace && name == key.Name && index >= 0 {
				used[index] = true
			}
		})
	}
	for _, kinds := range c.Kinds {
		bindings, err := listing.AllBindings(ctx, r, &kinds.Carriage, listing.Shared)
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			note(b.BindingSpec().AppliedOverrides)
		}
		runs, err := listing.UpdateRuns(ctx, r, kinds, listing.Shared)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			if updaterun.Finished(run.UpdateRunStatus()) {
				continue
			}
			for i := range run.UpdateRunStatus().StagesStatus {
				for j := range run.UpdateRunStatus().StagesStatus[i].Clusters {
					note(run.UpdateRunStatus().StagesStatus[i].Clusters[j].AppliedOverrides)
				}
			}
		}
	}
	return used, nil
}

// list reads the snapshots of one kind.
func list(ctx context.Context, r client.Reader, namespaced bool, opts ...client.ListOption) ([]placementv1.OverrideSnapshotObject, error) {
	var all []placementv1.OverrideSnapshotObject
	if namespaced {
		var snapshots placementv1.ResourceOverrideSnapshotList
		if err := r.List(ctx, &snapshots, opts...); err != nil {
			return nil, fmt.Errorf("list ResourceOverrideSnapshots: %w", err)
		}
		for i := range snapshots.Items {
			all = append(all, &snapshots.Items[i])
		}
		return all, nil
	}
	var snapshots placementv1.ClusterResourceOverrideSnapshotList
	if err := r.List(ctx, &snapshots, opts...); err != nil {
		return nil, fmt.Errorf("list ClusterResourceOverrideSnapshots: %w", err)
	}
	for i := range snapshots.Items {
		all = append(all, &snapshots.Items[i])
	}
	return all, nil
}

// listOverrides reads the overrides of one kind, by name.
func listOverrides(ctx context.Context, r client.Reader, namespaced bool, opts ...client.ListOption) (map[placement.Key]placementv1.OverrideObject, error) {
	all := map[placement.Key]placementv1.OverrideObject{}
	if namespaced {
		var overrides placementv1.ResourceOverrideList
		if err := r.List(ctx, &overrides, opts...); err != nil {
			return nil, fmt.Errorf("list ResourceOverrides: %w", err)
		}
		for i := range overrides.Items {
			all[client.ObjectKeyFromObject(&overrides.Items[i])] = &overrides.Items[i]
		}
		return all, nil
	}
	var overrides placementv1.ClusterResourceOverrideList
	if err := r.List(ctx, &overrides, opts...); err != nil {
		return nil, fmt.Errorf("list ClusterResourceOverrides: %w", err)
	}
	for i := range overrides.Items {
		all[client.ObjectKeyFromObject(&overrides.Items[i])] = &overrides.Items[i]
	}
	return all, nil
}
