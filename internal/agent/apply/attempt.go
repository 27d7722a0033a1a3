package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	// annotationLastApplied records what was applied where that could not be done on the server's side.
	annotationLastApplied = drift.Merged
	// annotationKubectlLastApplied is that of who applies on the client's side: kubectl, and others that work as it does.
	annotationKubectlLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// maxAnnotation is how large our record may be; Kubernetes allows all annotations of an object 256 KiB together.
	maxAnnotation = 200 * 1024
	// rounds is how often fields that the member does not know are dropped. It names a few of them at a time.
	rounds = 50
)

// attempt is one attempt to write one object.
type attempt struct {
	*pass
	manifest *manifest
	client   dynamic.ResourceInterface
	// wanted is what the manifest says; live is what is there, nil where nothing is.
	wanted, live *unstructured.Unstructured
	// dropped are the fields that the member does not know.
	dropped []string
	// keepsTemplate tells that the pod template stays as the member has it.
	keepsTemplate bool
}

// do writes the object, leaves in the manifest what became of it, and returns what is to be said of it. A conflict means
// that somebody else wrote at the same moment: read anew, and decide again.
func (w *attempt) do(ctx context.Context) (note string, err error) {
	w.prepare()
	var r released
	if w.live != nil {
		if r, err = w.leaveToOthers(ctx); err != nil {
			return "", err
		}
	}
	if err := w.apply(ctx); err != nil {
		return "", err
	}
	if err := w.disownOthers(ctx); err != nil {
		return "", err
	}
	if w.keepsTemplate {
		w.manifest.sayWithheld(r.decision)
		return "", nil
	}
	w.detect(ctx)
	if len(w.dropped) == 0 {
		return "", nil
	}
	slices.Sort(w.dropped)
	return "the member does not know, and dropped: " + few(slices.Compact(w.dropped)), nil
}

// leaveToOthers leaves in an object that exists to others what they are in charge of: values that are theirs for the time being, and a pod
// template that may not be replaced now.
func (w *attempt) leaveToOthers(ctx context.Context) (released, error) {
	if err := w.migrate(ctx); err != nil {
		return released{}, err
	}
	r, err := w.lookAtRelease(ctx)
	if err != nil {
		return released{}, err
	}
	w.manifest.kept = kept{held: r.now}
	retained, err := retain(w.wanted, w.live, r.now, func() (bool, error) { return w.autoscaled(ctx) })
	if err != nil {
		return released{}, err
	}
	if retained || r.guarded {
		w.wanted.SetResourceVersion(w.live.GetResourceVersion()) // what was kept, and decided by, must still be true
	}
	_, err = w.withhold(ctx, r.decision)
	return r, err
}

// apply applies the object on the server's side, if it is still the one that was looked at. Fields that the member's schema
// does not know are left out: without them the object is better than none. What cannot be applied so is merged.
func (w *attempt) apply(ctx context.Context) error {
	if w.live != nil {
		w.wanted.SetUID(w.live.GetUID())
	}
	w.wanted.SetOwnerReferences([]metav1.OwnerReference{w.reference()})
	for range rounds {
		data, err := json.Marshal(w.wanted.Object)
		if err != nil {
			return fmt.Errorf("encode the object: %w", err)
		}
		live, err := w.client.Patch(ctx, w.manifest.id.Name, types.ApplyPatchType, data,
			metav1.PatchOptions{FieldManager: placementv1.FieldManager, Force: ptr.To(w.forces()), FieldValidation: metav1.FieldValidationWarn})
		switch {
		case err == nil:
			w.manifest.live = live
			return nil
		case hasDuplicates(err), apierrors.IsUnsupportedMediaType(err):
			return w.merge(ctx)
		case replaced(err):
			return apierrors.NewConflict(w.manifest.gvr.GroupResource(), w.manifest.id.Name, err)
		case apierrors.IsConflict(err):
			return asContested(err)
		case !w.drop(unknownFields(err)):
			return err
		}
	}
	return fmt.Errorf("the member knows too few of the object's fields: %s and more", few(w.dropped))
}

// replaced tells whether a write was refused because the object is another one than it names. An API server says of that,
// where an object of the name exists, that the UID cannot be changed.
func replaced(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// causes are what an API server names as the causes of its refusal.
func causes(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// drop leaves out fields and tells whether there was any.
func (w *attempt) drop(paths []string) bool {
	before := len(w.dropped)
	for _, path := range paths {
		if dropField(w.wanted.Object, path) {
			w.dropped = append(w.dropped, strings.TrimPrefix(path, "."))
		}
	}
	return len(w.dropped) > before
}

func (w *attempt) reference() metav1.OwnerReference { return ownerOf(w.owner) }

// ownerOf is the reference to an AppliedWork as an owner.
func ownerOf(applied *placementv1.AppliedWork) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: placementv1.GroupVersion.String(), Kind: "AppliedWork", Name: applied.Name, UID: applied.UID, BlockOwnerDeletion: ptr.To(true),
	}
}

// disownOthers takes off the object what other AppliedWorks left on it. Those that we applied ourselves are gone by now;
// others' writes, or a merge, may have left one.
func (w *attempt) disownOthers(ctx context.Context) error {
	live := w.manifest.live
	rest := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(o metav1.OwnerReference) bool {
		return placement.IsAppliedWork(o) && o.UID != w.owner.UID
	})
	if len(rest) == len(live.GetOwnerReferences()) {
		return nil
	}
	patched, err := w.setOwners(ctx, w.client, live, rest)
	if err != nil {
		return err
	}
	w.manifest.live = patched
	return nil
}

// setOwners sets an object's owners, if it has not been written since.
func (a *Applier) setOwners(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured, owners []metav1.OwnerReference) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": owners, "uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(),
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the owners: %w", err)
	}
	patched, err := client.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: placementv1.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("set the owners: %w", err)
	}
	return patched, nil
}

// migrate makes ours what was applied on the client's side, so that a field which the hub drops goes away: of an object that
// is taken over what others applied, and of one that is ours already what we merged ourselves, and no more. What somebody
// applies to it later is theirs and stays.
func (w *attempt) migrate(ctx context.Context) error {
	managers := clientSide(w.live)
	switch ours := w.isOurs(w.manifest, w.live); {
	case !ours && w.strategy.WhenToTakeOver == placementv1.WhenToTakeOverTypeIfNoDiff:
		return nil // it was compared without this, and would lose what the manifest does not say
	case ours, !w.forces():
		managers = managers.Intersection(sets.New(placementv1.FieldManager))
	}
	if managers.Len() == 0 {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(w.live, managers, placementv1.FieldManager)
	if err != nil || patch == nil {
		return err
	}
	live, err := w.client.Patch(ctx, w.manifest.id.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: placementv1.FieldManager})
	if err != nil {
		return fmt.Errorf("migrate its field managers: %w", err)
	}
	w.live = live
	if w.wanted.GetResourceVersion() != "" {
		w.wanted.SetResourceVersion(live.GetResourceVersion())
	}
	return nil
}

// clientSide are the field managers that applied an object on the client's side. They are known by the record that they
// keep in it, kubectl and Helm by their names, too.
func clientSide(live *unstructured.Unstructured) sets.Set[string] {
	managers := sets.New[string]()
	entries := live.GetManagedFields()
	for _, annotation := range []string{annotationKubectlLastApplied, annotationLastApplied} {
		if _, has := live.GetAnnotations()[annotation]; !has {
			continue
		}
		record := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", annotation))
		for _, entry := range csaupgrade.FindFieldsOwners(entries, metav1.ManagedFieldsOperationUpdate, record) {
			managers.Insert(entry.Manager)
		}
	}
	for _, entry := range entries {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" &&
			(entry.Manager == "kubectl-client-side-apply" || entry.Manager == "helm") {
			managers.Insert(entry.Manager)
		}
	}
	return managers
}

// autoscaled tells whether a HorizontalPodAutoscaler in the member scales the object. If so, the object is looked at again
// when one of its namespace has changed.
func (w *attempt) autoscaled(ctx context.Context) (bool, error) {
	namespace := w.manifest.id.Namespace
	epoch := w.autoscalers.epoch(namespace) // before they are read: what changes meanwhile is of a later one
	list, err := w.member.Resource(autoscalerResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list the autoscalers of namespace %s: %w", namespace, err)
	}
	scaled := slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool {
		return targets(&o, w.manifest.key.GroupKind, w.manifest.id.Name)
	})
	if scaled {
		w.manifest.kept.scaled, w.manifest.kept.epoch = true, epoch
		w.autoscalers.follow(w.work.Name, namespace, epoch)
	}
	return scaled, nil
}

// merge writes an object that cannot be applied on the server's side, such as one with two entries of one key in a list: by
// what it was told last, what it is told now, and what is there.
func (w *attempt) merge(ctx context.Context) error {
	w.wanted.SetResourceVersion("")
	w.wanted.SetUID("")
	w.wanted.SetOwnerReferences(nil)
	if template, has, err := unstructured.NestedFieldCopy(w.liveObject(), "spec", "template"); w.keepsTemplate && has && err == nil {
		if err := unstructured.SetNestedField(w.wanted.Object, template, "spec", "template"); err != nil { // what a merge does not say is removed
			return fmt.Errorf("keep the pod template: %w", err)
		}
	}
	if err := w.annotate(); err != nil {
		return err
	}
	w.wanted.SetOwnerReferences([]metav1.OwnerReference{w.reference()})
	ctx, said := collect(ctx)
	var err error
	if w.live == nil {
		w.manifest.live, err = w.client.Create(ctx, w.wanted, metav1.CreateOptions{FieldManager: placementv1.FieldManager, FieldValidation: metav1.FieldValidationWarn})
	} else {
		err = w.mergePatch(ctx)
	}
	for _, text := range said.texts {
		if field, unknown := strings.CutPrefix(text, "unknown field "); unknown {
			w.dropped = append(w.dropped, strings.Trim(field, `"`))
		}
	}
	return err
}

// liveObject is the content of what is there.
func (w *attempt) liveObject() map[string]any {
	if w.live == nil {
		return nil
	}
	return w.live.Object
}

// annotate puts what is applied into the object itself, for the next merge. Where it may not stand there, the empty mark
// says that the object was merged.
func (w *attempt) annotate() error {
	data, err := json.Marshal(w.wanted.Object)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	if len(data) > maxAnnotation || w.manifest.key.GroupKind == secrets {
		data = nil
	}
	annotations := w.wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationLastApplied] = string(data)
	w.wanted.SetAnnotations(annotations)
	return nil
}

func (w *attempt) mergePatch(ctx context.Context) error {
	// Owners, and what only this version of the object may get, are set beside the merge.
	owners := slices.DeleteFunc(slices.Clone(w.live.GetOwnerReferences()), placement.IsAppliedWork)
	w.wanted.SetOwnerReferences(append(owners, w.reference()))
	wanted, err := json.Marshal(w.wanted.Object)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	live, err := json.Marshal(w.live.Object)
	if err != nil {
		return fmt.Errorf("encode the object in the member: %w", err)
	}
	before := []byte(w.live.GetAnnotations()[annotationLastApplied])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, wanted, live)
	if err != nil {
		return fmt.Errorf("merge the object: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return fmt.Errorf("read the merged object: %w", err)
	}
	if !w.forces() {
		if err := w.contest(fields); err != nil {
			return err
		}
	}
	metadata, _ := fields["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = w.live.GetUID(), w.live.GetResourceVersion()
	if patch, err = json.Marshal(fields); err != nil {
		return fmt.Errorf("encode the merged object: %w", err)
	}
	w.manifest.live, err = w.client.Patch(ctx, w.manifest.id.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: placementv1.FieldManager, FieldValidation: metav1.FieldValidationWarn})
	return err
}
