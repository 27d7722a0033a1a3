// Package render says which Works carry a resource snapshot to a cluster, and what is in them. It does no I/O, and it can
// tell whether a Work is as it should be without its manifests.
package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Target is the binding that Works are made for.
type Target struct {
	// Placement is the placement, PlacementUID its UID.
	Placement    placement.Key
	PlacementUID string
	// Binding is the binding's name, Cluster the cluster it is for.
	Binding, Cluster string
}

// Revision is a resource snapshot as a whole.
type Revision struct {
	// Index is the snapshot's index.
	Index string
	// Hash stands for the content of all parts.
	Hash string
	// Parts are the names of the snapshot's objects, the master first.
	Parts []string
}

// Works returns the Works of a revision, one for each part in its order, without their manifests.
func Works(t Target, r Revision) []*placementv1.Work {
	works := make([]*placementv1.Work, 0, len(r.Parts))
	for i, part := range r.Parts {
		labels := map[string]string{
			placementv1.LabelParentPlacement:     t.Placement.Name,
			placementv1.LabelParentBinding:       t.Binding,
			placementv1.LabelParentSnapshotIndex: r.Index,
		}
		if t.Placement.Namespace != "" {
			labels[placementv1.LabelParentNamespace] = t.Placement.Namespace
		}
		works = append(works, &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
			Name:      placement.WorkName(t.Placement, i),
			Namespace: placement.MemberNamespace(t.Cluster),
			Labels:    labels,
			Annotations: map[string]string{
				placementv1.AnnotationPlacementUID:       t.PlacementUID,
				placementv1.AnnotationParentSnapshotName: part,
				placementv1.AnnotationWorkCount:          strconv.Itoa(len(r.Parts)),
				placementv1.AnnotationContentHash:        contentHash(r, i),
			},
			Finalizers: []string{placementv1.FinalizerWorkCleanup},
		}})
	}
	return works
}

// contentHash stands for the manifests of one part.
func contentHash(r Revision, part int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", r.Hash, part, len(r.Parts)))
	return hex.EncodeToString(sum[:16])
}

// Belongs tells whether an existing Work was made for the target. Another one of its name is nobody's to change but its
// own binding's.
func (t *Target) Belongs(w *placementv1.Work) bool {
	return w.Labels[placementv1.LabelParentBinding] == t.Binding &&
		w.Labels[placementv1.LabelParentNamespace] == t.Placement.Namespace &&
		w.Annotations[placementv1.AnnotationPlacementUID] == t.PlacementUID
}

// Same tells whether an existing Work is what is wanted, its manifests included. Labels and annotations that others have
// put on it do not matter; that its removal was once confirmed does.
func Same(existing, wanted *placementv1.Work) bool {
	if _, confirmed := existing.Annotations[placementv1.AnnotationRemovalConfirmed]; confirmed {
		return false
	}
	return includes(existing.Labels, wanted.Labels) && includes(existing.Annotations, wanted.Annotations) &&
		slices.Contains(existing.Finalizers, placementv1.FinalizerWorkCleanup)
}

func includes(all, some map[string]string) bool {
	for k, v := range some {
		if got, ok := all[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Onto returns the Work to write so that the existing one becomes what is wanted. It carries the version that it was
// decided on, and none of the status.
func Onto(existing, wanted *placementv1.Work) *placementv1.Work {
	w := &placementv1.Work{ObjectMeta: *existing.ObjectMeta.DeepCopy(), Spec: wanted.Spec}
	if w.Labels == nil {
		w.Labels = map[string]string{}
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	maps.Copy(w.Labels, wanted.Labels)
	maps.Copy(w.Annotations, wanted.Annotations)
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
