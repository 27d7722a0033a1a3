package override

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remembered is how many resource snapshots a Finder remembers the objects of.
const remembered = 64

// Finder finds the overrides that matter to placements of one scope.
type Finder struct {
	// APIReader reads from the API server; caches have no snapshot content.
	APIReader client.Reader
	Kinds     *placement.Kinds

	objects *lru.Cache // UID of a master resource snapshot → []placementv1.ResourceIdentifier
}

// NewFinder makes a Finder.
func NewFinder(live client.Reader, kinds *placement.Kinds) *Finder {
	return &Finder{APIReader: live, Kinds: kinds, objects: lru.New(remembered)}
}

// Match returns the overrides, as r knows them, that matter to a placement with what its resource snapshot of an index holds.
// What that is, is read only where there are overrides for the placement.
func (f *Finder) Match(ctx context.Context, r client.Reader, p placementv1.PlacementObject, index int) (override.Matching, error) {
	key := client.ObjectKeyFromObject(p)
	latest, err := f.latest(ctx, r, key)
	if err != nil {
		return override.Matching{}, err
	}
	if len(latest) == 0 {
		return override.Matching{}, nil
	}
	objects, err := f.held(ctx, r, p, index)
	if err != nil {
		return override.Matching{}, err
	}
	return override.Match(latest, key, objects), nil
}

// latest returns the newest revisions of the overrides for a placement. One of which there is no snapshot yet as it is now is
// waited for: with a rollout that began without it, clusters would be changed twice.
func (f *Finder) latest(ctx context.Context, r client.Reader, key placement.Key) ([]placementv1.OverrideSnapshotObject, error) {
	var all []placementv1.OverrideSnapshotObject
	for _, namespaced := range []bool{false, true} {
		opts := []client.ListOption{listing.Shared}
		if namespaced {
			opts = append(opts, client.InNamespace(key.Namespace)) // of all namespaces for a cluster-scoped placement
		}
		snapshots, err := list(ctx, r, namespaced, opts...)
		if err != nil {
			return nil, err
		}
		overrides, err := listOverrides(ctx, r, namespaced, opts...)
		if err != nil {
			return nil, err
		}
		latest := slices.DeleteFunc(override.Latest(snapshots), func(s placementv1.OverrideSnapshotObject) bool {
			return !override.IsFor(s, key) || isGoing(overrides[override.ParentOf(s)])
		})
		hashes := map[placement.Key]string{}
		for _, s := range latest {
			hashes[override.ParentOf(s)] = s.OverrideHash()
		}
		for name, o := range overrides {
			if wanted := o.NewSnapshot(); !isGoing(o) && override.IsFor(wanted, key) && hashes[name] != wanted.OverrideHash() {
				return nil, &pendingError{override: name}
			}
		}
		all = append(all, latest...)
	}
	return all, nil
}

func isGoing(o placementv1.OverrideObject) bool {
	return o != nil && !o.GetDeletionTimestamp().IsZero()
}

// pendingError says that there is no snapshot yet of an override as it is now.
type pendingError struct{ override placement.Key }

func (e *pendingError) Error() string {
	return fmt.Sprintf("override %s was changed just now, and there is no snapshot of it yet", strings.TrimPrefix(e.override.String(), "/"))
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
		if known, ok := f.objects.Get(master.GetUID()); ok {
			if objects, ok := known.([]placementv1.ResourceIdentifier); ok {
				return objects, nil
			}
		}
	}
	parts, err := listing.ResourceSnapshots(ctx, f.APIReader, f.Kinds, client.ObjectKeyFromObject(p),
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
	f.objects.Add(uid, objects)
	return objects, nil
}
