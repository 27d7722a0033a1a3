package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"
)

// clientSideManagers are the names under which kubectl owns what it applied on the client's side. When an object is taken
// over, what they own becomes ours, so that a field which the hub drops goes away.
var clientSideManagers = sets.New("kubectl-client-side-apply", "kubectl", "before-first-apply", "kubectl-create")

// appliedState is what an object was when it was last applied.
type appliedState struct {
	// manifest is a hash of what was applied, owner included.
	manifest string
	// content is a hash of the object as the member had it afterwards, without its status.
	content string
	// note is what was said of it then.
	note string
}

// applyObject applies one object and returns what it is then; nil where that failed.
func (p *pass) applyObject(ctx context.Context, m *manifest) *appliedState {
	p.own(m.object)
	wanted := hashOf(m.object.Object)
	last, appliedBefore := p.memory.applied[m.key]
	if appliedBefore && last.manifest == wanted {
		if seen := p.watches.get(m.gvr, m.key); seen != nil && contentHash(seen) == last.content {
			m.live, m.note = seen, last.note
			return &last
		}
	}
	if !appliedBefore || last.manifest != wanted {
		if !p.mayApply(ctx, m) {
			return nil
		}
	}
	live, warnings, err := p.serverSideApply(ctx, m)
	if err != nil {
		m.fail(placementv1.ReasonManifestApplyFailed, "Failed to apply the manifest (error: %s)", tell(m, err))
		return nil
	}
	m.live = live
	m.note = warnings
	return &appliedState{manifest: wanted, content: contentHash(live), note: warnings}
}

// own names the AppliedWork as the owner of an object.
func (p *pass) own(o *unstructured.Unstructured) {
	o.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: placementv1.GroupVersion.String(), Kind: "AppliedWork", Name: p.owner.Name, UID: p.owner.UID, BlockOwnerDeletion: ptr.To(true),
	}})
}

// mayApply looks whether an object may be made or taken over, and prepares that.
func (p *pass) mayApply(ctx context.Context, m *manifest) bool {
	live, err := p.resource(m.gvr, m.id.Namespace).Get(ctx, m.id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true
	}
	if err != nil {
		m.fail(placementv1.ReasonManifestFailedToFindObject, "Failed to look for the object in the member (error: %s)", tell(m, err))
		return false
	}
	mine := false
	for _, owner := range live.GetOwnerReferences() {
		switch {
		case owner.UID == p.owner.UID:
			mine = true
		case !isAppliedWork(owner):
			m.fail(placementv1.ReasonManifestFailedToTakeOver,
				"%s exists in the member and is owned by %s %s; remove that owner or place the object under another name", m.key, owner.Kind, owner.Name)
			return false
		default:
			if holder := p.holder(ctx, owner, m.key); holder != "" {
				m.fail(placementv1.ReasonManifestFailedToTakeOver,
					"%s is placed by %s already; let one placement select it", m.key, holder)
				return false
			}
		}
	}
	if !mine {
		if err := p.takeOver(ctx, m, live); err != nil {
			m.fail(placementv1.ReasonManifestApplyFailed, "Failed to take the object over (error: %s)", tell(m, err))
			return false
		}
	}
	return true
}

// holder names the placement whose Work keeps an object; "" where none does, and it may be handed over in place.
func (p *pass) holder(ctx context.Context, owner metav1.OwnerReference, key objectKey) string {
	if owner.Name == p.work.Name {
		return "" // an earlier AppliedWork of this Work
	}
	other := &placementv1.Work{}
	if err := p.hub.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}, other); err != nil {
		if apierrors.IsNotFound(err) {
			return "" // nobody asks for it any more
		}
		return "another placement (its Work " + owner.Name + " cannot be read)"
	}
	if !other.DeletionTimestamp.IsZero() || !lists(other, key) {
		return ""
	}
	return fmt.Sprintf("placement %q", other.Labels[placementv1.LabelParentPlacement])
}

// lists tells whether a Work has an object.
func lists(work *placementv1.Work, key objectKey) bool {
	for i := range work.Spec.Workload.Manifests {
		if k, ok := keyOf(work.Spec.Workload.Manifests[i].Raw); ok && k == key {
			return true
		}
	}
	return false
}

// takeOver makes ours what kubectl owns of an object that it applied on the client's side.
func (p *pass) takeOver(ctx context.Context, m *manifest, live *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, clientSideManagers, placementv1.FieldManager)
	if err != nil {
		return fmt.Errorf("migrate its field managers: %w", err)
	}
	if patch == nil {
		return nil
	}
	_, err = p.resource(m.gvr, m.id.Namespace).Patch(ctx, m.id.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: placementv1.FieldManager})
	if err != nil {
		return fmt.Errorf("migrate its field managers: %w", err)
	}
	return nil
}

// serverSideApply applies an object. It returns the object as the member then has it, and what the member's schema did not
// know of it.
func (p *pass) serverSideApply(ctx context.Context, m *manifest) (*unstructured.Unstructured, string, error) {
	data, err := json.Marshal(m.object.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encode the object: %w", err)
	}
	live, err := p.resource(m.gvr, m.id.Namespace).Patch(ctx, m.id.Name, types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: placementv1.FieldManager, Force: ptr.To(true), FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return live, "", nil
	}
	unknown := unknownFields(err)
	if unknown == "" {
		return nil, "", err
	}
	// The member's schema is older, or other, than the hub's. Without those fields the object is better than none.
	live, err = p.resource(m.gvr, m.id.Namespace).Patch(ctx, m.id.Name, types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: placementv1.FieldManager, Force: ptr.To(true), FieldValidation: metav1.FieldValidationIgnore})
	if err != nil {
		return nil, "", err
	}
	return live, unknown, nil
}

// unknownFields says which fields a strict API server refused because it does not know them; "" for any other error.
func unknownFields(err error) string {
	if !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) && !strings.Contains(err.Error(), "field not declared in schema") {
		return ""
	}
	text := err.Error()
	for _, mark := range []string{"strict decoding error: ", "field not declared in schema"} {
		if at := strings.Index(text, mark); at >= 0 {
			if mark == "field not declared in schema" {
				return text
			}
			return text[at+len(mark):]
		}
	}
	return ""
}

// tell is the member's own error, for a person. That of a Secret is reduced to its reason and its fields, since a message
// may quote values.
func tell(m *manifest, err error) string {
	if m.id.Kind != "Secret" || m.id.Group != "" {
		return err.Error()
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "the member did not answer"
	}
	text := string(status.Status().Reason)
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			text += ", " + string(cause.Type) + " " + cause.Field
		}
	}
	return text + " (values are not shown)"
}

// contentHash stands for all of an object that people and controllers set: not its status, nor what the API server counts.
func contentHash(o *unstructured.Unstructured) string {
	content := map[string]any{}
	for k, v := range o.Object {
		if k != "status" && k != "metadata" {
			content[k] = v
		}
	}
	owners := make([]any, 0, 1)
	for _, owner := range o.GetOwnerReferences() {
		owners = append(owners, string(owner.UID))
	}
	content["metadata"] = map[string]any{
		"labels": o.GetLabels(), "annotations": o.GetAnnotations(), "uid": string(o.GetUID()), "owners": owners,
		"deleting": o.GetDeletionTimestamp() != nil,
	}
	return hashOf(content)
}

func hashOf(content map[string]any) string {
	data, err := json.Marshal(content)
	if err != nil {
		return "" // matches nothing that was applied: the object is applied once more
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
