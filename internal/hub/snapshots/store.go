// Package snapshots keeps the revisions of what placements select, as resource snapshots in the hub's API. It is the one
// place that makes and prunes them, for placements that roll out by themselves and for update runs alike.
package snapshots

import (
	"context"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempts is how often a new revision is begun again because somebody else made one at the same time.
const attempts = 5

// Selector finds out what a placement selects.
type Selector interface {
	Select(context.Context, placementv1.PlacementObject) (*selection.Selection, error)
}

// Store keeps the resource snapshots of the parents of one scope: placements, or objects that policies claim. All who make
// snapshots share one.
//
// A revision is made part by part and its master last, so a revision that has a master is whole. Names follow from
// placement and index: of two hubs that make a revision at once, while one takes over from the other, each index goes to
// one, whole, and the other takes the next.
type Store struct {
	// Client writes, and reads from the cache. APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	// Carriage are the kinds of the snapshots, the bindings that need them, and their parent.
	Carriage *placement.Carriage
	// Kinds are those of the update runs that need snapshots; nil where no run can.
	Kinds *placement.Kinds
	// Selector finds out what a placement selects. Keep does without.
	Selector Selector

	locks consistency.Locks
}

// Ensure returns the index of the newest resource snapshot, which holds what the placement selects at the time of the
// call; it is made if need be. The error is, or wraps, a placement.UserError where the selectors are at fault, and a
// selection.IncompleteError where something could not be read.
func (s *Store) Ensure(ctx context.Context, p placementv1.PlacementObject) (int, error) {
	revision, _, err := s.Revise(ctx, p)
	return revision.Index, err
}

// Revision is a resource snapshot.
type Revision struct {
	// Index and Name are the master's.
	Index int
	Name  string
	// New tells that it was made by this call.
	New bool
}

// Revise is Ensure for those who also need to know what was selected. The selection is never nil.
func (s *Store) Revise(ctx context.Context, p placementv1.PlacementObject) (Revision, *selection.Selection, error) {
	// Selecting under the lock keeps an older selection from becoming a newer revision.
	defer s.locks.Lock(client.ObjectKeyFromObject(p))()
	selected, err := s.Selector.Select(ctx, p)
	if err != nil {
		return Revision{}, selected, err
	}
	revision, err := s.store(ctx, p, selected.Objects, func(latest *snapshot.Group) error { return s.confirmGone(ctx, p, latest, selected) })
	return revision, selected, err
}

// Keep returns the newest revision of a parent of which the caller knows what it is to hold; it is made if need be.
func (s *Store) Keep(ctx context.Context, p placementv1.ParentObject, objects []snapshot.Object) (Revision, error) {
	defer s.locks.Lock(client.ObjectKeyFromObject(p))()
	return s.store(ctx, p, objects, func(*snapshot.Group) error { return nil })
}

// store finds or makes the revision that holds some objects. It asks for a confirmation before another takes the place of
// the latest.
func (s *Store) store(ctx context.Context, p placementv1.ParentObject, objects []snapshot.Object, confirm func(latest *snapshot.Group) error) (Revision, error) {
	hash := snapshot.Hash(objects)
	for range attempts {
		stock, err := s.stock(ctx, p)
		if err != nil {
			return Revision{}, err
		}
		latest := snapshot.Latest(stock.groups)
		if latest != nil && latest.Hash == hash {
			if err := s.relabel(ctx, stock, latest.Master); err != nil {
				return Revision{}, err
			}
			return Revision{Index: latest.Index, Name: latest.Master}, s.prune(ctx, p, stock)
		}
		if latest != nil {
			if err := confirm(latest); err != nil {
				return Revision{}, err
			}
		}
		index, made, err := s.make(ctx, p, stock, hash, objects)
		if err != nil {
			return Revision{}, err
		}
		if !made {
			continue
		}
		if stock, err = s.stock(ctx, p); err != nil {
			return Revision{}, err
		}
		if latest = snapshot.Latest(stock.groups); latest == nil || latest.Index != index {
			continue // somebody made a newer one meanwhile; only the newest is the latest
		}
		revision := Revision{Index: index, Name: latest.Master, New: true}
		return revision, s.prune(ctx, p, stock)
	}
	return Revision{}, fmt.Errorf("make a resource snapshot of %s: somebody else made one each of %d times", p.GetName(), attempts)
}

// RepairLatest sees to it that the newest complete revision, and no other, is labelled as the latest: a hub that stopped
// between two writes may have left none.
func (s *Store) RepairLatest(ctx context.Context, p placementv1.PlacementObject) error {
	defer s.locks.Lock(client.ObjectKeyFromObject(p))()
	stock, err := s.stock(ctx, p)
	if err != nil {
		return err
	}
	latest := snapshot.Latest(stock.groups)
	if latest == nil {
		return nil
	}
	return s.relabel(ctx, stock, latest.Master)
}

// stock is what the API server has under a parent's name, without content.
type stock struct {
	// groups are the parent's own revisions.
	groups []snapshot.Group
	// objects are all objects, those of an earlier one of this name included, by name.
	objects map[string]*metav1.PartialObjectMetadata
	// highest is the highest index of them all; -1 where there is none.
	highest int
}

// stock reads live.
func (s *Store) stock(ctx context.Context, p placementv1.ParentObject) (*stock, error) {
	kind, err := s.snapshotKind()
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = s.APIReader.List(ctx, list, client.InNamespace(p.GetNamespace()),
		client.MatchingLabels{s.Carriage.Label: p.GetName()})
	if err != nil {
		return nil, fmt.Errorf("list the resource snapshots of %s %s: %w", s.Carriage.Parent, p.GetName(), err)
	}
	found := &stock{objects: map[string]*metav1.PartialObjectMetadata{}}
	var all, own []*metav1.PartialObjectMetadata
	for i := range list.Items {
		o := &list.Items[i]
		found.objects[o.GetName()] = o
		all = append(all, o)
		if BelongsTo(o, p) {
			own = append(own, o)
		}
	}
	found.groups = snapshot.Groups(own)
	found.highest = snapshot.Next(snapshot.Groups(all)) - 1
	return found, nil
}

// BelongsTo tells whether a snapshot was made for this very parent, and is not being deleted.
func BelongsTo(o metav1.Object, p placementv1.ParentObject) bool {
	return o.GetAnnotations()[placementv1.AnnotationPlacementUID] == string(p.GetUID()) && o.GetDeletionTimestamp().IsZero()
}

func (s *Store) snapshotKind() (schema.GroupVersionKind, error) {
	kind, err := s.Client.GroupVersionKindFor(s.Carriage.NewResourceSnapshot())
	if err != nil {
		return kind, fmt.Errorf("find the API version of %s: %w", s.Carriage.ResourceSnapshot, err)
	}
	return kind, nil
}

// kindNames lists kinds for a person.
func kindNames(kinds []schema.GroupKind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.String()
	}
	return strings.Join(names, ", ")
}
