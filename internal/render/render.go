// Package render says which Works carry a resource snapshot to a cluster, and what is in them. It does no I/O, and it can
// tell whether a Work is as it should be without its manifests.
package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Target is the binding that Works are made for.
type Target struct {
	// Placement is the placement, or the internal placement of an object, PlacementUID its UID.
	Placement    placement.Key
	PlacementUID string
	// Label is the key of the label that names it; empty is that of placements.
	Label string
	// Binding is the binding's name, Cluster the cluster it is for.
	Binding, Cluster string
	// ApplyStrategy is how the objects are brought into the cluster.
	ApplyStrategy *placementv1.ApplyStrategy
	// ReportBackStrategy is what the cluster reports back of the objects' statuses.
	ReportBackStrategy *placementv1.ReportBackStrategy
	// Overrides are those that the cluster gets.
	Overrides override.Applied
	// Policies stands for what override policies change of the objects in the cluster; empty where they change nothing.
	Policies string
	// Replicas is the cluster's share; nil where the objects are placed as they are.
	Replicas *int32
}

// Revision is a resource snapshot as a whole.
type Revision struct {
	// Index is the snapshot's index.
	Index string
	// Hash stands for the content of all parts.
	Hash string
	// Parts are the names of the snapshot's objects, the master first.
	Parts []string
	// Envelopes are those among its content.
	Envelopes []Envelope
}

// Works returns the Works of a revision, without their manifests: one for each part in its order, and then one for each envelope.
func Works(t Target, r Revision) []*placementv1.Work {
	works := make([]*placementv1.Work, 0, r.count())
	for i := range r.count() {
		part, name := r.place(t, i)
		labels := t.Labels()
		labels[placementv1.LabelParentSnapshotIndex] = r.Index
		annotations := map[string]string{
			placementv1.AnnotationPlacementUID:       t.PlacementUID,
			placementv1.AnnotationParentSnapshotName: r.Parts[part],
			placementv1.AnnotationWorkCount:          strconv.Itoa(r.count()),
			placementv1.AnnotationContentHash:        contentHash(t, r, i),
			placementv1.AnnotationWrittenGeneration:  generation(1), // as it is created
		}
		if t.Replicas != nil {
			annotations[placementv1.AnnotationReplicas] = strconv.Itoa(int(*t.Replicas))
		}
		maps.Copy(annotations, overrideHashes(t.Overrides))
		spec := placementv1.WorkSpec{ApplyStrategy: t.ApplyStrategy.DeepCopy(), ReportBackStrategy: t.ReportBackStrategy.DeepCopy()}
		works = append(works, &placementv1.Work{Spec: spec, ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Namespace:   placement.MemberNamespace(t.Cluster),
			Labels:      labels,
			Annotations: annotations,
			Finalizers:  []string{placementv1.FinalizerWorkCleanup},
		}})
	}
	if len(works) > 0 {
		noteOverrides(works[0], t.Overrides)
	}
	return works
}

// contentHash stands for the manifests of one part, and for all that they are rendered from.
func contentHash(t Target, r Revision, part int) string {
	text := fmt.Appendf(nil, "%s\x00%d\x00%d", r.Hash, part, len(r.Parts)) // an envelope has a number beyond those of the parts
	if !t.Overrides.Empty() {
		text = append(append(text, 0), overridesText(t)...)
	}
	if t.Policies != "" {
		text = fmt.Appendf(text, "\x00policies %s", t.Policies)
	}
	if t.Replicas != nil {
		text = fmt.Appendf(text, "\x00replicas %d", *t.Replicas)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Belongs tells whether an existing Work was made for the target. Another one of its name is nobody's to change but its
// own binding's.
func (t *Target) Belongs(w *placementv1.Work) bool {
	return w.Labels[placementv1.LabelParentBinding] == t.Binding &&
		w.Labels[placementv1.LabelParentNamespace] == t.Placement.Namespace &&
		w.Annotations[placementv1.AnnotationPlacementUID] == t.PlacementUID
}

// Made tells whether a Work in the target's namespace was made for the target, even if somebody has taken off labels that say
// so.
func (t *Target) Made(w metav1.Object) bool {
	binding, labelled := w.GetLabels()[placementv1.LabelParentBinding]
	return w.GetAnnotations()[placementv1.AnnotationPlacementUID] == t.PlacementUID && (!labelled || binding == t.Binding)
}

// ParentLabel is the key of the label that names the parent.
func (t *Target) ParentLabel() string { return cmp.Or(t.Label, placementv1.LabelParentPlacement) }

// Mark puts on a Work the labels by which the target's are found, and tells whether one was missing.
func (t *Target) Mark(w metav1.Object) (missing bool) {
	find := t.Labels()
	if includes(w.GetLabels(), find) {
		return false
	}
	all := maps.Clone(w.GetLabels())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, find)
	w.SetLabels(all)
	return true
}

// Labels are those by which the target's Works are found.
func (t *Target) Labels() map[string]string {
	labels := map[string]string{t.ParentLabel(): t.Placement.Name, placementv1.LabelParentBinding: t.Binding}
	if t.Placement.Namespace != "" {
		labels[placementv1.LabelParentNamespace] = t.Placement.Namespace
	}
	return labels
}

// Same tells whether an existing Work is what is wanted, its manifests included: nobody has changed them since they were
// written. Labels and annotations that others have put on it do not matter; that its removal was once confirmed does.
func Same(existing, wanted *placementv1.Work) bool {
	if !AsWritten(existing) {
		return false
	}
	if _, confirmed := existing.Annotations[placementv1.AnnotationRemovalConfirmed]; confirmed {
		return false
	}
	return existing.Spec.ApplyStrategy.Same(wanted.Spec.ApplyStrategy) && existing.Spec.ReportBackStrategy.Same(wanted.Spec.ReportBackStrategy) &&
		includes(existing.Labels, wanted.Labels) && includes(existing.Annotations, wanted.Annotations, placementv1.AnnotationWrittenGeneration) &&
		slices.Contains(existing.Finalizers, placementv1.FinalizerWorkCleanup)
}

// AsWritten tells whether the spec of a Work is the one that was last written by the hub, by its generation alone.
func AsWritten(w *placementv1.Work) bool {
	return w.Annotations[placementv1.AnnotationWrittenGeneration] == generation(w.Generation)
}

// Carried returns the Works that carry one resource snapshot to the target, all of its parts; nil where those that are
// there, given by name, do not agree on one.
func Carried(t Target, works map[string]*placementv1.Work) []*placementv1.Work {
	first := works[placement.WorkName(t.Placement, 0)]
	if first == nil || !t.Belongs(first) {
		return nil
	}
	count, err := strconv.Atoi(first.Annotations[placementv1.AnnotationWorkCount])
	if err != nil || count < 1 {
		return nil
	}
	all := []*placementv1.Work{first}
	for _, name := range slices.Sorted(maps.Keys(works)) {
		w := works[name]
		if w != first && t.Belongs(w) && w.Annotations[placementv1.AnnotationWorkCount] == first.Annotations[placementv1.AnnotationWorkCount] &&
			w.Labels[placementv1.LabelParentSnapshotIndex] == first.Labels[placementv1.LabelParentSnapshotIndex] {
			all = append(all, w)
		}
	}
	if len(all) != count {
		return nil
	}
	return all
}

// MarkWritten says on a Work, as an API server returned it, that its spec is the one that was last written by the hub.
func MarkWritten(w *placementv1.Work) {
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, placementv1.AnnotationWrittenGeneration, generation(w.Generation))
}

func generation(n int64) string { return strconv.FormatInt(n, 10) }

// next is the generation that an existing Work will most likely have when it is made what is wanted. The API server counts
// it up where the spec changes, which nobody can tell without the manifests.
func next(existing, wanted *placementv1.Work) int64 {
	const hash = placementv1.AnnotationContentHash
	_, marked := existing.Annotations[placementv1.AnnotationWrittenGeneration]
	if existing.Annotations[hash] == wanted.Annotations[hash] && (AsWritten(existing) || !marked) &&
		equality.Semantic.DeepEqual(existing.Spec.ApplyStrategy, wanted.Spec.ApplyStrategy) &&
		equality.Semantic.DeepEqual(existing.Spec.ReportBackStrategy, wanted.Spec.ReportBackStrategy) {
		return existing.Generation
	}
	return existing.Generation + 1
}

func includes(all, some map[string]string, but ...string) bool {
	for k, v := range some {
		if got, ok := all[k]; (!ok || got != v) && !slices.Contains(but, k) {
			return false
		}
	}
	return true
}

// Onto returns the Work to write so that the existing one becomes what is wanted. It carries the version that it was
// decided on, none of the status, and the generation that it will most likely have: see MarkWritten.
func Onto(existing, wanted *placementv1.Work) *placementv1.Work {
	w := &placementv1.Work{ObjectMeta: *existing.ObjectMeta.DeepCopy(), Spec: wanted.Spec}
	if w.Labels == nil {
		w.Labels = map[string]string{}
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	for _, key := range rendered {
		delete(w.Annotations, key)
	}
	maps.Copy(w.Labels, wanted.Labels)
	maps.Copy(w.Annotations, wanted.Annotations)
	w.Annotations[placementv1.AnnotationWrittenGeneration] = generation(next(existing, wanted))
	delete(w.Annotations, placementv1.AnnotationRemovalConfirmed)
	if !slices.Contains(w.Finalizers, placementv1.FinalizerWorkCleanup) {
		w.Finalizers = append(w.Finalizers, placementv1.FinalizerWorkCleanup)
	}
	return w
}

// Fill puts the content of a snapshot part into a Work.
func Fill(w *placementv1.Work, content []placementv1.ResourceContent) {
	w.Spec.Workload.Manifests = content
}
