package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// remove removes what a deleted Work has, if the hub meant it.
func (p *pass) remove(ctx context.Context) error {
	if !p.self.removal {
		p.end(false)
		return p.reportRemoved(ctx, metav1.ConditionTrue, placementv1.ReasonRemovalNotConfirmed,
			"The Work was deleted, but not by the hub's own wish: nothing is removed, and the Work that the hub makes again takes over what is there")
	}
	if answered(p.work) {
		p.Applier.forget(p.work.Name)
		return nil
	}
	gone, err := p.removeEverything(ctx)
	if err != nil {
		p.retry = true // each pass over a deleted Work is a try
		p.end(true)
		return p.reportRemoved(ctx, metav1.ConditionFalse, placementv1.ReasonRemovalFailed, err.Error())
	}
	p.end(false)
	if !gone {
		if p.again == 0 {
			p.lookAgain(maxBackoff)
		}
		switch {
		case len(p.removing) > 0:
			return p.reportRemoved(ctx, metav1.ConditionFalse, placementv1.ReasonRemovalInProgress, "Being deleted: "+few(p.removing))
		case p.incomplete:
			return p.reportRemoved(ctx, metav1.ConditionFalse, placementv1.ReasonRemovalInProgress,
				"Nothing is deleted before all Works that carry the placement's snapshot are there: one of them may keep it")
		}
		return nil // the first moment, in which another Work may take something over
	}
	reason, message := placementv1.ReasonResourcesRemoved, "Nothing of it is left in the member"
	if p.self.abandons {
		reason, message = placementv1.ReasonResourcesReleased, "All of it stays in the member, and is the fleet's no more: the placement's deleteStrategy is Abandon"
	}
	if len(p.memory.released) > 0 {
		reason, message = placementv1.ReasonResourcesReleased, few(p.memory.released)
	}
	return p.reportRemoved(ctx, metav1.ConditionTrue, reason, message)
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
	p.own(applied)
	if _, earlier := p.earlier(); earlier {
		if err := p.releaseEarlier(ctx); err != nil {
			return false, err
		}
	}
	p.watch()
	p.part(ctx, applied.Status.AppliedResources)
	err = errors.Join(p.refused...)
	if err != nil || len(p.owner.Status.AppliedResources) > 0 {
		return false, errors.Join(err, p.record(ctx))
	}
	return true, p.deleteAppliedWork(ctx, applied)
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
	return fmt.Sprintf("%s and %d more", strings.Join(slices.Clone(texts[:most]), ", "), len(texts)-most)
}
