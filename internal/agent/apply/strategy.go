package apply

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// compares tells whether the strategy asks for more to be looked at than what of an object is ours.
func (p *pass) compares() bool {
	return p.strategy.ReportsOnly() || p.whole() || p.leavesDrift() || p.strategy.WhenToTakeOver != placementv1.WhenToTakeOverTypeAlways
}

// leavesDrift tells whether what was changed in the member is left as it is.
func (p *pass) leavesDrift() bool {
	return p.strategy.WhenToApply == placementv1.WhenToApplyTypeIfNotDrifted
}

// hold leaves an object as it is, on purpose, until it has changed.
func (m *manifest) hold(live *unstructured.Unstructured, reason, format string, args ...any) {
	m.fail(reason, format, args...)
	m.held = drift.Hash(live)
}

// isOurs tells whether the fleet has an object already: it names the AppliedWork, or is recorded there, or it comes over
// from another Work of this cluster.
func (p *pass) isOurs(m *manifest, live *unstructured.Unstructured) bool {
	for _, owner := range live.GetOwnerReferences() {
		if placement.IsAppliedWork(owner) && (owner.Name == p.self.name || p.works[owner.Name] != nil) {
			return true
		}
	}
	return slices.ContainsFunc(p.owner.Status.AppliedResources, func(r placementv1.AppliedResourceMeta) bool {
		return r.UID == live.GetUID() && keyOfID(&r.WorkResourceIdentifier) == m.key
	})
}

// mayWrite decides by the strategy whether an object that exists is written. Where it is not, the manifest says why.
func (w *attempt) mayWrite(ctx context.Context) (bool, error) {
	m, live := w.manifest, w.live
	switch {
	case !w.isOurs(m, live):
		return w.mayTakeOver(ctx)
	case !w.leavesDrift() || live.GetAnnotations()[placementv1.AnnotationSpecHash] != m.hash:
		return true, nil // what the hub has changed is written, whatever somebody did in the member
	}
	found, err := w.compare(ctx)
	if err != nil {
		if !unreachable(err) && !apierrors.IsConflict(err) {
			m.fail(placementv1.ReasonManifestFailedToRunDriftDetection, "Cannot tell whether somebody changed the object in the member (error: %s)", tell(m.key, err))
			return false, nil
		}
		return false, err
	}
	if found.differs() {
		w.foundDrifts(found)
		return false, nil
	}
	return true, nil
}

// foundDrifts leaves an object that somebody changed as it is.
func (w *attempt) foundDrifts(found *comparison) {
	m, reason := w.manifest, placementv1.ReasonManifestFoundDrifts
	if found.degraded {
		reason = placementv1.ReasonManifestFoundDriftsInDegradedMode
	}
	m.hold(w.live, reason, "%s was changed in the member, at %s, and is left as it is, since whenToApply is %s; "+
		"undo that there, or change the object on the hub", m.key, placesOf(found), placementv1.WhenToApplyTypeIfNotDrifted)
	m.drift = found
}

// mayTakeOver decides on an object that was in the member before.
func (w *attempt) mayTakeOver(ctx context.Context) (bool, error) {
	m := w.manifest
	switch w.strategy.WhenToTakeOver {
	case placementv1.WhenToTakeOverTypeNever:
		m.hold(w.live, placementv1.ReasonManifestNotTakenOver,
			"%s is in the member already, and is not taken over, since whenToTakeOver is %s; delete it there, or set whenToTakeOver", m.key, placementv1.WhenToTakeOverTypeNever)
		return false, nil
	case placementv1.WhenToTakeOverTypeIfNoDiff:
		found, err := w.compare(ctx)
		if err != nil {
			return false, err
		}
		if found.differs() {
			m.hold(w.live, placementv1.ReasonManifestFailedToTakeOver,
				"%s is in the member already, and differs from the hub's at %s; it is taken over once it does not, since whenToTakeOver is %s",
				m.key, placesOf(found), placementv1.WhenToTakeOverTypeIfNoDiff)
			m.diff = found
			return false, nil
		}
	case placementv1.WhenToTakeOverTypeAlways:
	}
	return true, nil
}

// placesOf names the first places in which an object differs.
func placesOf(found *comparison) string {
	paths := make([]string, 0, len(found.details))
	for i := range found.details {
		paths = append(paths, found.details[i].Path)
	}
	return few(paths)
}

// detect compares an object that was applied just now, where the strategy asks for what others added to it.
func (w *attempt) detect(ctx context.Context) {
	if !w.whole() {
		return
	}
	m := w.manifest
	w.live = m.live
	found, err := w.compare(ctx)
	switch {
	case err != nil:
		m.undetected = fmt.Sprintf("Applied, but it cannot be told whether somebody changed the object in the member (error: %s)", tell(m.key, err))
	case found.differs() && w.leavesDrift():
		w.foundDrifts(found)
	case found.differs():
		m.drift = found
	}
}

// prepare makes what is to be applied what the strategy asks for.
func (w *attempt) prepare() {
	if !w.leavesDrift() {
		return
	}
	annotations := maps.Clone(w.wanted.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1.AnnotationSpecHash] = w.manifest.hash
	w.wanted.SetAnnotations(annotations)
	if w.live != nil {
		w.wanted.SetResourceVersion(w.live.GetResourceVersion()) // nobody has changed it since it was compared
	}
}

// forces tells whether fields are taken away from others that own them. From nobody but the fleet itself, and from what is
// known of the time before anybody applied anything, they always are.
func (w *attempt) forces() bool {
	if w.strategy.Type != placementv1.ApplyStrategyTypeServerSideApply {
		return true
	}
	if c := w.strategy.ServerSideApplyConfig; c != nil && c.Force {
		return true
	}
	return w.live != nil && !slices.ContainsFunc(w.live.GetManagedFields(), isOthers)
}

// isOthers tells whether an entry is of fields that somebody other than the fleet owns.
func isOthers(e metav1.ManagedFieldsEntry) bool {
	return e.Subresource == "" && e.Manager != placementv1.FieldManager && e.Manager != "before-first-apply"
}

// contest returns an error if a merge would write fields that others own, as an apply that takes nothing away from them
// does. A list is merged as a whole, and so is everybody's who owns something of it.
func (w *attempt) contest(fields map[string]any) error {
	owners := map[string][]string{}
	for _, entry := range w.live.GetManagedFields() {
		if !isOthers(entry) || entry.FieldsV1 == nil {
			continue
		}
		var owned fieldpath.Set
		if err := owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return fmt.Errorf("read which fields %s owns: %w", entry.Manager, err)
		}
		if paths := touched("", fields, &owned); len(paths) > 0 {
			owners[strconv.Quote(entry.Manager)] = append(owners[strconv.Quote(entry.Manager)], paths...)
		}
	}
	if len(owners) == 0 {
		return nil
	}
	return contestedBy(owners)
}

// touched are those fields of a merge patch of which somebody owns something.
func touched(path string, fields map[string]any, owned *fieldpath.Set) []string {
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if path == ".metadata" && name == "ownerReferences" {
			continue // of which each entry is somebody's, and ours is added to them
		}
		element := fieldpath.PathElement{FieldName: &name}
		below := owned.WithPrefix(element)
		if deeper, ok := fields[name].(map[string]any); ok {
			paths = append(paths, touched(path+"."+name, deeper, below)...)
		} else if owned.Members.Has(element) || !below.Empty() {
			paths = append(paths, path+"."+name)
		}
	}
	return paths
}

// contested is the refusal of an apply because others own fields. It is no conflict of two writes at one moment.
type contested struct{ text string }

func (e contested) Error() string { return e.text }

// asContested makes a refusal for others' fields one that says who has which.
func asContested(err error) error {
	fields := map[string][]string{}
	for _, cause := range causes(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields[strings.TrimPrefix(cause.Message, "conflict with ")] = append(fields[strings.TrimPrefix(cause.Message, "conflict with ")], cause.Field)
		}
	}
	if len(fields) == 0 {
		return err
	}
	return contestedBy(fields)
}

// contestedBy says who has which fields.
func contestedBy(fields map[string][]string) error {
	var parts []string
	for _, manager := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, fmt.Sprintf("%s has %s", manager, few(fields[manager])))
	}
	return contested{"others own fields of it: " + strings.Join(parts, "; ") +
		"; let them go, take the fields out of the hub's object, or set serverSideApplyConfig.force"}
}
