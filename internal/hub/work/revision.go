package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// missingError says that a resource snapshot, a part of one, or another snapshot, does not exist.
type missingError struct{ what, snapshot string }

func (e *missingError) Error() string {
	return fmt.Sprintf("%s %q does not exist", cmp.Or(e.what, "resource snapshot"), e.snapshot)
}

func isMissing(err error) bool {
	var missing *missingError
	return errors.As(err, &missing)
}

// revision is a resource snapshot, with the UIDs of its parts.
type revision struct {
	render.Revision
	uids []types.UID
	// objects are what the snapshot's metadata says of its content: see policyv1alpha1.AnnotationObjects.
	objects string
}

// master names the resource snapshot that a binding's Works are to carry; empty where there is none yet.
func (c *Controller) master(ctx context.Context, t render.Target, works map[string]*placementv1.Work, b placementv1.BindingObject) (string, error) {
	if !c.follows() {
		return b.BindingSpec().ResourceSnapshotName, nil
	}
	snapshots, err := listing.ResourceSnapshots(ctx, c.Client, c.Carriage, t.Placement, listing.Shared)
	if err != nil {
		return "", err
	}
	name, _ := newest(t, snapshots)
	if name != "" || len(works) == 0 {
		return name, nil
	}
	// There are Works of a revision that the cache does not have: it is behind, or somebody deleted them all.
	if snapshots, err = listing.ResourceSnapshots(ctx, c.APIReader, c.Carriage, t.Placement); err != nil {
		return "", err
	}
	name, _ = newest(t, snapshots)
	return name, nil
}

// newest is the newest whole revision among a parent's snapshots.
func newest(t render.Target, snapshots []placementv1.ResourceSnapshotObject) (name string, index int) {
	index = -1
	for _, s := range snapshots {
		number, ok := placement.ResourceSnapshotIndex(t.Placement.Name, s.GetName())
		if ok && number > index && s.GetAnnotations()[placementv1.AnnotationPlacementUID] == t.PlacementUID && s.GetDeletionTimestamp().IsZero() {
			name, index = s.GetName(), number
		}
	}
	return name, index
}

// confirmLatest asks the API server whether the revision that Works are to be taken back to is the newest there is.
func (c *Controller) confirmLatest(ctx context.Context, t render.Target, w *wish) error {
	snapshots, err := listing.ResourceSnapshots(ctx, c.APIReader, c.Carriage, t.Placement)
	if err != nil {
		return err
	}
	if _, index := newest(t, snapshots); strconv.Itoa(index) != w.index {
		return errStale
	}
	return nil
}

// revision finds the parts of the resource snapshot that a binding names.
func (c *Controller) revision(ctx context.Context, t render.Target, master string) (*revision, error) {
	m, err := c.snapshot(ctx, t, master)
	if err != nil {
		return nil, err
	}
	index := m.GetLabels()[placementv1.LabelResourceIndex]
	number, err := strconv.Atoi(index)
	if err != nil {
		return nil, fmt.Errorf("resource snapshot %q: label %s: %w", master, placementv1.LabelResourceIndex, err)
	}
	count, err := strconv.Atoi(m.GetAnnotations()[placementv1.AnnotationSnapshotCount])
	if err != nil {
		return nil, fmt.Errorf("resource snapshot %q: annotation %s: %w", master, placementv1.AnnotationSnapshotCount, err)
	}
	hash := m.GetAnnotations()[placementv1.AnnotationResourceHash]
	if hash == "" {
		hash = string(m.GetUID())
	}
	r := &revision{Revision: render.Revision{Index: index, Hash: hash, Parts: []string{master}}, uids: []types.UID{m.GetUID()},
		objects: m.GetAnnotations()[policyv1alpha1.AnnotationObjects]}
	if r.Envelopes, err = render.ParseEnvelopes(m.GetAnnotations()[placementv1.AnnotationEnvelopes], count); err != nil {
		return nil, fmt.Errorf("resource snapshot %q: annotation %s: %w", master, placementv1.AnnotationEnvelopes, err)
	}
	for sub := range count - 1 {
		part, err := c.snapshot(ctx, t, placement.ResourceSnapshotPartName(t.Placement.Name, number, sub))
		if err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, part.GetName())
		r.uids = append(r.uids, part.GetUID())
	}
	return r, nil
}

// snapshot reads the metadata of one snapshot object. One that the cache does not have is asked for live, since the
// binding that names it may have travelled faster.
func (c *Controller) snapshot(ctx context.Context, t render.Target, name string) (client.Object, error) {
	key := client.ObjectKey{Namespace: t.Placement.Namespace, Name: name}
	var s client.Object = c.Carriage.NewResourceSnapshot()
	err := c.Client.Get(ctx, key, s)
	if apierrors.IsNotFound(err) {
		live := &metav1.PartialObjectMetadata{}
		gvk, kindErr := c.Client.GroupVersionKindFor(s)
		if kindErr != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", s, kindErr)
		}
		live.SetGroupVersionKind(gvk)
		s, err = live, c.APIReader.Get(ctx, key, live)
	}
	if apierrors.IsNotFound(err) || (err == nil && s.GetAnnotations()[placementv1.AnnotationPlacementUID] != t.PlacementUID) {
		return nil, &missingError{snapshot: name}
	}
	if err != nil {
		return nil, fmt.Errorf("read resource snapshot %s: %w", name, err)
	}
	return s, nil
}

// carried returns what is wanted of a snapshot that does not exist any more where the Works, all of them, have it
// already; nil where they do not.
func carried(t render.Target, works map[string]*placementv1.Work, master string) []*placementv1.Work {
	all := render.Carried(t, works)
	if all == nil || all[0].Annotations[placementv1.AnnotationParentSnapshotName] != master {
		return nil
	}
	return all
}
