package work

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// removalTime is how long a removal may take before the binding says what it waits for.
const removalTime = time.Second

// remove takes away all Works of a deleted binding, and lets it go when they are gone. A cluster that is leaving decides
// itself what becomes of what was placed there: nothing is asked of it here. Of a binding that was deleted by accident the
// Works stay: the scheduler makes it again, and the new one finds them.
func (c *Controller) remove(ctx context.Context, o observed, t render.Target, works map[string]*placementv1.Work) (time.Duration, error) {
	b := o.binding
	if !controllerutil.ContainsFinalizer(b, placementv1.FinalizerWorkCleanup) {
		return 0, nil
	}
	meant, err := c.meaning(ctx, b, t)
	if err != nil {
		return 0, err
	}
	if meant == byAccident {
		log.FromContext(ctx).Info("The binding was deleted, but not by the hub: what was placed stays, and the binding is made again",
			"cluster", t.Cluster, "placement", t.Placement)
		return 0, c.release(ctx, b)
	}
	left := 0
	for _, name := range slices.Sorted(maps.Keys(works)) {
		if w := works[name]; t.Belongs(w) {
			left++
			if err := c.removeWork(ctx, t, w, meant); err != nil {
				return 0, err
			}
			o.works = append(o.works, w)
		}
	}
	if left == 0 {
		// The cache may not have seen a Work that was made last.
		live, err := c.liveWorks(ctx, t)
		if err != nil {
			return 0, err
		}
		if live == 0 {
			return 0, c.release(ctx, b)
		}
	}
	if early := b.GetDeletionTimestamp().Add(removalTime).Sub(o.now); early > 0 {
		return early, nil
	}
	return c.report(ctx, b, removalStatus(o, meant))
}

// meant is what somebody means to become of what was placed; its text is what a Work says of it.
type meant string

const (
	byAccident  meant = ""
	toBeRemoved meant = "true"
	toBeLeft    meant = placementv1.RemovalAbandons
)

// meaning tells what is meant by the deletion of a binding. The hub deletes bindings for three reasons alone: their cluster is
// not chosen any more, which their state says, an eviction took them off it, which their mark says, or their placement is
// deleted, of which the placement's deleteStrategy says more; and a namespace that is deleted takes all that is in it along. Of a cluster that is no member any more nothing is removed in any
// case.
func (c *Controller) meaning(ctx context.Context, b placementv1.BindingObject, t render.Target) (meant, error) {
	// The cache is enough to know that a placement is being deleted, which is not undone, and what its strategy was then. That
	// it is not is asked live.
	p, err := c.placement(ctx, c.Client, t)
	if err != nil || isDeleted(p) {
		return meantBy(p), err
	}
	if b.BindingSpec().State == placementv1.BindingStateUnscheduled || b.GetAnnotations()[placementv1.AnnotationEvictedBy] != "" {
		return toBeRemoved, nil
	}
	if p, err = c.placement(ctx, c.APIReader, t); err != nil || p == nil || isDeleted(p) {
		return meantBy(p), err
	}
	// A namespace that is deleted takes the binding, and the parent, in any order.
	if going, err := c.namespaceGoes(ctx, b.GetNamespace()); err != nil || going {
		return meantBy(p), err
	}
	if cluster, err := c.cluster(ctx, c.APIReader, t.Cluster); err != nil || cluster != nil {
		return byAccident, err
	}
	return toBeRemoved, nil
}

// namespaceGoes tells whether a namespace of the hub is being deleted.
func (c *Controller) namespaceGoes(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := c.APIReader.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if err != nil {
		return false, fmt.Errorf("read namespace %s to tell whether a binding was deleted with it: %w", name, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

func isDeleted(p placementv1.ParentObject) bool {
	return p != nil && !p.GetDeletionTimestamp().IsZero()
}

// meantBy is what a deleted placement wants; nil is one that is gone, which cannot be asked.
func meantBy(p placementv1.ParentObject) meant {
	if p != nil && p.Abandons() {
		return toBeLeft
	}
	return toBeRemoved
}

// placement reads the placement that a binding was made for; nil where it is gone.
func (c *Controller) placement(ctx context.Context, r client.Reader, t render.Target) (placementv1.ParentObject, error) {
	p := c.Carriage.NewParent()
	switch err := r.Get(ctx, t.Placement, p); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // that it is gone is an answer
	case err != nil:
		return nil, fmt.Errorf("read placement %s to tell whether binding %s was deleted with it: %w", t.Placement, t.Binding, err)
	case string(p.GetUID()) != t.PlacementUID:
		return nil, nil //nolint:nilnil // another one has its name, so it is gone
	}
	return p, nil
}

// release lets a binding go.
func (c *Controller) release(ctx context.Context, b placementv1.BindingObject) error {
	before, ok := b.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy binding %s: a %T is no object", b.GetName(), b)
	}
	controllerutil.RemoveFinalizer(b, placementv1.FinalizerWorkCleanup)
	err := c.Client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from binding %s: %w", b.GetName(), err)
	}
	c.Tracker.Forget(b.GetUID())
	c.patience.forget(b.GetUID())
	return nil
}

// removalStatus says what a deleted binding waits for.
func removalStatus(o observed, why meant) placementv1.ResourceBindingStatus {
	does := "remove"
	if why == toBeLeft {
		does = "let go of"
	}
	status := *o.binding.BindingStatus().DeepCopy()
	status.FailedPlacements, status.DriftedPlacements, status.DiffedPlacements = nil, nil, nil
	message := fmt.Sprintf("Being removed since %s: waiting for the agent of cluster %q to %s what was placed there",
		o.binding.GetDeletionTimestamp().UTC().Format(time.RFC3339), o.binding.BindingSpec().TargetCluster, does)
	for _, w := range o.works {
		if removed := current(w, placementv1.ConditionRemoved); removed != nil && removed.Status == metav1.ConditionFalse {
			message += fmt.Sprintf("; work object %s: %s", w.Name, placement.Quote(removed.Message))
			break
		}
	}
	w := conditionWriter{status: &status, generation: o.binding.GetGeneration(), now: metav1.NewTime(o.now)}
	w.set(placementv1.ConditionWorkSynchronized, metav1.ConditionFalse, placementv1.ReasonWorkNotSynchronizedYet, message+trouble(o.cluster))
	w.remove(placementv1.ConditionApplied, placementv1.ConditionAvailable, placementv1.ConditionDiffReported)
	return status
}

// liveWorks counts the binding's Works by asking the API server. Those that somebody took the labels off, by which the cache
// finds them, are given them again.
func (c *Controller) liveWorks(ctx context.Context, t render.Target) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementv1.GroupVersion.WithKind("WorkList"))
	if err := c.APIReader.List(ctx, list, client.InNamespace(placement.MemberNamespace(t.Cluster))); err != nil {
		return 0, fmt.Errorf("list the Works of binding %s: %w", t.Binding, err)
	}
	count := 0
	for i := range list.Items {
		w := &list.Items[i]
		if !t.Made(w) {
			continue
		}
		count++
		if err := c.mark(ctx, t, w); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// mark gives a Work the labels again that somebody took off it, by which it is found.
func (c *Controller) mark(ctx context.Context, t render.Target, w client.Object) error {
	before, ok := w.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy Work %s: a %T is no object", w.GetName(), w)
	}
	if !t.Mark(w) {
		return nil
	}
	err := c.Client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("put the labels of Work %s/%s back: %w", w.GetNamespace(), w.GetName(), err)
	}
	return nil
}

// removeWork takes away a Work that is not wanted any more, a step at each pass: it says that the removal is meant, deletes
// the Work, and lets it go when the agent has answered. What the hub knows of the cluster is read live: to remove what a
// leaving cluster is to keep could not be made good.
func (c *Controller) removeWork(ctx context.Context, t render.Target, w *placementv1.Work, why meant) error {
	if !w.DeletionTimestamp.IsZero() && isConfirmed(w) {
		if hasAnswered(w) {
			return c.lift(ctx, w)
		}
		if cluster, err := c.cluster(ctx, c.Client, t.Cluster); err != nil || cluster != nil {
			return err // the agent's answer, or the cluster's going, brings the next pass
		}
	}
	cluster, err := c.cluster(ctx, c.APIReader, t.Cluster)
	switch {
	case err != nil:
		return err
	case cluster == nil:
		return c.abandon(ctx, w)
	case cluster.Leaving:
		return nil
	}
	if !isConfirmed(w) {
		if err := c.confirm(ctx, w, why); err != nil {
			return err
		}
	}
	return c.deleteWork(ctx, w)
}

// confirm says on a Work that its removal is meant, and how.
func (c *Controller) confirm(ctx context.Context, w *placementv1.Work, why meant) error {
	before := w.DeepCopy()
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, placementv1.AnnotationRemovalConfirmed, string(why))
	err := c.Client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("confirm the removal of Work %s/%s: %w", w.Namespace, w.Name, err)
	}
	c.Tracker.Wrote(w)
	return nil
}

// deleteWork deletes a Work, unless it is being deleted.
func (c *Controller) deleteWork(ctx context.Context, w *placementv1.Work) error {
	if !w.DeletionTimestamp.IsZero() || c.deleted.Has(w.UID, c.Clock.Now()) {
		return nil
	}
	c.deleted.Add(w.UID, c.Clock.Now())
	err := c.Client.Delete(ctx, w, client.Preconditions{UID: ptr.To(w.UID)})
	if err != nil {
		c.deleted.Remove(w.UID)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Work %s/%s: %w", w.Namespace, w.Name, err)
	}
	return nil
}

// abandon takes away a Work of a cluster that is no member any more: nobody answers for it. Should an agent still see it,
// it finds no confirmation and removes nothing.
func (c *Controller) abandon(ctx context.Context, w *placementv1.Work) error {
	if w.DeletionTimestamp.IsZero() {
		return c.deleteWork(ctx, w)
	}
	return c.liftNow(ctx, w)
}

// lift lets a deleted Work go if its agent has answered for it.
func (c *Controller) lift(ctx context.Context, w *placementv1.Work) error {
	if !hasAnswered(w) {
		return nil
	}
	return c.liftNow(ctx, w)
}

func (c *Controller) liftNow(ctx context.Context, w *placementv1.Work) error {
	if !controllerutil.ContainsFinalizer(w, placementv1.FinalizerWorkCleanup) || c.lifted.Has(w.UID, c.Clock.Now()) {
		return nil
	}
	c.lifted.Add(w.UID, c.Clock.Now())
	before := w.DeepCopy()
	controllerutil.RemoveFinalizer(w, placementv1.FinalizerWorkCleanup)
	err := c.Client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		c.lifted.Remove(w.UID)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from Work %s/%s: %w", w.Namespace, w.Name, err)
	}
	return nil
}

func isConfirmed(w *placementv1.Work) bool {
	said := meant(w.Annotations[placementv1.AnnotationRemovalConfirmed])
	return said == toBeRemoved || said == toBeLeft
}

// hasAnswered tells whether the agent has done what the Work's deletion asks of it. That it left everything alone is no
// answer to a removal that was confirmed later.
func hasAnswered(w *placementv1.Work) bool {
	removed := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionRemoved)
	return removed != nil && removed.Status == metav1.ConditionTrue && removed.ObservedGeneration == w.Generation &&
		(!isConfirmed(w) || removed.Reason != placementv1.ReasonRemovalNotConfirmed)
}

// releaseLeftOver lets Works go whose binding is not there and which somebody has deleted, once their agents have answered.
// Works that nobody deleted are left alone: that a binding cannot be found is no reason to remove anything.
func (c *Controller) releaseLeftOver(ctx context.Context, binding client.ObjectKey) error {
	var list placementv1.WorkList
	if err := c.Client.List(ctx, &list, client.MatchingFields{byBinding(c.Carriage): binding.Name}); err != nil {
		return fmt.Errorf("list the Works of binding %s: %w", binding, err)
	}
	for i := range list.Items {
		w := &list.Items[i]
		if w.Labels[placementv1.LabelParentNamespace] != binding.Namespace {
			continue
		}
		if w.DeletionTimestamp.IsZero() {
			log.FromContext(ctx).Info("A Work has lost its binding; it is left as it is", "work", client.ObjectKeyFromObject(w))
			continue
		}
		if err := c.lift(ctx, w); err != nil {
			return err
		}
	}
	return nil
}
