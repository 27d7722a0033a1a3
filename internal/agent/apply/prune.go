package apply

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// grace is how long an object that one Work gives up stays, for another to take it over: the two Works of a placement
	// each may arrive in either order.
	grace = 2 * time.Second
	// settling is how long the strangers in a namespace that is to go may take to go themselves.
	settling = 20 * time.Second
	// recheck is when to look again at what no watch tells of.
	recheck = time.Second
)

// namespaces is the kind that takes all that is in it along.
var namespaces = schema.GroupKind{Kind: "Namespace"}

// prune gives up what the Work does not list any more. What it still has afterwards stays recorded.
func (p *pass) prune(ctx context.Context) error {
	wanted := map[objectKey]bool{}
	for _, m := range p.manifests {
		if k := m.key; k.name != "" {
			wanted[k] = true
		}
	}
	for key := range p.memory.unwanted {
		if wanted[key] {
			delete(p.memory.unwanted, key)
		}
	}
	var unwanted []placementv1.AppliedResourceMeta
	for _, r := range p.owner.Status.AppliedResources {
		if !wanted[keyOfID(&r.WorkResourceIdentifier)] {
			unwanted = append(unwanted, r)
		}
	}
	if len(unwanted) == 0 {
		return nil
	}
	if undecoded(p.manifests) {
		return nil // an object that cannot be read may be the very one
	}
	works, complete, err := p.seenAll(ctx)
	if err != nil {
		return err
	}
	now := p.Clock.Now()
	ripe := unwanted[:0:0]
	for _, r := range unwanted {
		key := keyOfID(&r.WorkResourceIdentifier)
		since, noticed := p.memory.unwanted[key]
		if !noticed {
			since = now
			p.memory.unwanted[key] = now
		}
		switch {
		case listedByAnother(works, p.work.Name, key):
			// It is, or will be, handed over in place. Until then nobody owns it, so that it cannot go with us.
			if err := p.disown(ctx, &r.WorkResourceIdentifier, p.owner.UID); err != nil {
				return err
			}
			p.forget(key)
		case !complete:
		case now.Sub(since) < grace:
			p.lookAgain(grace - now.Sub(since))
		default:
			ripe = append(ripe, r)
		}
	}
	return p.removeAll(ctx, ripe)
}

// undecoded tells whether a manifest cannot be told apart from others.
func undecoded(manifests []*manifest) bool {
	return slices.ContainsFunc(manifests, func(m *manifest) bool { return m.key.name == "" })
}

// seenAll returns the Works of the cluster, and whether all of those that carry this Work's snapshot are among them.
func (p *pass) seenAll(ctx context.Context) ([]placementv1.Work, bool, error) {
	var works placementv1.WorkList
	if err := p.hub.List(ctx, &works, client.InNamespace(p.Namespace)); err != nil {
		return nil, false, fmt.Errorf("list Works: %w", err)
	}
	want, err := strconv.Atoi(p.work.Annotations[placementv1.AnnotationWorkCount])
	if err != nil {
		return works.Items, true, nil //nolint:nilerr // a Work that was made without a count stands for itself
	}
	have := 0
	for i := range works.Items {
		w := &works.Items[i]
		if w.Labels[placementv1.LabelParentBinding] == p.work.Labels[placementv1.LabelParentBinding] &&
			w.Labels[placementv1.LabelParentSnapshotIndex] == p.work.Labels[placementv1.LabelParentSnapshotIndex] {
			have++
		}
	}
	return works.Items, have >= want, nil
}

func listedByAnother(works []placementv1.Work, name string, key objectKey) bool {
	return slices.ContainsFunc(works, func(w placementv1.Work) bool {
		return w.Name != name && w.DeletionTimestamp.IsZero() && lists(&w, key)
	})
}

// forget drops the record of an object.
func (p *pass) forget(key objectKey) {
	p.owner.Status.AppliedResources = slices.DeleteFunc(slices.Clone(p.owner.Status.AppliedResources), func(r placementv1.AppliedResourceMeta) bool {
		return keyOfID(&r.WorkResourceIdentifier) == key
	})
	delete(p.memory.unwanted, key)
	delete(p.memory.applied, key)
	p.forgotten = true
}

// removeAll removes objects, those that were applied last first. A wave waits until the one before it is gone.
func (p *pass) removeAll(ctx context.Context, records []placementv1.AppliedResourceMeta) error {
	wave := func(r *placementv1.AppliedResourceMeta) int {
		gvr, _ := resourceOf(&r.WorkResourceIdentifier)
		return waveOf(gvr.GroupResource())
	}
	for w := lastWave; w >= 0; w-- {
		for i := range records {
			if wave(&records[i]) != w {
				continue
			}
			if err := p.removeObject(ctx, &records[i]); err != nil {
				return err
			}
		}
		if len(p.removing) > 0 {
			p.lookAgain(recheck)
			return nil
		}
	}
	return nil
}

// removeObject removes one object, if it is the very one that was recorded, and still ours.
func (p *pass) removeObject(ctx context.Context, r *placementv1.AppliedResourceMeta) error {
	key := keyOfID(&r.WorkResourceIdentifier)
	gvr, known := resourceOf(&r.WorkResourceIdentifier)
	if !known {
		p.forget(key)
		return nil
	}
	live, err := p.resource(gvr, key.namespace).Get(ctx, key.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.forget(key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	mine := slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == p.owner.UID })
	if !mine || (r.UID != "" && r.UID != live.GetUID()) {
		p.forget(key)
		return nil
	}
	if len(live.GetOwnerReferences()) > 1 {
		p.forget(key)
		return p.release(ctx, r, "it has other owners")
	}
	if live.GetDeletionTimestamp() != nil {
		p.removing = append(p.removing, key.String())
		return nil
	}
	if key.GroupKind == namespaces {
		if gone, err := p.clearToRemove(ctx, r, key); err != nil || !gone {
			return err
		}
	}
	err = p.resource(gvr, key.namespace).Delete(ctx, key.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To(live.GetUID())}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	p.removing = append(p.removing, key.String())
	return nil
}

// clearToRemove tells whether a namespace may be deleted. One in which there is anything that was not placed is released
// once that has had its time to go.
func (p *pass) clearToRemove(ctx context.Context, r *placementv1.AppliedResourceMeta, key objectKey) (bool, error) {
	strangers, err := p.strangers(ctx, key.name, p.owner.UID)
	if err != nil {
		return false, err
	}
	if len(strangers) == 0 {
		return true, nil
	}
	since, noticed := p.memory.unwanted[key]
	if !noticed {
		since = p.Clock.Now()
		p.memory.unwanted[key] = since
	}
	if p.Clock.Now().Sub(since) < settling {
		p.removing = append(p.removing, key.String()+" (waits for "+strangers[0]+" to go)")
		return false, nil
	}
	p.forget(key)
	return false, p.release(ctx, r, "there is "+strangers[0]+" in it, which was not placed")
}

// release leaves an object in the member and says so.
func (p *pass) release(ctx context.Context, r *placementv1.AppliedResourceMeta, why string) error {
	p.released = append(p.released, keyOfID(&r.WorkResourceIdentifier).String()+" stays: "+why)
	return p.disown(ctx, &r.WorkResourceIdentifier, p.owner.UID)
}
