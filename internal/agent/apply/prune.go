package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

const (
	// grace is how long an object that one Work gives up stays, for another to take it over: the Works of two placements
	// may arrive in either order.
	grace = 2 * time.Second
	// recheck is when to look again at what no watch tells of.
	recheck = 2 * time.Second
)

// parting is what becomes, for now, of an object that a Work does not list any more.
type parting int

const (
	partLater  parting = iota // not all is known yet
	partHand                  // another Work has it, or will have it
	partRemove                // nobody wants it
)

// partingOf decides on an object that a Work gives up and that was first seen to be unwanted at a time. It is handed over
// where another Work wants it. Before it is removed, all Works that carry the snapshot must have been seen, since one of
// them may list it, and a moment must have passed.
func partingOf(key objectKey, self *view, all works, since, now time.Time) (parting, time.Duration) {
	if all.other(self.name, key) != nil {
		return partHand, 0
	}
	if rest := grace - now.Sub(since); rest > 0 {
		return partLater, rest
	}
	if !settled(self, all) {
		return partLater, 0
	}
	return partRemove, 0
}

// settled tells whether all Works that carry the snapshot are there. For a Work that goes, that is the snapshot of the Works
// beside it that stay; where none does, there is nothing to wait for.
func settled(self *view, all works) bool {
	if !self.deleting {
		return all.complete(self)
	}
	for name, o := range all {
		if name != self.name && o.binding == self.binding && !o.deleting && !all.complete(o) {
			return false
		}
	}
	return true
}

// prune gives up what the Work does not list any more. What it still has afterwards stays recorded.
func (p *pass) prune(ctx context.Context) {
	listed := map[objectKey]bool{}
	for _, m := range p.manifests {
		if m.key.name == "" {
			return // an object that cannot be told apart may be the very one
		}
		listed[m.key] = true
	}
	held, all := heldBy(p.work)
	if all {
		return
	}
	for _, key := range held {
		listed[key] = true
	}
	var unwanted []placementv1.AppliedResourceMeta
	for _, r := range p.owner.Status.AppliedResources {
		if !listed[keyOfID(&r.WorkResourceIdentifier)] {
			unwanted = append(unwanted, r)
		}
	}
	p.part(ctx, unwanted)
	for key := range p.memory.unwanted {
		if listed[key] {
			delete(p.memory.unwanted, key)
			delete(p.memory.strangers, key)
		}
	}
}

// heldBy returns the objects that a Work does not list and that stay as they are all the same: the hub could not tell what they
// are to be. all says that nothing may be given up. A list that cannot be read gives up nothing.
func heldBy(work *placementv1.Work) (keys []objectKey, all bool) {
	text := work.Annotations[placementv1.AnnotationHeldObjects]
	if text == "" {
		return nil, false
	}
	var held []placementv1.ResourceIdentifier
	if text == placementv1.HeldAll || json.Unmarshal([]byte(text), &held) != nil {
		return nil, true
	}
	for _, id := range held {
		keys = append(keys, objectKey{GroupKind: schema.GroupKind{Group: id.Group, Kind: id.Kind}, namespace: id.Namespace, name: id.Name})
	}
	return keys, false
}

// part parts with objects: hands them over, removes them, or waits until it may.
func (p *pass) part(ctx context.Context, unwanted []placementv1.AppliedResourceMeta) {
	now := p.Clock.Now()
	var ripe []placementv1.AppliedResourceMeta
	for _, r := range unwanted {
		key := keyOfID(&r.WorkResourceIdentifier)
		if _, noticed := p.memory.unwanted[key]; !noticed {
			p.memory.unwanted[key] = now
		}
		switch what, rest := partingOf(key, p.self, p.works, p.memory.unwanted[key], now); what {
		case partHand:
			p.refuse(p.removeObject(ctx, &r, true))
		case partRemove:
			ripe = append(ripe, r)
		default:
			p.waits.works = true
			if rest > 0 {
				p.lookAgain(rest)
			} else {
				p.incomplete = true
			}
		}
	}
	p.removeAll(ctx, ripe)
}

// refuse takes note of an error that keeps an object from being given up.
func (p *pass) refuse(err error) {
	if err != nil {
		p.refused = append(p.refused, err)
	}
}

// removeAll removes objects, those that were applied last first. A wave waits until the one before it is gone: what runs
// the finalizers of a wave may be in the next one.
func (p *pass) removeAll(ctx context.Context, records []placementv1.AppliedResourceMeta) {
	for wave := lastWave; wave >= 0; wave-- {
		for i := range records {
			if gvr, _ := resourceOf(&records[i].WorkResourceIdentifier); waveOf(gvr.GroupResource()) == wave {
				p.refuse(p.removeObject(ctx, &records[i], false))
			}
		}
		if len(p.removing) > 0 || len(p.refused) > 0 {
			return
		}
	}
}

// removeObject gives up one object: removes it, or leaves it to whom it belongs. With handOnly it does nothing but that.
func (p *pass) removeObject(ctx context.Context, r *placementv1.AppliedResourceMeta, handOnly bool) error {
	key := keyOfID(&r.WorkResourceIdentifier)
	if _, known := resourceOf(&r.WorkResourceIdentifier); !known {
		p.drop(key)
		return nil
	}
	return discreetly(key, p.giveUp(ctx, r, key, handOnly))
}

// giveUp is removeObject, of an object whose resource is known.
func (p *pass) giveUp(ctx context.Context, r *placementv1.AppliedResourceMeta, key objectKey, handOnly bool) error {
	defer p.locks.hold(key)()
	// Another Work that wants the object may have come since this pass began. If it has not, it cannot take the object over
	// before this is done.
	all, err := p.readWorks(ctx)
	if err != nil {
		return err
	}
	heir := p.heir(all, key)
	if handOnly && heir == nil {
		p.lookAgain(grace)
		return nil
	}
	for range conflicts {
		var done bool
		if done, err = p.tryRemove(ctx, r, heir); !apierrors.IsConflict(err) {
			if done {
				p.drop(key)
			}
			return err
		}
	}
	return err
}

// heir returns another Work that wants an object; nil where none does. When the cluster leaves, no claim counts.
func (p *pass) heir(all works, key objectKey) *view {
	if !p.active {
		return nil
	}
	return all.other(p.self.name, key)
}

// tryRemove removes an object as it is now, and tells whether its record is needed no longer.
func (p *pass) tryRemove(ctx context.Context, r *placementv1.AppliedResourceMeta, heir *view) (done bool, err error) {
	key := keyOfID(&r.WorkResourceIdentifier)
	client, live, err := p.readRecorded(ctx, &r.WorkResourceIdentifier)
	if err != nil || live == nil {
		return err == nil, err
	}
	what, why := fateOf(live, r, p.owner, p.memory.letGo.Has(live.GetUID()))
	switch {
	case what == fateForget:
		return true, nil
	case heir != nil:
		return true, p.handTo(ctx, client, live, heir)
	case what == fateRelease:
		return true, p.release(ctx, client, live, key, why)
	case p.self.abandons:
		return true, p.leave(ctx, client, live)
	case what == fateWait:
		p.removing = append(p.removing, key.String()+waitsFor(live))
		return false, nil
	}
	if why := placement.OwnOfCluster(key.GroupKind, live); why != "" { // whatever the hub asks
		return true, p.release(ctx, client, live, key, why)
	}
	if why, err := p.inRelease(ctx, live, key); err != nil || why != "" {
		if err == nil {
			p.removing = append(p.removing, key.String()+" ("+why+")")
			p.lookAgain(recheck)
		}
		return false, err
	}
	if held, err := p.heldBy(ctx, live, key); err != nil || held.wait != "" {
		if err == nil {
			p.removing = append(p.removing, key.String()+" ("+held.wait+")")
			p.lookAgain(recheck)
		}
		return false, err
	} else if held.forGood != "" {
		return true, p.release(ctx, client, live, key, held.forGood)
	}
	return p.delete(ctx, client, live, key)
}

// delete deletes an object, if it is still the one that was looked at, and tells whether it is gone at once.
func (p *pass) delete(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, key objectKey) (gone bool, err error) {
	uid := live.GetUID()
	err = client.Delete(ctx, key.name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: ptr.To(live.GetResourceVersion())},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if isGone(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", key, err)
	}
	after, err := client.Get(ctx, key.name, metav1.GetOptions{})
	if isGone(err) || (err == nil && after.GetUID() != uid) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", key, err)
	}
	p.removing = append(p.removing, key.String()+waitsFor(after))
	return false, nil
}

// waitsFor says what holds an object that is being deleted.
func waitsFor(o *unstructured.Unstructured) string {
	if held := o.GetFinalizers(); len(held) > 0 {
		return fmt.Sprintf(" (held by finalizer %s)", few(held))
	}
	return ""
}

// release leaves an object in the member, owned by its other owners or by nobody, and says so.
func (p *pass) release(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, key objectKey, why string) error {
	if err := p.leave(ctx, client, live); err != nil {
		return err
	}
	text := key.String() + " stays: " + why
	p.memory.released = append(p.memory.released, text)
	p.event(key, live.GroupVersionKind().Version, corev1.EventTypeWarning, "ResourceReleased", "Release", text)
	return nil
}

// handTo leaves an object to another Work: owned by that one's AppliedWork, if it has one, so that there is no moment in
// which the object is nobody's. What something else owns as well is left for that Work to judge.
func (p *pass) handTo(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, heir *view) error {
	rest := without(live.GetOwnerReferences(), p.owner.Name, p.owner.UID)
	if len(rest) > 0 {
		return p.leave(ctx, client, live)
	}
	next, err := p.getAppliedWork(ctx, heir.name)
	if err != nil {
		return err
	}
	if next == nil || !next.DeletionTimestamp.IsZero() {
		return p.leave(ctx, client, live)
	}
	if _, err := p.setOwners(ctx, client, live, []metav1.OwnerReference{ownerOf(next)}); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// leave takes the AppliedWork off an object, which stays.
func (p *pass) leave(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	rest := without(live.GetOwnerReferences(), p.owner.Name, p.owner.UID)
	if len(rest) == len(live.GetOwnerReferences()) {
		return nil
	}
	if _, err := p.setOwners(ctx, client, live, rest); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// drop drops the record of an object.
func (p *pass) drop(key objectKey) {
	p.owner.Status.AppliedResources = slices.DeleteFunc(slices.Clone(p.owner.Status.AppliedResources), func(r placementv1.AppliedResourceMeta) bool {
		return keyOfID(&r.WorkResourceIdentifier) == key
	})
	delete(p.memory.unwanted, key)
	delete(p.memory.strangers, key)
	delete(p.memory.applied, key)
	p.watches.unset(p.work.Name, key)
}
