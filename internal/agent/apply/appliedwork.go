package apply

import (
	"context"
	"encoding/json"
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

// ensureAppliedWork returns the AppliedWork of the pass, making it where there is none. It returns nil while an old one
// is going: somebody deleted it, or its definition. The garbage collector would take every object with it whose only
// owner it is, so those are let go first, and taken up again by the next one.
func (p *pass) ensureAppliedWork(ctx context.Context) (*placementv1.AppliedWork, error) {
	applied, err := p.getAppliedWork(ctx, p.work.Name)
	if err != nil {
		return nil, err
	}
	if applied == nil {
		return p.createAppliedWork(ctx)
	}
	if applied.DeletionTimestamp.IsZero() {
		return applied, nil
	}
	p.memory.carried = applied.Status.AppliedResources
	clear(p.memory.applied)
	if err := p.letGo(ctx, applied); err != nil {
		return nil, err
	}
	p.lookAgain(recreateAfter)
	return nil, nil //nolint:nilnil // there is none until the old one is gone
}

func (p *pass) createAppliedWork(ctx context.Context) (*placementv1.AppliedWork, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(placementv1.GroupVersion.WithKind("AppliedWork"))
	u.SetName(p.work.Name)
	u.SetFinalizers([]string{placementv1.FinalizerAppliedWork})
	u.Object["spec"] = map[string]any{"workName": p.work.Name, "workNamespace": p.work.Namespace}
	created, err := p.member.Resource(appliedWorks).Create(ctx, u, metav1.CreateOptions{FieldManager: placementv1.FieldManager})
	if apierrors.IsNotFound(err) {
		// The definition was removed. What was applied stays; nothing can be applied before it is back.
		p.memory.failures++
		p.lookAgain(backoff(p.memory.failures))
		return nil, p.reportNothing(ctx, "the member does not serve AppliedWork: install its CustomResourceDefinition again; what was placed stays")
	}
	if err != nil {
		return nil, fmt.Errorf("create AppliedWork %s: %w", p.work.Name, err)
	}
	applied, err := asAppliedWork(created)
	if err != nil {
		return nil, err
	}
	applied.Status.AppliedResources = p.memory.carried
	clear(p.memory.applied) // objects have the old owner yet
	return applied, nil
}

// letGoIfDeleted lets an AppliedWork go that somebody deleted and that has no Work any more, so that it does not hold its
// definition for ever. What it owns stays.
func (a *Applier) letGoIfDeleted(ctx context.Context, name string) error {
	applied, err := a.getAppliedWork(ctx, name)
	if err != nil || applied == nil || applied.DeletionTimestamp.IsZero() || applied.Spec.WorkNamespace != a.Namespace {
		return err
	}
	return a.letGo(ctx, applied)
}

// letGo takes an AppliedWork off all its objects, which stay, and lifts its finalizer.
func (a *Applier) letGo(ctx context.Context, applied *placementv1.AppliedWork) error {
	for i := range applied.Status.AppliedResources {
		if err := a.disown(ctx, &applied.Status.AppliedResources[i].WorkResourceIdentifier, applied.UID); err != nil {
			return err
		}
	}
	return a.liftFinalizer(ctx, applied)
}

func (a *Applier) liftFinalizer(ctx context.Context, applied *placementv1.AppliedWork) error {
	rest := slices.DeleteFunc(slices.Clone(applied.Finalizers), func(f string) bool { return f == placementv1.FinalizerAppliedWork })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": rest, "uid": applied.UID}})
	if err != nil {
		return fmt.Errorf("encode the finalizers of AppliedWork %s: %w", applied.Name, err)
	}
	_, err = a.member.Resource(appliedWorks).Patch(ctx, applied.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: placementv1.FieldManager})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("lift the finalizer of AppliedWork %s: %w", applied.Name, err)
	}
	return nil
}

// disown takes an owner off an object of ours, which stays. An object without that owner is left alone.
func (a *Applier) disown(ctx context.Context, id *placementv1.WorkResourceIdentifier, owner types.UID) error {
	gvr, known := resourceOf(id)
	if !known {
		return nil
	}
	live, err := a.resource(gvr, id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", keyOfID(id), err)
	}
	rest := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(o metav1.OwnerReference) bool { return o.UID == owner })
	if len(rest) == len(live.GetOwnerReferences()) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": rest, "uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(),
	}})
	if err != nil {
		return fmt.Errorf("encode the owners of %s: %w", keyOfID(id), err)
	}
	_, err = a.resource(gvr, id.Namespace).Patch(ctx, id.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: placementv1.FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the owner off %s: %w", keyOfID(id), err)
	}
	return nil
}

// record writes down what the Work has in the member: before an object is made, so that nothing made is ever forgotten,
// and afterwards with its UID.
func (p *pass) record(ctx context.Context) error {
	wanted := p.records()
	if equality.Semantic.DeepEqual(wanted, p.owner.Status.AppliedResources) && len(p.memory.carried) == 0 && !p.forgotten {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"appliedResources": wanted}})
	if err != nil {
		return fmt.Errorf("encode the status of AppliedWork %s: %w", p.owner.Name, err)
	}
	_, err = p.member.Resource(appliedWorks).Patch(ctx, p.owner.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: placementv1.FieldManager}, "status")
	if err != nil {
		return fmt.Errorf("record what AppliedWork %s has: %w", p.owner.Name, err)
	}
	p.owner.Status.AppliedResources, p.memory.carried, p.forgotten = wanted, nil, false
	return nil
}

// records are what the Work has: its manifests in their order, and after them what it still has to give up.
func (p *pass) records() []placementv1.AppliedResourceMeta {
	old := map[objectKey]placementv1.AppliedResourceMeta{}
	for _, r := range p.owner.Status.AppliedResources {
		old[keyOfID(&r.WorkResourceIdentifier)] = r
	}
	var records []placementv1.AppliedResourceMeta
	for _, m := range p.manifests {
		if m.gvr.Resource == "" || m.reason == placementv1.ReasonManifestDuplicated {
			continue
		}
		before, had := old[m.key]
		delete(old, m.key)
		// An object of somebody else's is not recorded: what is not recorded is never removed. One that was ours stays so.
		if m.reason == placementv1.ReasonManifestFailedToTakeOver && !had {
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
		if left, still := old[keyOfID(&r.WorkResourceIdentifier)]; still {
			records = append(records, left)
		}
	}
	return records
}
