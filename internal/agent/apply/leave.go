package apply

import (
	"context"
	"errors"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
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
	var ours []*placementv1.AppliedWork
	names := sets.New[string]()
	for i := range list.Items {
		applied, err := asAppliedWork(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if applied.Spec.WorkNamespace == a.Namespace {
			ours = append(ours, applied)
			names.Insert(applied.Name)
		}
	}
	var failed []error
	for _, applied := range ours {
		// One that cannot be let go holds back no other.
		left, err := a.leaveOne(ctx, applied, workloads, names)
		failed = append(failed, err)
		remaining = append(remaining, left...)
	}
	return remaining, errors.Join(failed...)
}

// leaveOne is Leave, of one AppliedWork. leaving are the names of all that go.
func (a *Applier) leaveOne(ctx context.Context, applied *placementv1.AppliedWork, workloads clusterv1.WorkloadsOnLeave, leaving sets.Set[string]) ([]string, error) {
	stored := applied.Status.AppliedResources
	listed, err := a.workOf(ctx, applied)
	if err == nil {
		err = a.recall(ctx, applied, listed)
	}
	if err != nil {
		return nil, err
	}
	if workloads != clusterv1.WorkloadsRemove {
		if _, err := a.disownAll(ctx, applied); err != nil {
			return nil, err
		}
		a.forget(applied.Name)
		return nil, a.deleteAppliedWork(ctx, applied)
	}
	work := &placementv1.Work{}
	work.Namespace, work.Name = a.Namespace, applied.Name
	p := &pass{Applier: a, work: work, self: &view{name: applied.Name, deleting: true, removal: true}, memory: a.remember(applied.Name), leaving: leaving}
	p.own(applied)
	p.stored = stored
	p.removeAll(ctx, applied.Status.AppliedResources)
	if err := errors.Join(p.refused...); err != nil || len(p.owner.Status.AppliedResources) > 0 {
		if len(p.removing) == 0 {
			p.removing = append(p.removing, "what AppliedWork "+applied.Name+" has")
		}
		written := p.record(ctx)
		if apierrors.IsConflict(written) {
			written = nil // somebody wrote it at the same moment; the next call reads it anew
		}
		return p.removing, errors.Join(err, written)
	}
	a.forget(applied.Name)
	return nil, a.deleteAppliedWork(ctx, applied)
}
