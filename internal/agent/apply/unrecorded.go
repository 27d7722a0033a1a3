package apply

import (
	"context"
	"errors"
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recall adds to what an AppliedWork has what is its own in the member and not recorded: a status is easily lost, and with
// an AppliedWork that goes the garbage collector would take all that still names it. Such objects are looked for among those
// that the Work lists, which is nil where the hub does not have it any more. They get no UID, as what may have been made just
// before an agent ended.
func (a *Applier) recall(ctx context.Context, applied *placementv1.AppliedWork, work *placementv1.Work) error {
	if work == nil {
		return nil
	}
	recorded := map[objectKey]bool{}
	for i := range applied.Status.AppliedResources {
		recorded[keyOfID(&applied.Status.AppliedResources[i].WorkResourceIdentifier)] = true
	}
	for _, m := range decode(work) {
		if m.reason != "" || recorded[m.key] {
			continue
		}
		r, err := a.kinds.find(ctx, m.kind())
		if errors.Is(err, errUnknownKind) {
			r, err = a.kinds.served(ctx, m.key.GroupKind)
		}
		if errors.Is(err, errUnknownKind) || (err == nil && r.namespaced == (m.key.namespace == "")) {
			continue // there can be no such object
		}
		if err != nil {
			return fmt.Errorf("find out whether %s belongs to AppliedWork %s: %w", m.key, applied.Name, err)
		}
		m.id.Version, m.id.Resource = r.Version, r.Resource
		_, live, err := a.readRecorded(ctx, &m.id)
		if err != nil {
			return fmt.Errorf("find out whether it belongs to AppliedWork %s: %w", applied.Name, discreetly(m.key, err))
		}
		if live != nil && len(without(live.GetOwnerReferences(), applied.Name, applied.UID)) < len(live.GetOwnerReferences()) {
			applied.Status.AppliedResources = append(applied.Status.AppliedResources, placementv1.AppliedResourceMeta{WorkResourceIdentifier: m.id})
		}
	}
	return nil
}

// workOf returns the Work of an AppliedWork; nil where the hub does not have it.
func (a *Applier) workOf(ctx context.Context, applied *placementv1.AppliedWork) (*placementv1.Work, error) {
	work := &placementv1.Work{}
	err := a.hub.Get(ctx, a.request(applied.Name).NamespacedName, work, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read Work %s: %w", applied.Name, err)
	}
	return work, nil
}
