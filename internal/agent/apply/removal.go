package apply

import (
	"context"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// remove removes what a deleted Work has, if the hub meant it.
func (a *Applier) remove(ctx context.Context, work *placementv1.Work) (ctrl.Result, error) {
	p := &pass{Applier: a, work: work, memory: a.remember(work.Name)}
	if work.Annotations[placementv1.AnnotationRemovalConfirmed] != "true" {
		return ctrl.Result{}, p.reportRemoved(ctx, metav1.ConditionTrue, placementv1.ReasonRemovalNotConfirmed,
			"The Work was deleted, but not by the hub's own wish: nothing is removed, and the Work that the hub makes again takes over what is there")
	}
	if answered(work) {
		return ctrl.Result{}, nil
	}
	gone, err := p.removeEverything(ctx)
	if err != nil {
		p.memory.failures++
		if reportErr := p.reportRemoved(ctx, metav1.ConditionFalse, placementv1.ReasonRemovalFailed, err.Error()); reportErr != nil {
			return ctrl.Result{}, reportErr
		}
		return ctrl.Result{RequeueAfter: backoff(p.memory.failures)}, nil
	}
	if !gone {
		p.lookAgain(recheck)
		return ctrl.Result{RequeueAfter: p.again}, p.reportRemoved(ctx, metav1.ConditionFalse, placementv1.ReasonRemovalInProgress,
			"Being deleted: "+few(p.removing))
	}
	reason, message := placementv1.ReasonResourcesRemoved, "Nothing of it is left in the member"
	if len(p.released) > 0 {
		reason, message = placementv1.ReasonResourcesReleased, few(p.released)
	}
	if err := p.reportRemoved(ctx, metav1.ConditionTrue, reason, message); err != nil {
		return ctrl.Result{}, err
	}
	delete(a.memory, work.Name)
	a.watches.set(work.Name, nil)
	return ctrl.Result{}, nil
}

// answered tells whether the hub was told already that all of a Work was removed or released.
func answered(work *placementv1.Work) bool {
	c := meta.FindStatusCondition(work.Status.Conditions, placementv1.ConditionRemoved)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == work.Generation &&
		(c.Reason == placementv1.ReasonResourcesRemoved || c.Reason == placementv1.ReasonResourcesReleased)
}

// removeEverything removes all that the Work has, and then its AppliedWork, and tells whether that is done.
func (p *pass) removeEverything(ctx context.Context) (bool, error) {
	applied, err := p.getAppliedWork(ctx, p.work.Name)
	if err != nil || applied == nil {
		return err == nil, err
	}
	p.owner = applied
	p.watch()
	works, _, err := p.seenAll(ctx)
	if err != nil {
		return false, err
	}
	var mine []placementv1.AppliedResourceMeta
	for _, r := range applied.Status.AppliedResources {
		if key := keyOfID(&r.WorkResourceIdentifier); listedByAnother(works, p.work.Name, key) {
			if err := p.disown(ctx, &r.WorkResourceIdentifier, applied.UID); err != nil {
				return false, err
			}
			p.forget(key)
			continue
		}
		mine = append(mine, r)
	}
	if err := p.removeAll(ctx, mine); err != nil {
		return false, err
	}
	p.releasedBefore()
	if len(p.removing) > 0 || len(p.owner.Status.AppliedResources) > 0 {
		return false, p.record(ctx)
	}
	if err := p.deleteAppliedWork(ctx, applied); err != nil {
		return false, err
	}
	return true, nil
}

// releasedBefore keeps what earlier passes released, so that the last one can still say it.
func (p *pass) releasedBefore() {
	p.memory.released = append(p.memory.released, p.released...)
	p.released = p.memory.released
}

// deleteAppliedWork deletes an AppliedWork that has nothing any more.
func (a *Applier) deleteAppliedWork(ctx context.Context, applied *placementv1.AppliedWork) error {
	err := a.member.Resource(appliedWorks).Delete(ctx, applied.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To(applied.UID)}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete AppliedWork %s: %w", applied.Name, err)
	}
	return a.liftFinalizer(ctx, applied)
}

// few joins the first few texts and says how many more there are.
func few(texts []string) string {
	const most = 5
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}
