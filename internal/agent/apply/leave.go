package apply

import (
	"context"
	"errors"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Leave takes the hub's hand off the member: with Keep all that was placed stays and is owned by nobody, with Remove it is
// removed. It names what is not done yet; call it again until nothing is. From the first call on nothing is applied any
// more, until Activate.
func (a *Applier) Leave(ctx context.Context, workloads clusterv1.WorkloadsOnLeave) (remaining []string, err error) {
	a.gate.Lock() // waits for passes that are under way
	defer a.gate.Unlock()
	a.active = false
	list, err := a.member.Resource(appliedWorks).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // no definition, so nothing is owned by us
	}
	if err != nil {
		return nil, fmt.Errorf("list AppliedWorks: %w", err)
	}
	var failed []error
	for i := range list.Items {
		applied, err := asAppliedWork(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if applied.Spec.WorkNamespace != a.Namespace {
			continue
		}
		// One that cannot be let go holds back no other.
		left, err := a.leaveOne(ctx, applied, workloads)
		failed = append(failed, err)
		remaining = append(remaining, left...)
	}
	return remaining, errors.Join(failed...)
}

func (a *Applier) leaveOne(ctx context.Context, applied *placementv1.AppliedWork, workloads clusterv1.WorkloadsOnLeave) ([]string, error) {
	if workloads != clusterv1.WorkloadsRemove {
		if _, err := a.disownAll(ctx, applied); err != nil {
			return nil, err
		}
		a.forget(applied.Name)
		return nil, a.deleteAppliedWork(ctx, applied)
	}
	work := &placementv1.Work{}
	work.Namespace, work.Name = a.Namespace, applied.Name
	p := &pass{Applier: a, work: work, self: &view{name: applied.Name, deleting: true, removal: true}, memory: a.remember(applied.Name)}
	p.own(applied)
	p.removeAll(ctx, applied.Status.AppliedResources)
	if err := errors.Join(p.refused...); err != nil || len(p.owner.Status.AppliedResources) > 0 {
		if len(p.removing) == 0 {
			p.removing = append(p.removing, "what AppliedWork "+applied.Name+" has")
		}
		return p.removing, errors.Join(err, p.record(ctx))
	}
	a.forget(applied.Name)
	return nil, a.deleteAppliedWork(ctx, applied)
}
