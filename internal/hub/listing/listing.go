// Package listing reads the objects that belong to one placement, whichever scope they are of, sorted by name.
package listing

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shared, as an option of a read from a cache, hands out the cache's own objects, which must not be changed.
const Shared = client.UnsafeDisableDeepCopy

// Placements returns all placements of a scope.
func Placements(ctx context.Context, r client.Reader, kinds *placement.Kinds, opts ...client.ListOption) ([]placementv1.PlacementObject, error) {
	return items[placementv1.PlacementObject](ctx, r, kinds.Placement, kinds.NewPlacementList(), opts)
}

// Bindings returns the bindings under a parent's name, those that were made for an earlier one of that name
// included.
func Bindings(ctx context.Context, r client.Reader, kinds *placement.Carriage, key placement.Key, opts ...client.ListOption) ([]placementv1.BindingObject, error) {
	return items[placementv1.BindingObject](ctx, r, kinds.Binding, kinds.NewBindingList(), append(of(kinds.Label, key), opts...))
}

// AllBindings returns all bindings of a scope, whatever their parents.
func AllBindings(ctx context.Context, r client.Reader, kinds *placement.Carriage, opts ...client.ListOption) ([]placementv1.BindingObject, error) {
	return items[placementv1.BindingObject](ctx, r, kinds.Binding, kinds.NewBindingList(), opts)
}

// byCluster indexes bindings by the cluster that they are to.
const byCluster = "spec.targetCluster"

// IndexByCluster has a cache find the bindings to a cluster without a look at all others, as BindingsTo needs it.
func IndexByCluster(indexer client.FieldIndexer, kinds *placement.Carriage) error {
	err := indexer.IndexField(context.Background(), kinds.NewBinding(), byCluster, func(o client.Object) []string {
		b, ok := o.(placementv1.BindingObject)
		if !ok {
			return nil
		}
		return []string{b.BindingSpec().TargetCluster}
	})
	if err != nil {
		return fmt.Errorf("index %s objects by cluster: %w", kinds.Binding, err)
	}
	return nil
}

// BindingsTo returns the bindings to a cluster, from a cache that IndexByCluster was called for.
func BindingsTo(ctx context.Context, r client.Reader, kinds *placement.Carriage, cluster string, opts ...client.ListOption) ([]placementv1.BindingObject, error) {
	return AllBindings(ctx, r, kinds, append(opts, client.MatchingFields{byCluster: cluster})...)
}

// PolicySnapshots returns the policy snapshots under a parent's name.
func PolicySnapshots(ctx context.Context, r client.Reader, kinds *placement.Kinds, key placement.Key, opts ...client.ListOption) ([]placementv1.PolicySnapshotObject, error) {
	return items[placementv1.PolicySnapshotObject](ctx, r, kinds.PolicySnapshot, kinds.NewPolicySnapshotList(), append(of(kinds.Label, key), opts...))
}

// ResourceSnapshots returns the resource snapshot objects under a parent's name. Read from the hub's cache they have
// no content.
func ResourceSnapshots(ctx context.Context, r client.Reader, kinds *placement.Carriage, key placement.Key, opts ...client.ListOption) ([]placementv1.ResourceSnapshotObject, error) {
	return items[placementv1.ResourceSnapshotObject](ctx, r, kinds.ResourceSnapshot, kinds.NewResourceSnapshotList(), append(of(kinds.Label, key), opts...))
}

// AllResourceSnapshots returns all resource snapshot objects of a scope, whatever their parents.
func AllResourceSnapshots(ctx context.Context, r client.Reader, kinds *placement.Carriage, opts ...client.ListOption) ([]placementv1.ResourceSnapshotObject, error) {
	return items[placementv1.ResourceSnapshotObject](ctx, r, kinds.ResourceSnapshot, kinds.NewResourceSnapshotList(), opts)
}

// of selects what carries the parent's label.
func of(label string, key placement.Key) []client.ListOption {
	return []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{label: key.Name}}
}

func items[T placementv1.Object](ctx context.Context, r client.Reader, kind string, empty runtime.Object, opts []client.ListOption) ([]T, error) {
	list, ok := empty.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("list of %s: %T is not a list", kind, empty)
	}
	if err := r.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("list %s objects: %w", kind, err)
	}
	var all []T
	err := meta.EachListItem(list, func(o runtime.Object) error {
		item, ok := o.(T)
		if !ok {
			return fmt.Errorf("list of %s holds a %T", kind, o)
		}
		all = append(all, item)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all, nil
}
