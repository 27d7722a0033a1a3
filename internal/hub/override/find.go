package override

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PendingRetry is when to look again at a placement that waits for the snapshot of an override: the event that the snapshot
// brings does not come where it cannot be made, or where the edit was taken back.
const PendingRetry = 5 * time.Second

// Finder finds the overrides that matter to placements of one scope.
type Finder struct {
	// APIReader reads from the API server; caches have no snapshot content.
	APIReader client.Reader
	Kinds     *placement.Kinds

	contents contents
}

// NewFinder makes a Finder.
func NewFinder(live client.Reader, kinds *placement.Kinds) *Finder {
	return &Finder{APIReader: live, Kinds: kinds}
}

// Match returns the overrides, as r knows them, that matter to a placement with what its resource snapshot of an index holds.
// What that is, is read only where there are overrides for the placement. One that matters and of which there is no snapshot yet
// as it is now is waited for: with a rollout that began without it, clusters would be changed twice.
func (f *Finder) Match(ctx context.Context, r client.Reader, p placementv1.PlacementObject, index int) (override.Matching, error) {
	key := client.ObjectKeyFromObject(p)
	latest, pending, err := f.latest(ctx, r, key)
	if err != nil {
		return override.Matching{}, err
	}
	if len(latest)+len(pending) == 0 {
		return override.Matching{}, nil
	}
	objects, err := f.held(ctx, r, p, index)
	if err != nil {
		return override.Matching{}, err
	}
	for _, revision := range pending { // as it is now, and as it was
		if !override.Match([]placementv1.OverrideSnapshotObject{revision.OverrideSnapshotObject}, key, objects).Empty() {
			return override.Matching{}, &pendingError{override: revision.of}
		}
	}
	return override.Match(latest, key, objects), nil
}

// unrecorded is an override as it is, without a snapshot, or the snapshot of it as it was before.
type unrecorded struct {
	placementv1.OverrideSnapshotObject
	of placement.Key
}

// latest returns the newest revisions of the overrides for a placement, and of those of which there is no snapshot yet as they
// are now what they say now and what they said before.
func (f *Finder) latest(ctx context.Context, r client.Reader, key placement.Key) (all []placementv1.OverrideSnapshotObject, pending []unrecorded, err error) {
	for _, namespaced := range []bool{false, true} {
		opts := []client.ListOption{listing.Shared}
		if namespaced {
			opts = append(opts, client.InNamespace(key.Namespace)) // of all namespaces for a cluster-scoped placement
		}
		snapshots, err := list(ctx, r, namespaced, opts...)
		if err != nil {
			return nil, nil, err
		}
		overrides, err := listOverrides(ctx, r, namespaced, opts...)
		if err != nil {
			return nil, nil, err
		}
		latest := slices.DeleteFunc(override.Latest(snapshots), func(s placementv1.OverrideSnapshotObject) bool {
			return !override.IsFor(s, key) || isGoing(overrides[override.ParentOf(s)])
		})
		recorded := map[placement.Key]placementv1.OverrideSnapshotObject{}
		for _, s := range latest {
			recorded[override.ParentOf(s)] = s
		}
		for name, o := range overrides {
			wanted, before := o.NewSnapshot(), recorded[name]
			if isGoing(o) || !override.IsFor(wanted, key) || (before != nil && before.OverrideHash() == wanted.OverrideHash()) {
				continue
			}
			pending = append(pending, unrecorded{wanted, name})
			if before != nil {
				pending = append(pending, unrecorded{before, name})
			}
		}
		all = append(all, latest...)
	}
	return all, pending, nil
}

func isGoing(o placementv1.OverrideObject) bool {
	return o != nil && !o.GetDeletionTimestamp().IsZero()
}

// pendingError says that there is no snapshot yet of an override as it is now.
type pendingError struct{ override placement.Key }

func (e *pendingError) Error() string {
	return fmt.Sprintf("there is no snapshot yet of override %s as it is now, and nothing new is given to clusters before; where that lasts, "+
		"the log of the hub says why it cannot be made", strings.TrimPrefix(e.override.String(), "/"))
}

// IsPending tells whether an error says that an override is about to be recorded.
func IsPending(err error) bool {
	var pending *pendingError
	return errors.As(err, &pending)
}

// held returns which objects a resource snapshot holds.
func (f *Finder) held(ctx context.Context, r client.Reader, p placementv1.PlacementObject, index int) ([]placementv1.ResourceIdentifier, error) {
	master := f.Kinds.NewResourceSnapshot()
	name := client.ObjectKey{Namespace: p.GetNamespace(), Name: placement.ResourceSnapshotName(p.GetName(), index)}
	if err := r.Get(ctx, name, master); err == nil {
		if objects, known := f.contents.get(client.ObjectKeyFromObject(p), master.GetUID()); known {
			return objects, nil
		}
	}
	parts, err := listing.ResourceSnapshots(ctx, f.APIReader, &f.Kinds.Carriage, client.ObjectKeyFromObject(p),
		client.MatchingLabels{placementv1.LabelParentPlacement: p.GetName(), placementv1.LabelResourceIndex: strconv.Itoa(index)})
	if err != nil {
		return nil, err
	}
	var uid types.UID
	objects := []placementv1.ResourceIdentifier{}
	count, found := 0, 0
	for _, part := range parts {
		if part.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.GetUID()) {
			continue
		}
		found++
		if part.GetName() == name.Name {
			uid = part.GetUID()
			if count, err = strconv.Atoi(part.GetAnnotations()[placementv1.AnnotationSnapshotCount]); err != nil {
				return nil, fmt.Errorf("resource snapshot %s: annotation %s: %w", name, placementv1.AnnotationSnapshotCount, err)
			}
		}
		for i := range part.ResourceSnapshotSpec().SelectedResources {
			objects = append(objects, render.Objects(part.ResourceSnapshotSpec().SelectedResources[i].Raw)...)
		}
	}
	if uid == "" || found < count {
		return nil, fmt.Errorf("resource snapshot %s is not whole: %d of %d parts are there", name, found, count)
	}
	f.contents.add(client.ObjectKeyFromObject(p), uid, objects)
	return objects, nil
}
