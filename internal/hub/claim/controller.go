// Package claim finds out which objects on the hub belong to which policy, and keeps an internal placement for each of them, which
// says what its policy wants. Whatever follows from that is the concern of others.
package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object names an object on the hub.
type Object struct {
	// Kind is without a version: an object is the same in all of them.
	Kind            schema.GroupKind
	Namespace, Name string
}

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind.Kind + " " + o.Name
	}
	return o.Kind.Kind + " " + o.Namespace + "/" + o.Name
}

// placementName is the name of the object's internal placement.
func (o Object) placementName() client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: placement.ObjectPlacementName(o.Kind, o.Namespace, o.Name)}
}

// Controller keeps the internal placements.
type Controller struct {
	// Client reads from the cache. Metadata reads objects live, and no more of them than their metadata.
	Client   client.Client
	Metadata metadata.Interface
	// Mapper knows the kinds that the hub serves.
	Mapper meta.RESTMapper
	Clock  clock.Clock
	// Rules say what is never placed.
	Rules placement.Rules
	// Changes tells of objects on the hub.
	Changes Changes

	tracker consistency.Tracker
	made    consistency.Awaited[client.ObjectKey] // internal placements that we made and that the cache has not shown yet
	objects enqueue.Queue[Object]
}

// Reconcile sees to it that an object's internal placement says what its policy wants.
func (c *Controller) Reconcile(ctx context.Context, object Object) (ctrl.Result, error) {
	p, behind, err := c.read(ctx, object)
	if err != nil || behind {
		return ctrl.Result{}, err
	}
	if p != nil && !p.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil // its end brings the next pass
	}
	policies, err := c.policies(ctx, object.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	version, concerned := versionOf(object, p, policies)
	if !concerned {
		return ctrl.Result{}, nil
	}
	o, err := c.object(ctx, object, version)
	if meta.IsNoMatchError(err) {
		return ctrl.Result{}, nil // nobody knows what there is of such a kind; its being served brings the next pass
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case o == nil && p == nil:
		return ctrl.Result{}, nil
	case o == nil, p != nil && !ownedBy(p, o):
		return ctrl.Result{}, c.remove(ctx, object, p)
	case !o.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil // it may be about to go, and is until it has
	}
	err = c.keep(ctx, object, version, o, p, policies)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{}, err
}

// read returns the object's internal placement; nil where it has none. behind tells that the cache does not show what we wrote.
func (c *Controller) read(ctx context.Context, object Object) (p policyv1alpha1.ObjectPlacementObject, behind bool, err error) {
	key := object.placementName()
	p = newPlacement(object.Namespace)
	switch err := c.Client.Get(ctx, key, p); {
	case apierrors.IsNotFound(err):
		return nil, c.made.Has(key, c.Clock.Now()), nil
	case err != nil:
		return nil, false, fmt.Errorf("read the internal placement of %s: %w", object, err)
	}
	return p, c.tracker.Behind(p), nil
}

func newPlacement(namespace string) policyv1alpha1.ObjectPlacementObject {
	if namespace == "" {
		return &policyv1alpha1.ClusterObjectPlacement{}
	}
	return &policyv1alpha1.ObjectPlacement{}
}

// versionOf is the version in which an object is looked at: the one in which a policy asks for it, or has done so. concerned tells
// whether there is any.
func versionOf(object Object, p policyv1alpha1.ObjectPlacementObject, policies []*claim.Policy) (version string, concerned bool) {
	for _, policy := range policies {
		for i := range policy.Spec.ResourceSelectors {
			s := &policy.Spec.ResourceSelectors[i]
			gv, err := schema.ParseGroupVersion(s.APIVersion)
			if err == nil && gv.Group == object.Kind.Group && s.Kind == object.Kind.Kind {
				if p == nil || p.ObjectPlacementSpec().Resource.APIVersion == s.APIVersion {
					return gv.Version, true
				}
				version = gv.Version
			}
		}
	}
	if p != nil {
		if gv, err := schema.ParseGroupVersion(p.ObjectPlacementSpec().Resource.APIVersion); err == nil && version == "" {
			version = gv.Version
		}
	}
	return version, p != nil || version != ""
}

// object reads an object live; nil where it does not exist. A kind that the hub does not serve is an error: nobody knows what has
// become of its objects.
func (c *Controller) object(ctx context.Context, object Object, version string) (*metav1.PartialObjectMetadata, error) {
	mapping, err := c.Mapper.RESTMapping(object.Kind, version)
	if err != nil {
		return nil, fmt.Errorf("find out how the hub serves %s: %w", object, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot && object.Namespace != "" {
		return nil, nil //nolint:nilnil // nothing of a kind without namespaces is in one
	}
	o, err := c.Metadata.Resource(mapping.Resource).Namespace(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if isServed(err, object.Name) {
			return nil, nil //nolint:nilnil // that there is none is an answer
		}
		return nil, fmt.Errorf("read %s: the hub does not serve its kind at the moment: %w", object, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", object, err)
	}
	o.SetGroupVersionKind(object.Kind.WithVersion(version))
	return o, nil
}

// isServed tells an answer about an object from one about its kind: the API server names the object in the one alone.
func isServed(err error, name string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == name
}

// ownedBy tells whether an internal placement was made for this very object, and not for one that had its name before.
func ownedBy(p client.Object, o *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(p.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == o.UID })
}

// remove takes away the internal placement of an object that is gone, and with it what was placed.
func (c *Controller) remove(ctx context.Context, object Object, p client.Object) error {
	err := c.Client.Delete(ctx, p, client.Preconditions{UID: ptr.To(p.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the internal placement of %s, which is gone: %w", object, err)
	}
	return nil
}

// keep makes, changes or releases an object's internal placement, as the policies say.
func (c *Controller) keep(ctx context.Context, object Object, version string, o *metav1.PartialObjectMetadata, p policyv1alpha1.ObjectPlacementObject, policies []*claim.Policy) error {
	var current *policyv1alpha1.PolicyReference
	if p != nil {
		current = p.ObjectPlacementSpec().Policy
	}
	if c.neverPlaced(object, o) {
		policies = nil
	}
	decision := claim.Decide(claim.Object{Kind: object.Kind.WithVersion(version), Namespace: object.Namespace, Name: object.Name, Labels: o.Labels}, current, policies)
	switch {
	case decision.Unsure != nil:
		return nil //nolint:nilerr // the policy's status says so
	case decision.Policy == nil && p == nil:
		return nil
	case decision.Policy == nil:
		return c.release(ctx, object, p)
	}
	spec := specOf(object, version, o, decision.Policy)
	if p == nil {
		return c.make(ctx, object, o, spec, decision.Policy)
	}
	before := p.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of an object is one
	same := equality.Semantic.DeepEqual(decision.Policy.Reference(), current)
	if isLazy(decision.Policy) && same && p.GetAnnotations()[policyv1alpha1.AnnotationObjectVersion] == contentVersion(o) {
		p.ObjectPlacementSpec().RebalanceTriggeredAt = spec.RebalanceTriggeredAt // which is asked for, and no change of the policy
	} else {
		*p.ObjectPlacementSpec() = spec
		note(p, decision.Policy, o)
	}
	if equality.Semantic.DeepEqual(before, p) {
		return nil
	}
	return c.patch(ctx, object, p, before)
}
