package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	"github.com/fleetwright/fleetwright/internal/agent/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// released is what is known of a Deployment's release when it is about to be written.
type released struct {
	// now tells that Kruise is releasing it.
	now bool
	// decision is on its pod template.
	decision release.Decision
	// guarded tells that a Rollout releases it.
	guarded bool
}

// lookAtRelease finds out, of a Deployment that the member has, how its release stands.
func (w *attempt) lookAtRelease(ctx context.Context) (released, error) {
	key := w.manifest.key
	if key.GroupKind != deployments {
		return released{}, nil
	}
	found, served, err := w.rolloutsNow(ctx, key)
	if err != nil {
		return released{}, err
	}
	placed := w.works.rolloutsOf(key)
	decision := release.Decide(release.Situation{
		Live: w.live, Wanted: w.wanted, Served: served, Rollouts: found, Placed: placed, Incomplete: !w.works.complete(w.self),
	})
	return released{now: release.Releasing(w.live, found), decision: decision, guarded: len(found)+len(placed) > 0}, nil
}

// withhold keeps the pod template what the member has, if another may not be written now, and tells whether it did. What of the
// template is ours stays in what is applied: what an applied object does not say any more is removed from it.
func (w *attempt) withhold(ctx context.Context, d release.Decision) (bool, error) {
	if !d.Withhold {
		return false, nil
	}
	differs, err := w.templateDiffers(ctx)
	if err != nil || !differs {
		return false, err
	}
	template, _, err := unstructured.NestedFieldNoCopy(w.live.Object, "spec", "template")
	if err != nil {
		return false, fmt.Errorf("read the pod template: %w", err)
	}
	w.keepsTemplate = true
	ours, err := owned(w.live, placementv1.FieldManager, template, "spec", "template")
	if err != nil {
		return false, err
	}
	if ours == nil {
		unstructured.RemoveNestedField(w.wanted.Object, "spec", "template")
	} else if err := unstructured.SetNestedField(w.wanted.Object, ours, "spec", "template"); err != nil {
		return false, fmt.Errorf("keep the pod template: %w", err)
	}
	w.keepSpecHash()
	return true, nil
}

// keepSpecHash leaves the mark of what was applied last as it is, since not all of what is wanted now is applied.
func (w *attempt) keepSpecHash() {
	annotations := maps.Clone(w.wanted.GetAnnotations())
	if _, has := annotations[placementv1.AnnotationSpecHash]; !has {
		return
	}
	if before, had := w.live.GetAnnotations()[placementv1.AnnotationSpecHash]; had {
		annotations[placementv1.AnnotationSpecHash] = before
	} else {
		delete(annotations, placementv1.AnnotationSpecHash)
	}
	w.wanted.SetAnnotations(annotations)
}

// templateDiffers tells whether the pod template would become another one. Only the member can tell, which knows its defaults.
func (w *attempt) templateDiffers(ctx context.Context) (bool, error) {
	have, _, _ := unstructured.NestedFieldNoCopy(w.live.Object, "spec", "template")
	would, err := w.rehearseApply(ctx, w.wanted.DeepCopy())
	switch {
	case err == nil:
		want, _, _ := unstructured.NestedFieldNoCopy(would.Object, "spec", "template")
		return !reflect.DeepEqual(have, want), nil
	case hasDuplicates(err), apierrors.IsUnsupportedMediaType(err):
		want, _, _ := unstructured.NestedFieldNoCopy(w.wanted.Object, "spec", "template")
		return len(drift.Compare(onlyTemplate(have), onlyTemplate(want), onlyTemplate(want), true)) > 0, nil
	case replaced(err):
		return false, apierrors.NewConflict(w.manifest.gvr.GroupResource(), w.manifest.id.Name, err)
	default:
		return false, err
	}
}

func onlyTemplate(template any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": template}}}
}

// sayWithheld says of an object that is applied but for its pod template what that waits for.
func (m *manifest) sayWithheld(d release.Decision) {
	reason := placementv1.ReasonManifestWaitingForRollout
	if d.Missing {
		reason = placementv1.ReasonManifestRolloutMissing
	}
	m.fail(reason, "All but the pod template is applied, which waits: %s", d.Why)
}

// owned is that part of a value, at a path of an object, of which a manager has applied the fields; nil where there is none.
func owned(o *unstructured.Unstructured, manager string, value any, path ...string) (any, error) {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != "Apply" || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("read which fields %s owns: %w", manager, err)
		}
		for _, name := range path {
			below, ok := fields["f:"+name].(map[string]any)
			if !ok {
				return nil, nil //nolint:nilnil // nothing of it is owned
			}
			fields = below
		}
		return ownedPart(value, fields), nil
	}
	return nil, nil //nolint:nilnil // nothing of it is owned
}
