package membercluster

import (
	"slices"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// metadata is what all that the hub makes for a member has in common.
func metadata(cluster *clusterv1.MemberCluster, namespace, name string, finalizers ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:  namespace,
		Name:       name,
		Labels:     map[string]string{clusterv1.LabelIsFleetResource: "true"},
		Finalizers: finalizers,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion:         clusterv1.GroupVersion.String(),
			Kind:               "MemberCluster",
			Name:               cluster.Name,
			UID:                cluster.UID,
			Controller:         ptr.To(true),
			BlockOwnerDeletion: ptr.To(true),
		}},
	}
}

// namespaceOf is where the hub and a cluster's agent meet.
func namespaceOf(cluster *clusterv1.MemberCluster) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metadata(cluster, "", placement.MemberNamespace(cluster.Name))}
}

// agentRole is all that an agent may do in its namespace. It reads its Works and changes their status, but not the Works
// themselves: what it deletes in its cluster is decided on the hub.
func agentRole(cluster *clusterv1.MemberCluster) *rbacv1.Role {
	namespace := placement.MemberNamespace(cluster.Name)
	return &rbacv1.Role{
		ObjectMeta: metadata(cluster, namespace, clusterv1.RoleNamePrefix+cluster.Name, clusterv1.FinalizerMemberRights),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{placementv1.GroupVersion.Group}, Resources: []string{"works"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{placementv1.GroupVersion.Group}, Resources: []string{"works/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"internalmemberclusters"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"internalmemberclusters/status"}, Verbs: []string{"patch", "update"}},
			// The hub makes the Lease, since a right to create cannot be limited to a name.
			{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{clusterv1.HeartbeatLease}, Verbs: []string{"patch"}},
			{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}
}

// agentSubject is whom the agent signs in as.
func agentSubject(cluster *clusterv1.MemberCluster) rbacv1.Subject {
	if cluster.Spec.Identity == nil {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: clusterv1.AgentUser(cluster.Name, cluster.UID)}
	}
	subject := *cluster.Spec.Identity
	if subject.Kind == rbacv1.ServiceAccountKind {
		subject.APIGroup = ""
	} else {
		subject.APIGroup, subject.Namespace = rbacv1.GroupName, ""
	}
	return subject
}

func agentRoleBinding(cluster *clusterv1.MemberCluster) *rbacv1.RoleBinding {
	namespace := placement.MemberNamespace(cluster.Name)
	return &rbacv1.RoleBinding{
		ObjectMeta: metadata(cluster, namespace, clusterv1.RoleBindingNamePrefix+cluster.Name, clusterv1.FinalizerMemberRights),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: clusterv1.RoleNamePrefix + cluster.Name},
		Subjects:   []rbacv1.Subject{agentSubject(cluster)},
	}
}

func heartbeatLease(cluster *clusterv1.MemberCluster) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metadata(cluster, placement.MemberNamespace(cluster.Name), clusterv1.HeartbeatLease)}
}

// bootstrapSubject is the account whose tokens let an agent ask for its first certificate.
func bootstrapSubject(cluster *clusterv1.MemberCluster) rbacv1.Subject {
	return rbacv1.Subject{
		Kind:      rbacv1.ServiceAccountKind,
		Namespace: placement.MemberNamespace(cluster.Name),
		Name:      clusterv1.BootstrapServiceAccount,
	}
}

func bootstrapAccount(cluster *clusterv1.MemberCluster) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:                   metadata(cluster, placement.MemberNamespace(cluster.Name), clusterv1.BootstrapServiceAccount),
		AutomountServiceAccountToken: ptr.To(false),
	}
}

// bootstrapRole lets an agent that has no certificate yet read the UID of its MemberCluster, which the certificate is to
// name, from the owner reference of its InternalMemberCluster.
func bootstrapRole(cluster *clusterv1.MemberCluster) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metadata(cluster, placement.MemberNamespace(cluster.Name), clusterv1.BootstrapRoleName),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"internalmemberclusters"}, ResourceNames: []string{cluster.Name}, Verbs: []string{"get"}},
		},
	}
}

func bootstrapRoleBinding(cluster *clusterv1.MemberCluster) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metadata(cluster, placement.MemberNamespace(cluster.Name), clusterv1.BootstrapRoleName),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: clusterv1.BootstrapRoleName},
		Subjects:   []rbacv1.Subject{bootstrapSubject(cluster)},
	}
}

// certificateRole lets an agent ask for a certificate and read the answer, under its own names alone.
func certificateRole(cluster *clusterv1.MemberCluster) *rbacv1.ClusterRole {
	const resource = "certificatesigningrequests"
	return &rbacv1.ClusterRole{
		ObjectMeta: metadata(cluster, "", clusterv1.CertificateRoleNamePrefix+cluster.Name),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{resource}, Verbs: []string{"create"}},
			{
				APIGroups: []string{certificatesv1.GroupName}, Resources: []string{resource}, Verbs: []string{"get", "watch"},
				ResourceNames: clusterv1.CertificateRequestNames(cluster.Name, cluster.UID),
			},
		},
	}
}

// certificateRoleBinding gives that right to the bootstrap account, for the first certificate, and to the agent itself, for
// those that follow.
func certificateRoleBinding(cluster *clusterv1.MemberCluster) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metadata(cluster, "", clusterv1.CertificateRoleNamePrefix+cluster.Name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterv1.CertificateRoleNamePrefix + cluster.Name},
		Subjects:   []rbacv1.Subject{bootstrapSubject(cluster), agentSubject(cluster)},
	}
}

// internalCluster is what the hub asks of the agent. Its clusterID is that of the cluster that joined first.
func internalCluster(cluster *clusterv1.MemberCluster) *clusterv1.InternalMemberCluster {
	spec := clusterv1.InternalMemberClusterSpec{
		State:                  clusterv1.ClusterStateJoin,
		HeartbeatPeriodSeconds: cluster.Spec.HeartbeatPeriodSeconds,
		ClusterID:              cluster.Status.ClusterID,
	}
	if cluster.DeletionTimestamp != nil {
		spec.State, spec.Workloads = clusterv1.ClusterStateLeave, cluster.Spec.LeavePolicy()
	}
	return &clusterv1.InternalMemberCluster{
		ObjectMeta: metadata(cluster, placement.MemberNamespace(cluster.Name), cluster.Name, clusterv1.FinalizerMemberRights),
		Spec:       spec,
	}
}

// adopt puts the labels, owner and finalizers of desired onto existing, leaves the others there as they are, and tells
// whether that changed anything.
func adopt(existing, desired metav1.Object) bool {
	changed := false
	labels := existing.GetLabels()
	for key, value := range desired.GetLabels() {
		if labels[key] != value {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = value
			changed = true
		}
	}
	existing.SetLabels(labels)
	owner := desired.GetOwnerReferences()[0]
	if current := metav1.GetControllerOf(existing); current == nil || current.UID != owner.UID {
		owners := slices.DeleteFunc(existing.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return ptr.Deref(o.Controller, false) || o.UID == owner.UID
		})
		existing.SetOwnerReferences(append(owners, owner))
		changed = true
	}
	if existing.GetDeletionTimestamp() == nil { // afterwards no finalizer may be added
		for _, finalizer := range desired.GetFinalizers() {
			if !slices.Contains(existing.GetFinalizers(), finalizer) {
				existing.SetFinalizers(append(existing.GetFinalizers(), finalizer))
				changed = true
			}
		}
	}
	return changed
}
