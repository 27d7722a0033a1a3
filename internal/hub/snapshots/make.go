package snapshots

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/override/policy"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// make makes a revision: its parts, then, when no other is labelled as the latest, its master. made is false where
// somebody else has taken the index meanwhile.
func (s *Store) make(ctx context.Context, p placementv1.ParentObject, stock *stock, hash string, objects []snapshot.Object) (index int, made bool, err error) {
	parts := snapshot.Split(objects)
	if index = s.unfinished(stock, hash); index < 0 {
		if index, err = s.next(ctx, p, stock); err != nil {
			return 0, false, err
		}
	}
	owner, err := s.owner(p)
	if err != nil {
		return 0, false, err
	}
	for sub, part := range parts[1:] {
		o := s.object(p, owner, index, part)
		o.SetName(placement.ResourceSnapshotPartName(p.GetName(), index, sub))
		o.SetAnnotations(map[string]string{
			placementv1.AnnotationPlacementUID:     string(p.GetUID()),
			placementv1.AnnotationPartOf:           hash,
			placementv1.AnnotationSnapshotSubindex: strconv.Itoa(sub),
		})
		if ok, err := s.createPart(ctx, p, o, hash); err != nil || !ok {
			return index, false, err
		}
	}
	if err := s.relabel(ctx, stock, ""); err != nil {
		return index, false, err
	}
	envelopes := snapshot.Envelopes(parts)
	master := s.object(p, owner, index, parts[0])
	master.SetName(placement.ResourceSnapshotName(p.GetName(), index))
	if s.labelsLatest() {
		master.GetLabels()[placementv1.LabelIsLatestSnapshot] = "true"
	}
	master.SetAnnotations(map[string]string{
		placementv1.AnnotationPlacementUID:  string(p.GetUID()),
		placementv1.AnnotationResourceHash:  hash,
		placementv1.AnnotationSnapshotCount: strconv.Itoa(len(parts)),
		placementv1.AnnotationEnvelopeCount: strconv.Itoa(len(envelopes)),
	})
	if !s.labelsLatest() {
		if text := policy.Describe(contentsOf(objects)); text != "" {
			master.GetAnnotations()[policyv1alpha1.AnnotationObjects] = text
		}
	}
	if len(envelopes) > 0 {
		master.GetAnnotations()[placementv1.AnnotationEnvelopes] = strings.Join(envelopes, ",")
	}
	switch err := s.Client.Create(ctx, master); {
	case apierrors.IsAlreadyExists(err):
		_, err := s.there(ctx, p, master)
		return index, false, err
	case err != nil:
		return index, false, fmt.Errorf("create %s %s: %w", s.Carriage.ResourceSnapshot, master.GetName(), err)
	}
	return index, true, nil
}

// contentsOf are objects as JSON.
func contentsOf(objects []snapshot.Object) [][]byte {
	contents := make([][]byte, len(objects))
	for i := range objects {
		contents[i] = objects[i].Content
	}
	return contents
}

// createPart creates a part of a revision, or finds that it was created earlier. ok is false where its name is taken by
// a part of something else.
func (s *Store) createPart(ctx context.Context, p placementv1.ParentObject, o placementv1.ResourceSnapshotObject, hash string) (ok bool, err error) {
	err = s.Client.Create(ctx, o)
	if err == nil {
		return true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("create %s %s: %w", s.Carriage.ResourceSnapshot, o.GetName(), err)
	}
	there, err := s.there(ctx, p, o)
	if there == nil || err != nil {
		return false, err
	}
	return there.GetAnnotations()[placementv1.AnnotationPartOf] == hash && BelongsTo(there, p), nil
}

// there reads live the object that has the name of one that was to be made; nil if it is gone again. Without the labels
// by which revisions are found it would be in the way for ever: if it is the placement's own, it gets them back, and else
// the error names it.
func (s *Store) there(ctx context.Context, p placementv1.ParentObject, wanted placementv1.ResourceSnapshotObject) (*metav1.PartialObjectMetadata, error) {
	kind, err := s.snapshotKind()
	if err != nil {
		return nil, err
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(kind)
	switch err := s.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), there); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is an answer, not an error
	case err != nil:
		return nil, fmt.Errorf("read %s %s, which exists already: %w", s.Carriage.ResourceSnapshot, wanted.GetName(), err)
	}
	stripped := false
	before := there.DeepCopy()
	for _, key := range []string{s.Carriage.Label, placementv1.LabelResourceIndex} {
		if value := wanted.GetLabels()[key]; there.Labels[key] != value {
			metav1.SetMetaDataLabel(&there.ObjectMeta, key, value)
			stripped = true
		}
	}
	switch {
	case !stripped:
		return there, nil
	case there.Annotations[placementv1.AnnotationPlacementUID] != string(p.GetUID()):
		return nil, fmt.Errorf("%s %s was not made for this placement, and has the name that the next resource snapshot of %s is to have: delete it",
			s.Carriage.ResourceSnapshot, there.Name, p.GetName())
	}
	if err := s.Client.Patch(ctx, there, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("give %s %s its labels back: %w", s.Carriage.ResourceSnapshot, there.Name, err)
	}
	return there, nil
}

// unfinished returns the index of a revision with this content that was begun and not finished; -1 where there is none.
func (s *Store) unfinished(stock *stock, hash string) int {
	if len(stock.groups) == 0 {
		return -1
	}
	newest := stock.groups[len(stock.groups)-1]
	if newest.Master != "" || newest.Index != stock.highest {
		return -1
	}
	for _, part := range newest.Parts {
		if stock.objects[part].GetAnnotations()[placementv1.AnnotationPartOf] != hash {
			return -1
		}
	}
	return newest.Index
}

// next returns the index of a new revision. One that a binding still names is not given away again, even if somebody
// deleted that snapshot.
func (s *Store) next(ctx context.Context, p placementv1.ParentObject, stock *stock) (int, error) {
	key := client.ObjectKeyFromObject(p)
	bindings, err := listing.Bindings(ctx, s.Client, s.Carriage, key, listing.Shared)
	if err != nil {
		return 0, err
	}
	inUse := []int{stock.highest}
	for _, b := range bindings {
		inUse = append(inUse, bindingIndexes(key, b)...)
	}
	return snapshot.Next(stock.groups, inUse...), nil
}

// relabel takes the label of the latest from all of the placement's revisions but one, and then gives it to that one.
// Only masters carry it.
//
// Of an object that a policy claims none does: what follows it takes the one with the highest index, and an edit costs one write less.
func (s *Store) relabel(ctx context.Context, stock *stock, latest string) error {
	if !s.labelsLatest() {
		return nil
	}
	for i := range stock.groups {
		for _, name := range stock.groups[i].Latest {
			if name != latest {
				if err := s.label(ctx, stock.objects[name], "false"); err != nil {
					return err
				}
			}
		}
	}
	if latest == "" || stock.objects[latest].GetLabels()[placementv1.LabelIsLatestSnapshot] == "true" {
		return nil
	}
	return s.label(ctx, stock.objects[latest], "true")
}

// labelsLatest tells whether the newest revision carries a label that says so.
func (s *Store) labelsLatest() bool { return s.Carriage.Label == placementv1.LabelParentPlacement }

func (s *Store) label(ctx context.Context, o *metav1.PartialObjectMetadata, latest string) error {
	before := o.DeepCopy()
	o.Labels[placementv1.LabelIsLatestSnapshot] = latest
	if err := s.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set label %s of %s to %s: %w", placementv1.LabelIsLatestSnapshot, o.GetName(), latest, err)
	}
	return nil
}

// object makes a snapshot object, without name and annotations.
func (s *Store) object(p placementv1.ParentObject, owner metav1.OwnerReference, index int, objects []snapshot.Object) placementv1.ResourceSnapshotObject {
	o := s.Carriage.NewResourceSnapshot()
	o.SetNamespace(p.GetNamespace())
	o.SetLabels(map[string]string{
		s.Carriage.Label:               p.GetName(),
		placementv1.LabelResourceIndex: strconv.Itoa(index),
	})
	o.SetOwnerReferences([]metav1.OwnerReference{owner})
	resources := make([]placementv1.ResourceContent, len(objects))
	for i := range objects {
		resources[i] = placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: objects[i].Content}}
	}
	o.ResourceSnapshotSpec().SelectedResources = resources
	return o
}

func (s *Store) owner(p placementv1.ParentObject) (metav1.OwnerReference, error) {
	kind, err := s.Client.GroupVersionKindFor(p)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("find the API version of %s: %w", s.Carriage.Parent, err)
	}
	return metav1.OwnerReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: p.GetName(), UID: p.GetUID(),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}, nil
}
