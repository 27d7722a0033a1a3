package work

import (
	"context"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// sync makes the Works what the binding says, and fills in what came of it. Works that are not needed any more are deleted
// only after the others are written, so that an agent always finds the new place of an object before the old one is gone.
func (c *Controller) sync(ctx context.Context, t render.Target, works map[string]*placementv1.Work, o *observed) error {
	master := o.binding.BindingSpec().ResourceSnapshotName
	if o.binding.BindingSpec().State == placementv1.BindingStateUnscheduled {
		c.keep(t, works, master, o)
		return nil
	}
	r, err := c.revision(ctx, t, master)
	if isMissing(err) {
		c.keep(t, works, master, o)
		return nil
	}
	if err != nil {
		return err
	}
	o.index = r.Index
	synced := make([]*placementv1.Work, 0, len(r.Parts))
	for i, wanted := range render.Works(t, r.Revision) {
		w, problem, err := c.syncOne(ctx, t, o.binding, works[wanted.Name], wanted, client.ObjectKey{Namespace: t.Placement.Namespace, Name: r.Parts[i]}, r.uids[i])
		if err != nil {
			return err
		}
		if problem != nil {
			o.problem = problem
			return nil
		}
		delete(works, wanted.Name)
		synced = append(synced, w)
	}
	o.works = synced
	for _, surplus := range sorted(works) {
		if _, err := c.removeWork(ctx, surplus, false); err != nil {
			return err
		}
	}
	return nil
}

// keep leaves the Works as they are: they carry a snapshot that is wanted and that need not, or cannot, be read.
func (c *Controller) keep(t render.Target, works map[string]*placementv1.Work, master string, o *observed) {
	o.works = carried(t, works, master)
	if o.works == nil {
		o.problem = failure("resource snapshot %q does not exist any more; roll out one that does", master)
		return
	}
	o.index = o.works[0].Labels[placementv1.LabelParentSnapshotIndex]
}

// syncOne makes one Work what is wanted, or says why it is not.
func (c *Controller) syncOne(ctx context.Context, t render.Target, b placementv1.BindingObject, existing, wanted *placementv1.Work,
	part client.ObjectKey, uid types.UID,
) (*placementv1.Work, *problem, error) {
	switch {
	case existing == nil:
	case !t.Belongs(existing):
		return nil, failure("Work %s/%s was made for another placement, of the same name or an earlier one; it has to go first", existing.Namespace, existing.Name), nil
	case !existing.DeletionTimestamp.IsZero():
		// Somebody deleted it, or its removal was begun and is not wanted any more. It is made again when it is gone.
		if _, err := c.lift(ctx, existing, false); err != nil {
			return nil, nil, err
		}
		return nil, waitFor("Work %s/%s is being deleted; it is made again when it is gone", existing.Namespace, existing.Name), nil
	case render.Same(existing, wanted):
		return existing, nil, nil
	}
	content, err := c.contents.get(ctx, part, uid)
	if isMissing(err) {
		return nil, failure("%v", err), nil
	}
	if err != nil {
		return nil, nil, err
	}
	render.Fill(wanted, content)
	written := wanted
	if existing == nil {
		err = c.Client.Create(ctx, written)
	} else {
		written = render.Onto(existing, wanted)
		err = c.Client.Update(ctx, written)
	}
	switch {
	case apierrors.IsNotFound(err) && existing == nil, apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return nil, waitFor("namespace %s does not exist yet, or is going; the hub makes it for a member", wanted.Namespace), nil
	case apierrors.IsNotFound(err):
		return nil, nil, errStale
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return nil, failure("Work %s/%s is refused: %v", wanted.Namespace, wanted.Name, err), nil
	case err != nil:
		return nil, nil, fmt.Errorf("write Work %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	c.Tracker.Wrote(written)
	c.noteWrite(b)
	return written, nil, nil
}

// remove takes away all Works of a deleted binding, and lets it go when they are gone.
func (c *Controller) remove(ctx context.Context, b placementv1.BindingObject, t render.Target, works map[string]*placementv1.Work) error {
	if !controllerutil.ContainsFinalizer(b, placementv1.FinalizerWorkCleanup) {
		return nil
	}
	cluster, err := c.cluster(ctx, t.Cluster)
	if err != nil {
		return err
	}
	left := 0
	for _, w := range sorted(works) {
		if !t.Belongs(w) {
			continue
		}
		gone, err := c.removeWork(ctx, w, cluster == nil)
		if err != nil {
			return err
		}
		if !gone {
			left++
		}
	}
	if left > 0 {
		return nil
	}
	// The cache may not have seen a Work that was made last.
	if left, err = c.liveWorks(ctx, t); err != nil || left > 0 {
		return err
	}
	before, ok := b.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy binding %s: a %T is no object", b.GetName(), b)
	}
	controllerutil.RemoveFinalizer(b, placementv1.FinalizerWorkCleanup)
	err = c.Client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from binding %s: %w", b.GetName(), err)
	}
	c.Tracker.Forget(b.GetUID())
	c.mu.Lock()
	delete(c.wrote, b.GetUID())
	c.mu.Unlock()
	return nil
}

// liveWorks counts the binding's Works by asking the API server. While the cache has not seen one of them, it is not seen
// here either way that it is gone.
func (c *Controller) liveWorks(ctx context.Context, t render.Target) (int, error) {
	var list placementv1.WorkList
	err := c.APIReader.List(ctx, &list, client.InNamespace(placement.MemberNamespace(t.Cluster)), client.MatchingLabels{placementv1.LabelParentBinding: t.Binding})
	if err != nil {
		return 0, fmt.Errorf("list the Works of binding %s: %w", t.Binding, err)
	}
	count := 0
	for i := range list.Items {
		if t.Belongs(&list.Items[i]) {
			count++
		}
	}
	return count, nil
}

// removeWork deletes a Work on purpose, which it says first, and lets it go when its agent has answered; at once where
// there is no agent any more.
func (c *Controller) removeWork(ctx context.Context, w *placementv1.Work, abandoned bool) (gone bool, err error) {
	if w.Annotations[placementv1.AnnotationRemovalConfirmed] != "true" {
		patch := []byte(`{"metadata":{"annotations":{"` + placementv1.AnnotationRemovalConfirmed + `":"true"}}}`)
		err := c.Client.Patch(ctx, w, client.RawPatch(types.MergePatchType, patch))
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("confirm the removal of Work %s/%s: %w", w.Namespace, w.Name, err)
		}
		c.Tracker.Wrote(w)
	}
	if w.DeletionTimestamp.IsZero() {
		err := c.Client.Delete(ctx, w, client.Preconditions{UID: ptr.To(w.UID)})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("delete Work %s/%s: %w", w.Namespace, w.Name, err)
		}
		return false, nil
	}
	return c.lift(ctx, w, abandoned)
}

// lift lets a deleted Work go once its agent has answered for it as it is now.
func (c *Controller) lift(ctx context.Context, w *placementv1.Work, abandoned bool) (bool, error) {
	confirmed := w.Annotations[placementv1.AnnotationRemovalConfirmed] == "true"
	removed := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionRemoved)
	answered := removed != nil && removed.Status == "True" && removed.ObservedGeneration == w.Generation &&
		(!confirmed || removed.Reason != placementv1.ReasonRemovalNotConfirmed)
	if !answered && !abandoned {
		return false, nil
	}
	before := w.DeepCopy()
	controllerutil.RemoveFinalizer(w, placementv1.FinalizerWorkCleanup)
	if err := c.Client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("remove the finalizer from Work %s/%s: %w", w.Namespace, w.Name, err)
	}
	c.Tracker.Forget(w.UID)
	return true, nil
}

func sorted(works map[string]*placementv1.Work) []*placementv1.Work {
	all := make([]*placementv1.Work, 0, len(works))
	for _, w := range works {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *placementv1.Work) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}
