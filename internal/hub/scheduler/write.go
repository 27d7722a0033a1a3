package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// write makes and changes bindings, several at once. Their names follow from placement and cluster, and changes carry
// the version they were decided on, so that neither is done twice or to something else. Obstructions are what is in the way
// of bindings that could not be made.
func (c *Controller) write(parent context.Context, changes schedule.Changes) (obstructions []string, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(writers)
	for _, b := range changes.Create {
		group.Go(func() error {
			obstruction, err := c.create(ctx, b)
			if err != nil {
				return fmt.Errorf("create the binding of placement %s to cluster %s: %w",
					b.GetLabels()[placementv1.LabelParentPlacement], b.BindingSpec().TargetCluster, err)
			}
			if obstruction != "" {
				mu.Lock()
				defer mu.Unlock()
				obstructions = append(obstructions, obstruction)
			}
			return nil
		})
	}
	// All that is chosen is there before anything is given up: whoever looks in between must not take what is to be replaced
	// for something that nobody wants any more.
	if err := group.Wait(); err != nil {
		return nil, err
	}
	group, ctx = errgroup.WithContext(parent)
	group.SetLimit(writers)
	for _, b := range changes.Update {
		group.Go(func() error {
			err := c.Client.Update(ctx, b)
			if apierrors.IsNotFound(err) {
				err = errStale
			}
			if err != nil {
				return fmt.Errorf("update binding %s: %w", b.GetName(), err)
			}
			c.tracker.Wrote(b)
			return nil
		})
	}
	err = group.Wait()
	slices.Sort(obstructions)
	return obstructions, err
}

// create makes a binding, unless the cache has yet to show that we did, or another one is in the way.
func (c *Controller) create(ctx context.Context, b placementv1.BindingObject) (obstruction string, err error) {
	key := client.ObjectKeyFromObject(b)
	if c.made.Has(key, c.Clock.Now()) {
		return "", errStale
	}
	// What the cache knows to be there is looked at and not made again, however often, and by whatever, a look is brought about.
	switch err := c.Client.Get(ctx, key, c.Kinds.NewBinding()); {
	case err == nil:
		return c.obstruction(ctx, b)
	case !apierrors.IsNotFound(err):
		return "", fmt.Errorf("look what is there: %w", err)
	}
	if err := c.takeUp(ctx, b); err != nil {
		return "", err
	}
	c.made.Add(key, c.Clock.Now())
	if err = c.Client.Create(ctx, b); err == nil {
		return "", nil
	}
	c.made.Remove(key)
	if apierrors.IsAlreadyExists(err) {
		return c.obstruction(ctx, b)
	}
	return "", err
}

// takeUp has a new binding go on where one was that somebody deleted: its Works are still there, and what they carry is what
// the cluster has. A cluster on which nothing was placed has none.
func (c *Controller) takeUp(ctx context.Context, b placementv1.BindingObject) error {
	t := render.Target{
		Placement:    placement.Key{Namespace: b.GetNamespace(), Name: b.GetLabels()[placementv1.LabelParentPlacement]},
		PlacementUID: b.GetAnnotations()[placementv1.AnnotationPlacementUID],
		Binding:      b.GetName(), Cluster: b.BindingSpec().TargetCluster,
	}
	options := []client.ListOption{
		client.InNamespace(placement.MemberNamespace(t.Cluster)), client.MatchingLabels{placementv1.LabelParentBinding: t.Binding},
	}
	var cached placementv1.WorkList
	if err := c.Client.List(ctx, &cached, options...); err != nil {
		return fmt.Errorf("list the Works of cluster %s: %w", t.Cluster, err)
	}
	if len(cached.Items) == 0 {
		return nil
	}
	live := &metav1.PartialObjectMetadataList{} // which of two snapshots it is must not depend on how old the cache is
	live.SetGroupVersionKind(placementv1.GroupVersion.WithKind("WorkList"))
	if err := c.live.List(ctx, live, options...); err != nil {
		return fmt.Errorf("list the Works of cluster %s: %w", t.Cluster, err)
	}
	works := map[string]*placementv1.Work{}
	for i := range live.Items {
		if w := &live.Items[i]; w.DeletionTimestamp.IsZero() {
			works[w.Name] = &placementv1.Work{ObjectMeta: w.ObjectMeta}
		}
	}
	if carried := render.Carried(t, works); carried != nil {
		b.BindingSpec().State = placementv1.BindingStateBound
		b.BindingSpec().ResourceSnapshotName = carried[0].Annotations[placementv1.AnnotationParentSnapshotName]
		log.FromContext(ctx).Info("A binding is made again that somebody has deleted, on the snapshot that its Works carry",
			"binding", b.GetName(), "snapshot", b.BindingSpec().ResourceSnapshotName)
	}
	return nil
}

// obstruction looks at the object that has the name of a binding which was to be made, and that was not found by its label.
// Where it is that very binding, the label is put back.
func (c *Controller) obstruction(ctx context.Context, wanted placementv1.BindingObject) (string, error) {
	there := c.Kinds.NewBinding()
	err := c.live.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	if apierrors.IsNotFound(err) {
		return "", errStale
	}
	if err != nil {
		return "", fmt.Errorf("read binding %s, which is there already: %w", wanted.GetName(), err)
	}
	const label, uid = placementv1.LabelParentPlacement, placementv1.AnnotationPlacementUID
	ours := there.GetAnnotations()[uid] == wanted.GetAnnotations()[uid]
	sameCluster := there.BindingSpec().TargetCluster == wanted.BindingSpec().TargetCluster
	switch labelled := there.GetLabels()[label]; {
	case sameCluster && (labelled == wanted.GetLabels()[label] || labelled == ""):
		return "", errStale // as soon as the cache shows it, it is dealt with
	case sameCluster && ours:
		before, _ := there.DeepCopyObject().(client.Object)
		labels := there.GetLabels()
		labels[label] = wanted.GetLabels()[label]
		there.SetLabels(labels)
		if err := c.Client.Patch(ctx, there, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return "", fmt.Errorf("put the label of binding %s back: %w", there.GetName(), err)
		}
		return "", errStale
	default:
		return fmt.Sprintf("binding %q, to cluster %q and labelled %s: %s, stands where that of cluster %q has to be; look what it is, and delete it",
			there.GetName(), there.BindingSpec().TargetCluster, label, labelled, wanted.BindingSpec().TargetCluster), nil
	}
}

// clear deletes bindings to clusters that are no members any more. There is nobody who could remove anything, and no run has
// a cluster to clear.
func (c *Controller) clear(ctx context.Context, gone []placementv1.BindingObject) error {
	for _, b := range gone {
		cluster := b.BindingSpec().TargetCluster
		err := c.live.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.MemberCluster{})
		if err == nil {
			continue // it has just joined; the cache will tell
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("read MemberCluster %s to tell whether it is gone: %w", cluster, err)
		}
		err = c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID()), ResourceVersion: ptr.To(b.GetResourceVersion())})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete binding %s to cluster %s, which is gone: %w", b.GetName(), cluster, err)
		}
	}
	return nil
}
