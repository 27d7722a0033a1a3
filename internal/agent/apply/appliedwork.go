package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// recreateAfter is when to look whether an AppliedWork that somebody deleted is gone, and can be made again.
const recreateAfter = time.Second

func resourceOf(id *placementv1.WorkResourceIdentifier) (schema.GroupVersionResource, bool) {
	gvr := schema.GroupVersionResource{Group: id.Group, Version: id.Version, Resource: id.Resource}
	return gvr, id.Resource != "" && id.Version != ""
}

func keyOfID(id *placementv1.WorkResourceIdentifier) objectKey {
	return objectKey{GroupKind: schema.GroupKind{Group: id.Group, Kind: id.Kind}, namespace: id.Namespace, name: id.Name}
}

// getAppliedWork reads an AppliedWork; nil where there is none.
func (a *Applier) getAppliedWork(ctx context.Context, name string) (*placementv1.AppliedWork, error) {
	u, err := a.member.Resource(appliedWorks).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read AppliedWork %s: %w", name, err)
	}
	return asAppliedWork(u)
}

func asAppliedWork(u *unstructured.Unstructured) (*placementv1.AppliedWork, error) {
	var applied placementv1.AppliedWork
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &applied); err != nil {
		return nil, fmt.Errorf("read AppliedWork %s: %w", u.GetName(), err)
	}
	return &applied, nil
}

// own makes an AppliedWork the one of the pass. Its status is changed by the pass, stored is what the member has.
func (p *pass) own(applied *placementv1.AppliedWork) {
	p.owner = applied
	p.stored = applied.Status.AppliedResources
}

// ensureAppliedWork finds the AppliedWork of the pass, or makes it. There is none while an old one is going: somebody
// deleted it, or its definition. The garbage collector would take every object with it whose only owner it is, so those are
// let go first, and taken up again by the next one.
func (p *pass) ensureAppliedWork(ctx context.Context) error {
	applied, err := p.getAppliedWork(ctx, p.work.Name)
	if err != nil {
		return err
	}
	if applied == nil {
		return p.createAppliedWork(ctx)
	}
	if applied.DeletionTimestamp.IsZero() {
		p.own(applied)
		if len(applied.Status.AppliedResources) == 0 {
			applied.Status.AppliedResources = p.memory.carried // made by an earlier pass that could not write them down
		}
		return p.adopt(ctx)
	}
	p.memory.carried = applied.Status.AppliedResources
	if err := p.recall(ctx, applied, p.work); err != nil {
		return err
	}
	letGo, err := p.letGo(ctx, applied)
	p.memory.letGo.Insert(letGo...)
	if err != nil {
		return err
	}
	p.lookAgain(recreateAfter)
	return nil
}

func (p *pass) createAppliedWork(ctx context.Context) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(placementv1.GroupVersion.WithKind("AppliedWork"))
	u.SetName(p.work.Name)
	u.SetFinalizers([]string{placementv1.FinalizerAppliedWork})
	if uid := p.work.Annotations[placementv1.AnnotationPlacementUID]; uid != "" {
		u.SetAnnotations(map[string]string{placementv1.AnnotationPlacementUID: uid})
	}
	u.Object["spec"] = map[string]any{"workName": p.work.Name, "workNamespace": p.work.Namespace}
	created, err := p.member.Resource(appliedWorks).Create(ctx, u, metav1.CreateOptions{FieldManager: placementv1.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		// The definition was removed, or is about to be. What was applied stays; nothing can be applied before it is back.
		return p.reportNothing(ctx, "the member does not serve AppliedWork: install its CustomResourceDefinition again; what was placed stays")
	}
	if err != nil {
		return fmt.Errorf("create AppliedWork %s: %w", p.work.Name, err)
	}
	applied, err := asAppliedWork(created)
	if err != nil {
		return err
	}
	p.own(applied)
	applied.Status.AppliedResources = p.memory.carried
	return nil
}

// adopt makes an AppliedWork that is there fit the Work: it may come from a placement of the same name that the hub has
// forgotten, or from a time when the cluster had another name, and somebody may have taken its finalizer off.
func (p *pass) adopt(ctx context.Context) error {
	metadata, patch := map[string]any{}, map[string]any{}
	placement, earlier := p.earlier()
	if earlier {
		if err := p.releaseEarlier(ctx); err != nil {
			return err
		}
	}
	if placement != "" && p.owner.Annotations[placementv1.AnnotationPlacementUID] != placement {
		metadata["annotations"] = map[string]any{placementv1.AnnotationPlacementUID: placement}
	}
	if !slices.Contains(p.owner.Finalizers, placementv1.FinalizerAppliedWork) {
		metadata["finalizers"] = append(slices.Clone(p.owner.Finalizers), placementv1.FinalizerAppliedWork)
	}
	if p.owner.Spec.WorkNamespace != p.work.Namespace || p.owner.Spec.WorkName != p.work.Name {
		patch["spec"] = map[string]any{"workName": p.work.Name, "workNamespace": p.work.Namespace}
	}
	if len(metadata) == 0 && len(patch) == 0 {
		return nil
	}
	metadata["uid"], metadata["resourceVersion"] = p.owner.UID, p.owner.ResourceVersion
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode AppliedWork %s: %w", p.owner.Name, err)
	}
	written, err := p.member.Resource(appliedWorks).Patch(ctx, p.owner.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: placementv1.FieldManager})
	if err != nil {
		return fmt.Errorf("take AppliedWork %s over: %w", p.owner.Name, err)
	}
	p.owner.ResourceVersion = written.GetResourceVersion()
	return nil
}

// earlier returns the UID of the Work's placement, and tells whether the AppliedWork is from an earlier one of that name.
func (p *pass) earlier() (uid string, earlier bool) {
	before, now := p.owner.Annotations[placementv1.AnnotationPlacementUID], p.work.Annotations[placementv1.AnnotationPlacementUID]
	return now, now != "" && before != "" && before != now
}

// releaseEarlier lets go of what an earlier placement of the same name left and this one does not list. Nobody has said
// that it is to be removed. A Work that goes has taken over nothing of it, whatever it lists.
func (p *pass) releaseEarlier(ctx context.Context) error {
	var kept []placementv1.AppliedResourceMeta
	for i := range p.owner.Status.AppliedResources {
		r := &p.owner.Status.AppliedResources[i]
		if !p.self.deleting && p.self.objects[keyOfID(&r.WorkResourceIdentifier)] {
			kept = append(kept, *r)
			continue
		}
		if _, err := p.disown(ctx, r, p.owner); err != nil {
			return err
		}
		p.memory.released = append(p.memory.released, keyOfID(&r.WorkResourceIdentifier).String()+" stays: it is from an earlier placement of this name, which the hub has forgotten")
	}
	p.owner.Status.AppliedResources = kept
	return p.store(ctx, kept)
}

// letGo takes an AppliedWork off all its objects, which stay, and lifts its finalizer. It returns the objects that named it.
func (a *Applier) letGo(ctx context.Context, applied *placementv1.AppliedWork) ([]types.UID, error) {
	letGo, err := a.disownAll(ctx, applied)
	if err != nil {
		return letGo, err
	}
	return letGo, a.liftFinalizer(ctx, applied)
}

// disownAll takes an AppliedWork off all its objects, and returns those that named it. One that cannot be written holds back
// no other.
func (a *Applier) disownAll(ctx context.Context, applied *placementv1.AppliedWork) (disowned []types.UID, err error) {
	var failed []error
	for i := range applied.Status.AppliedResources {
		uid, err := a.disown(ctx, &applied.Status.AppliedResources[i], applied)
		failed = append(failed, err)
		if uid != "" {
			disowned = append(disowned, uid)
		}
	}
	return disowned, errors.Join(failed...)
}

// liftFinalizer lets an AppliedWork go. Finalizers of others stay.
func (a *Applier) liftFinalizer(ctx context.Context, applied *placementv1.AppliedWork) error {
	client := a.member.Resource(appliedWorks)
	var err error
	for range conflicts {
		var live *unstructured.Unstructured
		live, err = client.Get(ctx, applied.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && (live.GetUID() != applied.UID || !slices.Contains(live.GetFinalizers(), placementv1.FinalizerAppliedWork))) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read AppliedWork %s: %w", applied.Name, err)
		}
		rest := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == placementv1.FinalizerAppliedWork })
		live.SetFinalizers(rest)
		if _, err = client.Update(ctx, live, metav1.UpdateOptions{FieldManager: placementv1.FieldManager}); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("lift the finalizer of AppliedWork %s: %w", applied.Name, err)
	}
	return nil
}

// disown takes an AppliedWork off an object of ours, which stays, and returns the object. One without that owner is left
// alone.
func (a *Applier) disown(ctx context.Context, r *placementv1.AppliedResourceMeta, owner *placementv1.AppliedWork) (types.UID, error) {
	key := keyOfID(&r.WorkResourceIdentifier)
	if _, known := resourceOf(&r.WorkResourceIdentifier); !known {
		return "", nil
	}
	uid, err := a.takeOff(ctx, r, key, owner)
	return uid, discreetly(key, err)
}

// takeOff is disown, of an object whose resource is known.
func (a *Applier) takeOff(ctx context.Context, r *placementv1.AppliedResourceMeta, key objectKey, owner *placementv1.AppliedWork) (types.UID, error) {
	defer a.locks.hold(key)()
	var err error
	for range conflicts {
		client, live, failed := a.readRecorded(ctx, &r.WorkResourceIdentifier)
		if failed != nil || live == nil {
			return "", failed
		}
		rest := without(live.GetOwnerReferences(), owner.Name, owner.UID)
		if len(rest) == len(live.GetOwnerReferences()) {
			return "", nil
		}
		_, err = a.setOwners(ctx, client, live, rest)
		if err == nil {
			return live.GetUID(), nil
		}
		if isGone(err) {
			return "", nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return "", fmt.Errorf("take the owner off %s: %w", key, err)
}

// record writes down what the Work has in the member: before an object is made, so that nothing made is ever forgotten,
// and afterwards with its UID.
func (p *pass) record(ctx context.Context) error {
	wanted := p.records()
	if equality.Semantic.DeepEqual(wanted, p.stored) {
		p.memory.carried = nil
		return nil
	}
	if err := p.store(ctx, wanted); err != nil {
		return err
	}
	p.owner.Status.AppliedResources, p.memory.carried = wanted, nil
	return nil
}

// store writes the records into the member, if nobody has written the AppliedWork since it was read: what others write there
// at the same moment must not be lost.
func (p *pass) store(ctx context.Context, records []placementv1.AppliedResourceMeta) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.owner.UID, "resourceVersion": p.owner.ResourceVersion}, "status": map[string]any{"appliedResources": records},
	})
	if err != nil {
		return fmt.Errorf("encode the status of AppliedWork %s: %w", p.owner.Name, err)
	}
	written, err := p.member.Resource(appliedWorks).Patch(ctx, p.owner.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: placementv1.FieldManager}, "status")
	if err != nil {
		return fmt.Errorf("record what AppliedWork %s has: %w", p.owner.Name, err)
	}
	p.owner.ResourceVersion = written.GetResourceVersion()
	p.stored = records
	return nil
}

// records are what the Work has: its manifests in their order, and after them what it still has to give up.
func (p *pass) records() []placementv1.AppliedResourceMeta {
	left := map[objectKey]placementv1.AppliedResourceMeta{}
	for _, r := range p.owner.Status.AppliedResources {
		left[keyOfID(&r.WorkResourceIdentifier)] = r
	}
	var records []placementv1.AppliedResourceMeta
	for _, m := range p.manifests {
		if m.gvr.Resource == "" || m.reason == placementv1.ReasonManifestDuplicated {
			continue
		}
		before, had := left[m.key]
		delete(left, m.key)
		// An object of somebody else's is not recorded: what is not recorded is never removed. One that was ours stays so.
		if (m.reason == placementv1.ReasonManifestFailedToTakeOver || m.reason == placementv1.ReasonManifestNotTakenOver) && before.UID == "" {
			continue
		}
		r := placementv1.AppliedResourceMeta{WorkResourceIdentifier: m.id}
		if had {
			r.UID = before.UID
		}
		if m.live != nil {
			r.UID = m.live.GetUID()
		}
		records = append(records, r)
	}
	for _, r := range p.owner.Status.AppliedResources {
		if l, still := left[keyOfID(&r.WorkResourceIdentifier)]; still {
			records = append(records, l)
		}
	}
	return records
}
