package apply

import (
	"context"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Leave takes the hub's hand off the member: with Keep all that was placed stays and is owned by nobody, with Remove it is
// removed. It names what is not done yet; call it again until nothing is.
func (a *Applier) Leave(ctx context.Context, workloads clusterv1.WorkloadsOnLeave) (remaining []string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active = false
	list, err := a.member.Resource(appliedWorks).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // no definition, so nothing was ever applied
	}
	if err != nil {
		return nil, fmt.Errorf("list AppliedWorks: %w", err)
	}
	for i := range list.Items {
		applied, err := asAppliedWork(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if applied.Spec.WorkNamespace != a.Namespace {
			continue
		}
		left, err := a.leaveOne(ctx, applied, workloads)
		if err != nil {
			return nil, err
		}
		remaining = append(remaining, left...)
	}
	return remaining, nil
}

func (a *Applier) leaveOne(ctx context.Context, applied *placementv1.AppliedWork, workloads clusterv1.WorkloadsOnLeave) ([]string, error) {
	if workloads == clusterv1.WorkloadsRemove {
		work := &placementv1.Work{}
		work.Namespace, work.Name = a.Namespace, applied.Name
		p := &pass{Applier: a, work: work, memory: a.remember(applied.Name), owner: applied}
		if err := p.removeAll(ctx, applied.Status.AppliedResources); err != nil {
			return nil, err
		}
		if len(p.removing) > 0 || len(p.owner.Status.AppliedResources) > 0 {
			return p.removing, p.record(ctx)
		}
		return nil, a.deleteAppliedWork(ctx, applied)
	}
	for i := range applied.Status.AppliedResources {
		if err := a.disown(ctx, &applied.Status.AppliedResources[i].WorkResourceIdentifier, applied.UID); err != nil {
			return nil, err
		}
	}
	return nil, a.deleteAppliedWork(ctx, applied)
}
