package membercluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// errGoing says that something must first be gone before it can be made again. The event of its going brings the next pass.
var errGoing = errors.New("is being deleted; it is made again once it is gone")

// part is one object that a member needs, and how to bring one that exists in line with it.
type part struct {
	desired client.Object
	// sync changes existing where it differs from desired in more than metadata, and tells whether it did.
	sync func(existing client.Object) bool
	// created and updated are the reasons of the events about it; empty for none.
	created, updated string
}

// rights are the namespace of a cluster and what gives its agent access there, in the order in which they must exist.
func rights(cluster *clusterv1.MemberCluster) []part {
	namespace, role, binding := namespaceOf(cluster), agentRole(cluster), agentRoleBinding(cluster)
	return []part{
		{desired: namespace, created: EventNamespaceCreated},
		{desired: role, sync: syncRules(role.Rules), created: EventRoleCreated, updated: EventRoleUpdated},
		{desired: binding, sync: syncSubjects(binding.Subjects), created: EventRoleBindingCreated, updated: EventRoleBindingUpdated},
		{desired: heartbeatLease(cluster)},
	}
}

// bootstrap is what an agent without a certificate needs to get one.
func bootstrap(cluster *clusterv1.MemberCluster) []part {
	role, binding := bootstrapRole(cluster), bootstrapRoleBinding(cluster)
	certificates, certificatesBinding := certificateRole(cluster), certificateRoleBinding(cluster)
	return []part{
		{desired: role, sync: syncRules(role.Rules)},
		{desired: binding, sync: syncSubjects(binding.Subjects)},
		{desired: certificates, sync: syncRules(certificates.Rules)},
		{desired: certificatesBinding, sync: syncSubjects(certificatesBinding.Subjects)},
		{desired: bootstrapAccount(cluster)}, // the last: whoever sees it finds the rest
	}
}

func internal(cluster *clusterv1.MemberCluster) part {
	imc := internalCluster(cluster)
	return part{desired: imc, sync: syncInternal(imc.Spec), created: EventInternalMemberClusterCreated, updated: EventInternalMemberClusterUpdated}
}

func syncRules(rules []rbacv1.PolicyRule) func(client.Object) bool {
	return func(existing client.Object) bool {
		var current *[]rbacv1.PolicyRule
		switch role := existing.(type) {
		case *rbacv1.Role:
			current = &role.Rules
		case *rbacv1.ClusterRole:
			current = &role.Rules
		}
		if equality.Semantic.DeepEqual(*current, rules) {
			return false
		}
		*current = rules
		return true
	}
}

func syncSubjects(subjects []rbacv1.Subject) func(client.Object) bool {
	return func(existing client.Object) bool {
		var current *[]rbacv1.Subject
		switch binding := existing.(type) {
		case *rbacv1.RoleBinding:
			current = &binding.Subjects
		case *rbacv1.ClusterRoleBinding:
			current = &binding.Subjects
		}
		if equality.Semantic.DeepEqual(*current, subjects) {
			return false
		}
		*current = subjects
		return true
	}
}

func syncInternal(spec clusterv1.InternalMemberClusterSpec) func(client.Object) bool {
	return func(existing client.Object) bool {
		current := existing.(*clusterv1.InternalMemberCluster)
		want := spec
		if want.ClusterID == "" { // not recorded yet, or lost: the one asked for stays
			want.ClusterID = current.Spec.ClusterID
		}
		if current.Spec == want {
			return false
		}
		current.Spec = want
		return true
	}
}

// ensure makes a part, or brings it in line, and returns it as it is now.
func (c *Controller) ensure(ctx context.Context, cluster *clusterv1.MemberCluster, p part) (client.Object, error) {
	what := describe(c.Client, p.desired)
	existing := reflect.New(reflect.TypeOf(p.desired).Elem()).Interface().(client.Object)
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(p.desired), existing)
	if apierrors.IsNotFound(err) {
		err = c.Client.Create(ctx, p.desired)
		if err == nil {
			c.event(cluster, corev1.EventTypeNormal, p.created, "created %s", what)
			return p.desired, nil
		}
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil, fmt.Errorf("namespace %s %w", p.desired.GetNamespace(), errGoing)
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create %s: %w", what, err)
		}
		// The cache has not seen it yet, or does not hold it since its label is missing.
		err = c.APIReader.Get(ctx, client.ObjectKeyFromObject(p.desired), existing)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if p.desired.GetNamespace() == "" && !ours(existing, cluster.Name) {
		return nil, fmt.Errorf("%s exists and was not made for this cluster: delete it, or, to hand it over to the hub, which deletes it with all that is in it "+
			"when the cluster leaves, set its label %s to true", what, clusterv1.LabelIsFleetResource)
	}
	if existing.GetDeletionTimestamp() != nil {
		return nil, c.letGo(ctx, existing, what)
	}
	if refersElsewhere(existing, p.desired) {
		return nil, c.remove(ctx, existing, what) // what a binding refers to cannot be changed
	}
	updated := existing.DeepCopyObject().(client.Object)
	changed := adopt(updated, p.desired)
	if p.sync != nil && p.sync(updated) {
		changed = true
	}
	if !changed {
		return existing, nil
	}
	if err := c.Client.Update(ctx, updated); err != nil {
		return nil, fmt.Errorf("update %s: %w", what, err)
	}
	c.event(cluster, corev1.EventTypeNormal, p.updated, "updated %s", what)
	return updated, nil
}

// ours tells whether a namespace, or another object without one, was made for a cluster of this name. What is not is never
// taken over, nor deleted when the cluster leaves.
func ours(object client.Object, cluster string) bool {
	owner := metav1.GetControllerOf(object)
	return object.GetLabels()[clusterv1.LabelIsFleetResource] == "true" ||
		(owner != nil && owner.Kind == "MemberCluster" && owner.Name == cluster && strings.HasPrefix(owner.APIVersion, clusterv1.GroupVersion.Group+"/"))
}

// letGo lifts our finalizer from something that is being deleted though its cluster stays, so that it can be made again.
// In a namespace that is being deleted the finalizer stays for now: whoever finds the Works gone lifts it.
func (c *Controller) letGo(ctx context.Context, object client.Object, what string) error {
	if namespace := object.GetNamespace(); namespace != "" {
		going, err := c.namespaceGoing(ctx, namespace)
		if err != nil {
			return err
		}
		if going {
			return fmt.Errorf("namespace %s %w", namespace, errGoing)
		}
	}
	if err := c.liftFinalizer(ctx, object, clusterv1.FinalizerMemberRights); err != nil {
		return fmt.Errorf("let go of %s: %w", what, err)
	}
	return fmt.Errorf("%s %w", what, errGoing)
}

// namespaceGoing tells whether a namespace is gone or going.
func (c *Controller) namespaceGoing(ctx context.Context, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// remove deletes an object of ours whatever holds it, to make it again.
func (c *Controller) remove(ctx context.Context, object client.Object, what string) error {
	if err := c.liftFinalizer(ctx, object, clusterv1.FinalizerMemberRights); err != nil {
		return fmt.Errorf("let go of %s: %w", what, err)
	}
	uid := object.GetUID()
	if err := c.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	return fmt.Errorf("%s %w", what, errGoing)
}

// liftFinalizer removes one finalizer, if it is there.
func (c *Controller) liftFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	after := object.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(after, finalizer)
	return client.IgnoreNotFound(c.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// ensureAbsent deletes parts that the cluster does not need.
func (c *Controller) ensureAbsent(ctx context.Context, cluster string, parts []part) error {
	for _, p := range parts {
		what := describe(c.Client, p.desired)
		existing := reflect.New(reflect.TypeOf(p.desired).Elem()).Interface().(client.Object)
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(p.desired), existing)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil && existing.GetDeletionTimestamp() == nil && (existing.GetNamespace() != "" || ours(existing, cluster)) {
			err = client.IgnoreNotFound(c.Client.Delete(ctx, existing))
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", what, err)
		}
	}
	return nil
}

// refersElsewhere tells whether a binding gives another role than it is to give.
func refersElsewhere(existing, desired client.Object) bool {
	switch binding := existing.(type) {
	case *rbacv1.RoleBinding:
		return binding.RoleRef != desired.(*rbacv1.RoleBinding).RoleRef
	case *rbacv1.ClusterRoleBinding:
		return binding.RoleRef != desired.(*rbacv1.ClusterRoleBinding).RoleRef
	}
	return false
}

// describe names an object for people.
func describe(c client.Client, object client.Object) string {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(object, c.Scheme()); err == nil {
		kind = gvk.Kind
	}
	if object.GetNamespace() == "" {
		return fmt.Sprintf("%s %s", kind, object.GetName())
	}
	return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
}
