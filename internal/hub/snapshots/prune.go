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
func (s *Store) prune(ctx context.Context, p placementv1.PlacementObject, stock *stock) error {
	limit := int(p.PlacementSpec().RevisionLimit())
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
func (s *Store) needed(ctx context.Context, p placementv1.PlacementObject) (sets.Set[int], error) {
	needed := sets.New[int]()
	key := client.ObjectKeyFromObject(p)
	bindings, err := listing.Bindings(ctx, s.APIReader, s.Kinds, key)
	if err != nil {
		return nil, err
	}
	for _, b := range bindings {
		needed.Insert(bindingIndexes(key, b)...)
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

// MarkAvailable notes on a revision that it was the last one that was available in every cluster, and takes the note off
// any other. It writes nothing where that is noted already.
func (s *Store) MarkAvailable(ctx context.Context, p placementv1.PlacementObject, index int) error {
	defer s.locks.lock(client.ObjectKeyFromObject(p))()
	stock, err := s.stock(ctx, p)
	if err != nil {
		return err
	}
	// First the new note, then the old one: at no time is there none.
	for _, wanted := range []bool{true, false} {
		for i := range stock.groups {
			g := &stock.groups[i]
			if g.Master == "" || g.LastAvailable == wanted || (g.Index == index) != wanted {
				continue
			}
			if err := s.annotate(ctx, stock.objects[g.Master], wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) annotate(ctx context.Context, o *metav1.PartialObjectMetadata, available bool) error {
	before := o.DeepCopy()
	if available {
		o.Annotations[placementv1.AnnotationLastAvailable] = "true"
	} else {
		delete(o.Annotations, placementv1.AnnotationLastAvailable)
	}
	if err := s.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set annotation %s of %s: %w", placementv1.AnnotationLastAvailable, o.GetName(), err)
	}
	return nil
}
