package snapshots

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// prune deletes what the placement's revisionHistoryLimit does not keep. What bindings and runs need is asked of the API
// server, and only when there is anything to delete.
func (s *Store) prune(ctx context.Context, p placementv1.ParentObject, stock *stock) error {
	limit := int(p.RevisionLimit())
	none := func(int) bool { return false }
	if len(snapshot.Prune(stock.groups, limit, none)) == 0 {
		return nil
	}
	needed, err := s.needed(ctx, p)
	if err != nil {
		return fmt.Errorf("find out which resource snapshots are in use: %w", err)
	}
	for _, group := range snapshot.Prune(stock.groups, limit, needed.Has) {
		// The master goes last: it is what tells a revision whose deletion was interrupted from one that is being made.
		for _, name := range slices.Concat(group.Parts, []string{group.Master}) {
			if o := stock.objects[name]; o != nil {
				if err := s.delete(ctx, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// needed are the revisions that a binding is on, or is to be on, and those that an unfinished run rolls out.
func (s *Store) needed(ctx context.Context, p placementv1.ParentObject) (sets.Set[int], error) {
	needed := sets.New[int]()
	key := client.ObjectKeyFromObject(p)
	bindings, err := listing.Bindings(ctx, s.APIReader, s.Carriage, key)
	if err != nil {
		return nil, err
	}
	for _, b := range bindings {
		needed.Insert(bindingIndexes(key, b)...)
	}
	if s.Kinds == nil {
		return needed, nil
	}
	runs, err := listing.UpdateRuns(ctx, s.APIReader, s.Kinds, client.InNamespace(p.GetNamespace()))
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run.UpdateRunSpec().PlacementName != p.GetName() || updaterun.Finished(run.UpdateRunStatus()) {
			continue
		}
		for _, index := range []string{run.UpdateRunSpec().ResourceSnapshotIndex, run.UpdateRunStatus().ResourceSnapshotIndexUsed} {
			if number, err := strconv.Atoi(index); err == nil {
				needed.Insert(number)
			}
		}
	}
	return needed, nil
}

func (s *Store) delete(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	err := s.Client.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the old resource snapshot %s: %w", o.GetName(), err)
	}
	return nil
}

// MarkAvailable notes on a revision that it is the last one that was available in every cluster. What is noted on others
// stays and counts less, so that this takes one write, and none where it is noted already.
func (s *Store) MarkAvailable(ctx context.Context, p placementv1.PlacementObject, index int) error {
	defer s.locks.Lock(client.ObjectKeyFromObject(p))()
	stock, err := s.stock(ctx, p)
	if err != nil {
		return err
	}
	greatest := 0
	var marked *snapshot.Group
	for i := range stock.groups {
		g := &stock.groups[i]
		greatest = max(greatest, g.Available)
		if g.Index == index && g.Master != "" && !g.LastAvailable {
			marked = g
		}
	}
	if marked == nil {
		return nil
	}
	o := stock.objects[marked.Master]
	before := o.DeepCopy()
	o.Annotations[placementv1.AnnotationAvailable] = strconv.Itoa(greatest + 1)
	if err := s.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set annotation %s of %s: %w", placementv1.AnnotationAvailable, o.GetName(), err)
	}
	return nil
}
