package snapshots

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Contents reads live what a revision holds, in the order in which it is applied.
func (s *Store) Contents(ctx context.Context, p placementv1.PlacementObject, index int) ([]placementv1.ResourceIdentifier, error) {
	objects, err := listing.ResourceSnapshots(ctx, s.APIReader, s.Carriage, client.ObjectKeyFromObject(p),
		client.MatchingLabels{placementv1.LabelResourceIndex: strconv.Itoa(index)})
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(o placementv1.ResourceSnapshotObject) bool { return !BelongsTo(o, p) })
	if groups := snapshot.Groups(objects); len(groups) == 0 || !groups[0].Complete() {
		return nil, fmt.Errorf("resource snapshot %d of %s %s is not whole", index, s.Carriage.Parent, p.GetName())
	}
	slices.SortFunc(objects, func(a, b placementv1.ResourceSnapshotObject) int { return cmp.Compare(position(a), position(b)) })
	var contents []placementv1.ResourceIdentifier
	for _, o := range objects {
		for i, resource := range o.ResourceSnapshotSpec().SelectedResources {
			id, err := identify(resource.Raw)
			if err != nil {
				return nil, fmt.Errorf("read object %d of resource snapshot %s: %w", i, o.GetName(), err)
			}
			contents = append(contents, id)
		}
	}
	return contents, nil
}

// position is where an object stands in its revision; -1 for the master, which is the first.
func position(o metav1.Object) int {
	sub, err := strconv.Atoi(o.GetAnnotations()[placementv1.AnnotationSnapshotSubindex])
	if err != nil {
		return -1
	}
	return sub
}

func identify(raw []byte) (placementv1.ResourceIdentifier, error) {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &o); err != nil {
		return placementv1.ResourceIdentifier{}, fmt.Errorf("decode it: %w", err)
	}
	kind := o.GroupVersionKind()
	return placementv1.ResourceIdentifier{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: o.GetName(), Namespace: o.GetNamespace(),
	}, nil
}

// errVanished is why an object that is no longer found is not taken for gone.
var errVanished = errors.New("the hub's API does not serve it any more")

// confirmGone returns an IncompleteError where the latest revision holds objects of a kind that the hub's API has ceased
// to serve, in a namespace that is still selected: nobody can tell whether they are gone. What else is not in the new
// selection is confirmed to be gone, or not to be selected any more, by the reads that the selection was made of.
func (s *Store) confirmGone(ctx context.Context, p placementv1.PlacementObject, latest *snapshot.Group, selected *selection.Selection) error {
	held, err := s.Contents(ctx, p, latest.Index)
	if err != nil {
		return &selection.IncompleteError{Unread: "the latest resource snapshot", Err: err}
	}
	namespaces := sets.New(selected.Namespaces...)
	vanished := sets.New[schema.GroupKind]()
	for _, id := range held {
		kind := schema.GroupKind{Group: id.Group, Kind: id.Kind}
		if namespaces.Has(id.Namespace) && !selected.Serves(kind) {
			vanished.Insert(kind)
		}
	}
	if vanished.Len() == 0 {
		return nil
	}
	kinds := slices.SortedFunc(slices.Values(vanished.UnsortedList()), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	return &selection.IncompleteError{
		Unread: kindNames(kinds) + ", of which there are objects in the latest resource snapshot",
		Err: fmt.Errorf("%w; to go on without these objects, install the CustomResourceDefinition again, and remove it "+
			"once a new resource snapshot was made without them", errVanished),
	}
}

// bindingIndexes are the revisions that a binding still needs.
func bindingIndexes(key placement.Key, b placementv1.BindingObject) []int {
	var indexes []int
	if index, ok := placement.ResourceSnapshotIndex(key.Name, b.BindingSpec().ResourceSnapshotName); ok {
		indexes = append(indexes, index)
	}
	if index, err := strconv.Atoi(b.BindingStatus().ObservedResourceIndex); err == nil {
		indexes = append(indexes, index)
	}
	return indexes
}
