package claim

import (
	"context"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	"github.com/fleetwright/fleetwright/internal/placement/dependencies"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is how many objects are listed with one request.
const page = 500

// policies returns the policies that can claim objects in a namespace, or cluster-scoped ones, those that are being deleted aside.
func (c *Controller) policies(ctx context.Context, namespace string) ([]*claim.Policy, error) {
	return listPolicies(ctx, c.Client, client.InNamespace(namespace), namespace != "")
}

// listPolicies lists the policies of the whole hub and, if asked to, those in namespaces.
func listPolicies(ctx context.Context, r client.Reader, in client.InNamespace, namespaced bool) ([]*claim.Policy, error) {
	var all []*claim.Policy
	var cluster policyv1alpha1.ClusterPropagationPolicyList
	if err := r.List(ctx, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ClusterPropagationPolicies: %w", err)
	}
	for i := range cluster.Items {
		if p := &cluster.Items[i]; p.DeletionTimestamp.IsZero() {
			all = append(all, &claim.Policy{Kind: claim.Cluster, Name: p.Name, Annotations: p.Annotations, Spec: &p.Spec})
		}
	}
	if !namespaced {
		return all, nil
	}
	var own policyv1alpha1.PropagationPolicyList
	if err := r.List(ctx, &own, in, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the PropagationPolicies: %w", err)
	}
	for i := range own.Items {
		if p := &own.Items[i]; p.DeletionTimestamp.IsZero() {
			all = append(all, &claim.Policy{Kind: claim.Namespaced, Namespace: p.Namespace, Name: p.Name, Annotations: p.Annotations, Spec: &p.Spec})
		}
	}
	return all, nil
}

// spread has the objects looked at that a policy has, or may have from now on, and follows what policies select.
func (c *Controller) spread(ctx context.Context, key policyKey) (ctrl.Result, error) {
	policies, err := listPolicies(ctx, c.Client, "", true)
	if err != nil {
		return ctrl.Result{}, err
	}
	all, err := placements(ctx, c.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	c.Changes.Follow(kindsOf(policies, all)...)
	for _, p := range policies {
		if !key.concerns(p) {
			continue
		}
		objects, err := c.selected(ctx, p)
		if err != nil {
			return ctrl.Result{}, err
		}
		for _, o := range objects {
			c.objects.Add(o)
		}
	}
	for _, p := range all {
		if policy, ok := policyOf(p); ok && policy == key || !key.Followed.Empty() && objectOf(p).Kind == key.Followed.GroupKind() {
			c.objects.Add(objectOf(p))
		}
	}
	return ctrl.Result{}, nil
}

// concerns tells whether a policy is the one that is named, or selects objects of the kind that is followed.
func (k policyKey) concerns(p *claim.Policy) bool {
	if k.Followed.Empty() {
		return k == policyKey{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
	}
	return slices.Contains(kindsOf([]*claim.Policy{p}, nil), k.Followed)
}

// placements returns the internal placements of both scopes.
func placements(ctx context.Context, r client.Reader) ([]policyv1alpha1.ObjectPlacementObject, error) {
	var cluster policyv1alpha1.ClusterObjectPlacementList
	if err := r.List(ctx, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ClusterObjectPlacements: %w", err)
	}
	var own policyv1alpha1.ObjectPlacementList
	if err := r.List(ctx, &own, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ObjectPlacements: %w", err)
	}
	all := make([]policyv1alpha1.ObjectPlacementObject, 0, len(cluster.Items)+len(own.Items))
	for i := range cluster.Items {
		all = append(all, &cluster.Items[i])
	}
	for i := range own.Items {
		all = append(all, &own.Items[i])
	}
	return all, nil
}

// objectOf is the object that an internal placement is for.
func objectOf(p policyv1alpha1.ObjectPlacementObject) Object {
	r := &p.ObjectPlacementSpec().Resource
	kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
	return Object{Kind: kind, Namespace: p.GetNamespace(), Name: r.Name}
}

// policyOf is the policy that an internal placement follows.
func policyOf(p policyv1alpha1.ObjectPlacementObject) (policy policyKey, ok bool) {
	r := p.ObjectPlacementSpec().Policy
	if r == nil {
		return policyKey{}, false
	}
	key := policyKey{Kind: r.Kind, Name: r.Name}
	if r.Kind == claim.Namespaced {
		key.Namespace = p.GetNamespace()
	}
	return key, true
}

// selected lists live the objects that a policy's selectors may find. Kinds that the hub does not serve have none.
func (c *Controller) selected(ctx context.Context, p *claim.Policy) ([]Object, error) {
	var all []Object
	for i := range p.Spec.ResourceSelectors {
		s := &p.Spec.ResourceSelectors[i]
		kind := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
		namespace := s.Namespace
		if p.Kind == claim.Namespaced {
			namespace = p.Namespace
		}
		if s.Name != "" && namespace != "" {
			all = append(all, Object{Kind: kind.GroupKind(), Namespace: namespace, Name: s.Name})
			continue
		}
		mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			continue // it is followed once it is served
		}
		options := metav1.ListOptions{Limit: page}
		if s.Name == "" && s.LabelSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
			if err != nil {
				continue // the policy's status says so
			}
			options.LabelSelector = selector.String()
		}
		if s.Name != "" {
			options.FieldSelector = "metadata.name=" + s.Name
		}
		for more := true; more; more = options.Continue != "" {
			list, err := c.Metadata.Resource(mapping.Resource).Namespace(namespace).List(ctx, options)
			if apierrors.IsNotFound(err) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("list the objects of kind %s for %s: %w", kind.Kind, p, err)
			}
			for i := range list.Items {
				all = append(all, Object{Kind: kind.GroupKind(), Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
			}
			options.Continue = list.Continue
		}
	}
	return all, nil
}

// kindsOf are the kinds that policies select, those of what goes along, and those of which there are internal placements.
func kindsOf(policies []*claim.Policy, placements []policyv1alpha1.ObjectPlacementObject) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	add := func(apiVersion, kind string) {
		if gvk := schema.FromAPIVersionAndKind(apiVersion, kind); !gvk.Empty() && !slices.Contains(kinds, gvk) {
			kinds = append(kinds, gvk)
		}
	}
	for _, p := range policies {
		for i := range p.Spec.ResourceSelectors {
			add(p.Spec.ResourceSelectors[i].APIVersion, p.Spec.ResourceSelectors[i].Kind)
		}
		if p.Spec.CarriesDeps() {
			for _, kind := range dependencies.Kinds() {
				add(kind.GroupVersion().String(), kind.Kind)
			}
		}
	}
	for _, p := range placements {
		add(p.ObjectPlacementSpec().Resource.APIVersion, p.ObjectPlacementSpec().Resource.Kind)
	}
	return kinds
}
