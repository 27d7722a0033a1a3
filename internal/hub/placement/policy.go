package placement

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	model "github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// policySnapshot returns the snapshot of the placement's policy as it is, and makes it if need be.
func (c *Controller) policySnapshot(ctx context.Context, key model.Key, p placementv1.PlacementObject) (placementv1.PolicySnapshotObject, error) {
	all, err := listing.PolicySnapshots(ctx, c.Client, c.Kinds, key)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b placementv1.PolicySnapshotObject) int {
		return cmp.Compare(model.PolicyIndex(a), model.PolicyIndex(b))
	})
	next := 0
	var own []placementv1.PolicySnapshotObject
	for _, s := range all {
		next = max(next, model.PolicyIndex(s)+1)
		if snapshots.BelongsTo(s, p) && model.PolicyIndex(s) >= 0 {
			own = append(own, s)
		}
	}
	hash, err := policyHash(p.PlacementSpec().Policy)
	if err != nil {
		return nil, err
	}
	if len(own) > 0 {
		if latest := own[len(own)-1]; string(latest.PolicySnapshotSpec().PolicyHash) == hash {
			return latest, c.refreshPolicies(ctx, p, own)
		}
	}
	// First no snapshot is the latest, then the new one is: never two.
	for _, s := range own {
		if err := c.patchPolicy(ctx, s, func() { setLatest(s, false) }); err != nil {
			return nil, err
		}
	}
	created, err := c.createPolicy(ctx, p, next, hash)
	if err != nil {
		return nil, err
	}
	return created, c.prunePolicies(ctx, key, p, own)
}

// withoutNumber is a policy as its snapshot has it: how many clusters PickN chooses may change without the others being chosen
// anew, so that is told by an annotation.
func withoutNumber(policy *placementv1.PlacementPolicy) *placementv1.PlacementPolicy {
	without := policy.DeepCopy()
	if without != nil {
		without.NumberOfClusters = nil
	}
	return without
}

// noteNumber notes on the annotations of a policy snapshot how many clusters are to be chosen.
func noteNumber(annotations map[string]string, policy *placementv1.PlacementPolicy) {
	delete(annotations, placementv1.AnnotationNumberOfClusters)
	if policy.Type() == placementv1.PickNPlacementType {
		annotations[placementv1.AnnotationNumberOfClusters] = strconv.Itoa(int(ptr.Deref(policy.NumberOfClusters, 0)))
	}
}

// policyHash is the SHA-256, in hex, of a policy without its number of clusters. A placement without a policy has one, too.
func policyHash(policy *placementv1.PlacementPolicy) (string, error) {
	encoded, err := json.Marshal(withoutNumber(policy))
	if err != nil {
		return "", fmt.Errorf("encode the policy: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}

// refreshPolicies labels the last snapshot, and no other, as the latest, and notes the placement's generation, and
// how many clusters it asks for, on it.
func (c *Controller) refreshPolicies(ctx context.Context, p placementv1.PlacementObject, own []placementv1.PolicySnapshotObject) error {
	for i, s := range own {
		latest := i == len(own)-1
		err := c.patchPolicy(ctx, s, func() {
			setLatest(s, latest)
			if latest {
				s.GetAnnotations()[placementv1.AnnotationPlacementGeneration] = generationOf(p)
				noteNumber(s.GetAnnotations(), p.PlacementSpec().Policy)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func generationOf(p placementv1.PlacementObject) string {
	return strconv.FormatInt(p.GetGeneration(), 10)
}

func setLatest(s placementv1.PolicySnapshotObject, latest bool) {
	s.GetLabels()[placementv1.LabelIsLatestSnapshot] = strconv.FormatBool(latest)
}

// patchPolicy changes a snapshot's metadata, if the change makes a difference.
func (c *Controller) patchPolicy(ctx context.Context, s placementv1.PolicySnapshotObject, change func()) error {
	before := s.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a snapshot is an object
	change()
	if maps.Equal(before.GetLabels(), s.GetLabels()) && maps.Equal(before.GetAnnotations(), s.GetAnnotations()) {
		return nil
	}
	if err := c.Client.Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update %s %s: %w", c.Kinds.PolicySnapshot, s.GetName(), err)
	}
	return nil
}

func (c *Controller) createPolicy(ctx context.Context, p placementv1.PlacementObject, index int, hash string) (placementv1.PolicySnapshotObject, error) {
	kind, err := c.Client.GroupVersionKindFor(p)
	if err != nil {
		return nil, fmt.Errorf("find the API version of %s: %w", c.Kinds.Placement, err)
	}
	s := c.Kinds.NewPolicySnapshot()
	s.SetName(model.PolicySnapshotName(p.GetName(), index))
	s.SetNamespace(p.GetNamespace())
	s.SetLabels(map[string]string{
		placementv1.LabelParentPlacement:  p.GetName(),
		placementv1.LabelIsLatestSnapshot: "true",
		placementv1.LabelPolicyIndex:      strconv.Itoa(index),
	})
	s.SetAnnotations(map[string]string{
		placementv1.AnnotationPlacementGeneration: generationOf(p),
		placementv1.AnnotationPlacementUID:        string(p.GetUID()),
	})
	noteNumber(s.GetAnnotations(), p.PlacementSpec().Policy)
	s.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: p.GetName(), UID: p.GetUID(),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}})
	*s.PolicySnapshotSpec() = placementv1.SchedulingPolicySnapshotSpec{
		Policy: withoutNumber(p.PlacementSpec().Policy), PolicyHash: []byte(hash),
	}
	switch err := c.Client.Create(ctx, s); {
	case apierrors.IsAlreadyExists(err):
		return nil, c.reclaim(ctx, p, s)
	case err != nil:
		return nil, fmt.Errorf("create %s %s: %w", c.Kinds.PolicySnapshot, s.GetName(), err)
	}
	return s, nil
}

// prunePolicies deletes the oldest of earlier snapshots, as far as no binding is there because of them, so that with the
// new one there are no more than the placement keeps.
func (c *Controller) prunePolicies(ctx context.Context, key model.Key, p placementv1.PlacementObject, earlier []placementv1.PolicySnapshotObject) error {
	surplus := len(earlier) + 1 - int(p.PlacementSpec().RevisionLimit())
	if surplus <= 0 {
		return nil
	}
	bindings, err := listing.Bindings(ctx, c.Client, &c.Kinds.Carriage, key, listing.Shared)
	if err != nil {
		return err
	}
	used := sets.New[string]()
	for _, b := range bindings {
		used.Insert(b.BindingSpec().SchedulingPolicySnapshotName)
	}
	for _, s := range earlier[:surplus] {
		if used.Has(s.GetName()) {
			continue
		}
		if err := c.Client.Delete(ctx, s, client.Preconditions{UID: ptr.To(s.GetUID())}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the old %s %s: %w", c.Kinds.PolicySnapshot, s.GetName(), err)
		}
	}
	return nil
}
