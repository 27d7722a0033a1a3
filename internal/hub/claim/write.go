package claim

import (
	"context"
	"fmt"
	"strconv"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// specOf is what an internal placement says of a policy.
func specOf(object Object, version string, o *metav1.PartialObjectMetadata, p *claim.Policy) policyv1alpha1.ObjectPlacementSpec {
	spec := p.Spec.DeepCopy()
	return policyv1alpha1.ObjectPlacementSpec{
		Resource: policyv1alpha1.ObjectReference{
			APIVersion: object.Kind.WithVersion(version).GroupVersion().String(), Kind: object.Kind.Kind, Namespace: object.Namespace, Name: object.Name,
		},
		Policy:                      p.Reference(),
		Placement:                   spec.Placement,
		PropagateDeps:               spec.CarriesDeps(),
		ConflictResolution:          spec.ConflictResolution,
		Suspension:                  spec.Suspension,
		PreserveResourcesOnDeletion: ptr.Deref(spec.PreserveResourcesOnDeletion, false),
		DependentOverrides:          spec.DependentOverrides,
		RebalanceTriggeredAt:        latest(policyv1alpha1.RebalanceAsked(o.Annotations), policyv1alpha1.RebalanceAsked(p.Annotations)),
	}
}

func latest(a, b *metav1.Time) *metav1.Time {
	if a == nil || (b != nil && a.Before(b)) {
		return b
	}
	return a
}

func isLazy(p *claim.Policy) bool {
	return p.Spec.ActivationPreference == policyv1alpha1.ActivateLazily
}

// contentVersion is another one whenever the object's content is. Kinds that count no generations have no status either.
func contentVersion(o *metav1.PartialObjectMetadata) string {
	if o.Generation > 0 {
		return strconv.FormatInt(o.Generation, 10)
	}
	return o.ResourceVersion
}

// note says on an internal placement of a lazy policy for which version of the object the policy was read.
func note(p client.Object, policy *claim.Policy, o *metav1.PartialObjectMetadata) {
	annotations := p.GetAnnotations()
	if !isLazy(policy) {
		delete(annotations, policyv1alpha1.AnnotationObjectVersion)
		p.SetAnnotations(annotations)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[policyv1alpha1.AnnotationObjectVersion] = contentVersion(o)
	p.SetAnnotations(annotations)
}

// make makes an object's internal placement.
func (c *Controller) make(ctx context.Context, object Object, o *metav1.PartialObjectMetadata, spec policyv1alpha1.ObjectPlacementSpec, policy *claim.Policy) error {
	key := object.placementName()
	p := newPlacement(object.Namespace)
	p.SetNamespace(key.Namespace)
	p.SetName(key.Name)
	p.SetFinalizers([]string{policyv1alpha1.FinalizerObjectPlacement})
	p.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: spec.Resource.APIVersion, Kind: object.Kind.Kind, Name: object.Name, UID: o.UID}})
	*p.ObjectPlacementSpec() = spec
	note(p, policy, o)
	c.made.Add(key, c.Clock.Now())
	if err := c.Client.Create(ctx, p); err != nil {
		c.made.Remove(key)
		return fmt.Errorf("make the internal placement of %s: %w", object, err)
	}
	return nil
}

func (c *Controller) patch(ctx context.Context, object Object, p, before client.Object) error {
	err := c.Client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil // its end brings the next pass
	}
	if err != nil {
		return fmt.Errorf("change the internal placement of %s: %w", object, err)
	}
	c.tracker.Wrote(p)
	return nil
}

// release says that no policy has the object any more. What is in the members stays as it is.
func (c *Controller) release(ctx context.Context, object Object, p policyv1alpha1.ObjectPlacementObject) error {
	if p.ObjectPlacementSpec().Policy == nil {
		return nil
	}
	before := p.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of an object is one
	p.ObjectPlacementSpec().Policy = nil
	return c.patch(ctx, object, p, before)
}

// neverPlaced tells whether an object is none that can be placed.
func (c *Controller) neverPlaced(object Object, o *metav1.PartialObjectMetadata) bool {
	return placement.NeverPlaced(object.Kind) != "" || placement.OwnOfCluster(object.Kind, o) != "" ||
		object.Namespace != "" && c.Rules.Reserved(object.Namespace) || object.Kind == placement.NamespaceKind && c.Rules.Reserved(object.Name)
}
