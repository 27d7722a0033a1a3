package membercluster

import (
	"context"
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRepairsWhatDrifts(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "drift", nil)
	ns := placement.MemberNamespace(cluster.Name)
	if cluster.Labels[clusterv1.LabelMemberName] != cluster.Name {
		t.Errorf("the MemberCluster has the labels %v", cluster.Labels)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "fleet-role-" + cluster.Name}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "fleet-rolebinding-" + cluster.Name}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "fleet-bootstrap"}}
	certificates := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleetwright:member-certificates:" + cluster.Name}}
	lease, imc := leaseOf(cluster.Name), internalOf(cluster.Name)
	for _, object := range []client.Object{role, binding, account, certificates, lease, imc} {
		framework.Await(t, c, object, "exists", func(client.Object) bool { return true })
	}
	rules, subjects := role.Rules, binding.Subjects

	for what, tc := range map[string]struct {
		object client.Object
		spoil  func() error
		good   func() bool
	}{
		"rules": {role, func() error {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
			return c.Update(t.Context(), role)
		}, func() bool { return cmp.Equal(rules, role.Rules) }},
		"label": {role, func() error { role.Labels = nil; return c.Update(t.Context(), role) }, func() bool {
			return role.Labels[clusterv1.LabelIsFleetResource] == "true"
		}},
		"subjects": {binding, func() error { binding.Subjects = nil; return c.Update(t.Context(), binding) }, func() bool { return cmp.Equal(subjects, binding.Subjects) }},
		"owner":    {lease, func() error { lease.OwnerReferences = nil; return c.Update(t.Context(), lease) }, func() bool { return metav1.IsControlledBy(lease, cluster) }},
		"request": {imc, func() error {
			imc.Spec.State, imc.Spec.HeartbeatPeriodSeconds = clusterv1.ClusterStateLeave, 5
			return c.Update(t.Context(), imc)
		}, func() bool {
			return imc.Spec.State == clusterv1.ClusterStateJoin && imc.Spec.HeartbeatPeriodSeconds == 60
		}},
	} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(tc.object), tc.object); err != nil {
			t.Fatal(err)
		}
		if err := tc.spoil(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		framework.Await(t, c, tc.object, "has its "+what+" again", func(client.Object) bool { return tc.good() })
	}
	for _, object := range []client.Object{role, binding, account, certificates, lease, imc} {
		old := object.GetUID()
		if err := c.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		framework.Await(t, c, object, "was made again", func(o client.Object) bool { return o.GetUID() != old && o.GetDeletionTimestamp() == nil })
	}
	// What a binding refers to cannot be changed: it is made again.
	if err := c.Delete(t.Context(), certificates); err != nil {
		t.Fatal(err)
	}
	other := certificateRoleBinding(cluster)
	other.RoleRef.Name = "cluster-admin"
	if err := c.Create(t.Context(), other); err == nil { // the controller may have been faster
		framework.Await(t, c, certificates, "gives its own role again", func(b *rbacv1.ClusterRoleBinding) bool {
			return b.RoleRef.Name == "fleetwright:member-certificates:"+cluster.Name
		})
	}
}

func TestRights(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "rights", nil)
	framework.Await(t, c, bootstrapAccount(cluster), "exists", func(*corev1.ServiceAccount) bool { return true })
	agentUser := clusterv1.AgentUser(cluster.Name, cluster.UID)
	ns := placement.MemberNamespace(cluster.Name)
	bootstrapUser := "system:serviceaccount:" + ns + ":fleet-bootstrap"
	csr := clusterv1.CertificateRequestNames(cluster.Name, cluster.UID)[3]
	for _, tc := range []struct {
		who                                                 string
		verb, group, resource, subresource, namespace, name string
		want                                                bool
	}{
		{who: agentUser, verb: "list", group: placementv1.GroupVersion.Group, resource: "works", namespace: ns, want: true},
		{who: agentUser, verb: "watch", group: placementv1.GroupVersion.Group, resource: "works", namespace: ns, want: true},
		{who: agentUser, verb: "patch", group: placementv1.GroupVersion.Group, resource: "works", subresource: "status", namespace: ns, want: true},
		{who: agentUser, verb: "patch", group: placementv1.GroupVersion.Group, resource: "works", namespace: ns},
		{who: agentUser, verb: "delete", group: placementv1.GroupVersion.Group, resource: "works", namespace: ns},
		{who: agentUser, verb: "list", group: placementv1.GroupVersion.Group, resource: "works", namespace: "fleet-member-other"},
		{who: agentUser, verb: "list", group: placementv1.GroupVersion.Group, resource: "works"},
		{who: agentUser, verb: "get", group: placementv1.GroupVersion.Group, resource: "clusterresourcebindings"},
		{who: agentUser, verb: "update", group: clusterv1.GroupVersion.Group, resource: "internalmemberclusters", subresource: "status", namespace: ns, want: true},
		{who: agentUser, verb: "update", group: clusterv1.GroupVersion.Group, resource: "internalmemberclusters", namespace: ns},
		{who: agentUser, verb: "get", group: clusterv1.GroupVersion.Group, resource: "memberclusters", name: cluster.Name},
		{who: agentUser, verb: "patch", group: coordinationv1.GroupName, resource: "leases", namespace: ns, name: clusterv1.HeartbeatLease, want: true},
		{who: agentUser, verb: "patch", group: coordinationv1.GroupName, resource: "leases", namespace: ns, name: "other"},
		{who: agentUser, verb: "create", group: coordinationv1.GroupName, resource: "leases", namespace: ns},
		{who: agentUser, verb: "get", group: coordinationv1.GroupName, resource: "leases", namespace: ns, name: clusterv1.HeartbeatLease},
		{who: agentUser, verb: "update", group: coordinationv1.GroupName, resource: "leases", namespace: ns, name: clusterv1.HeartbeatLease},
		{who: agentUser, verb: "update", group: placementv1.GroupVersion.Group, resource: "works", subresource: "status", namespace: ns},
		{who: agentUser, verb: "create", group: "events.k8s.io", resource: "events", namespace: ns, want: true},
		{who: agentUser, verb: "patch", group: "events.k8s.io", resource: "events", namespace: ns, want: true},
		{who: agentUser, verb: "create", resource: "events", namespace: ns},
		{who: agentUser, verb: "get", resource: "secrets", namespace: ns},
		{who: agentUser, verb: "create", group: "certificates.k8s.io", resource: "certificatesigningrequests", want: true},
		{who: agentUser, verb: "get", group: "certificates.k8s.io", resource: "certificatesigningrequests", name: csr, want: true},
		{who: agentUser, verb: "watch", group: "certificates.k8s.io", resource: "certificatesigningrequests", name: csr, want: true},
		{who: agentUser, verb: "get", group: "certificates.k8s.io", resource: "certificatesigningrequests", name: "other"},
		{who: agentUser, verb: "update", group: "certificates.k8s.io", resource: "certificatesigningrequests", subresource: "approval", name: csr},
		{who: bootstrapUser, verb: "create", group: "certificates.k8s.io", resource: "certificatesigningrequests", want: true},
		{who: bootstrapUser, verb: "get", group: "certificates.k8s.io", resource: "certificatesigningrequests", name: csr, want: true},
		{who: bootstrapUser, verb: "get", group: clusterv1.GroupVersion.Group, resource: "internalmemberclusters", namespace: ns, name: cluster.Name, want: true},
		{who: bootstrapUser, verb: "list", group: placementv1.GroupVersion.Group, resource: "works", namespace: ns},
		{who: clusterv1.AgentUser(cluster.Name, "another-uid"), verb: "list", group: placementv1.GroupVersion.Group, resource: "works", namespace: ns},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: tc.who, Groups: []string{"system:authenticated", clusterv1.AgentsGroup, "system:serviceaccounts"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: tc.verb, Group: tc.group, Resource: tc.resource, Subresource: tc.subresource, Namespace: tc.namespace, Name: tc.name,
			},
		}}
		if err := c.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != tc.want {
			t.Errorf("%s may %s %s %s/%s in %q, name %q: %v, want %v", tc.who, tc.verb, tc.group, tc.resource, tc.subresource, tc.namespace, tc.name, review.Status.Allowed, tc.want)
		}
	}
}

func TestIdentity(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "identity", func(m *clusterv1.MemberCluster) {
		m.Spec.Identity = &rbacv1.Subject{Kind: rbacv1.UserKind, Name: "jane", APIGroup: rbacv1.GroupName}
	})
	binding := agentRoleBinding(cluster)
	subjects := func(want ...rbacv1.Subject) func(*rbacv1.RoleBinding) bool {
		return func(b *rbacv1.RoleBinding) bool { return cmp.Equal(want, b.Subjects) }
	}
	framework.Await(t, c, binding, "gives rights to the identity", subjects(rbacv1.Subject{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "jane"}))
	account := bootstrapAccount(cluster)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(account), account); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("with an identity there is a bootstrap account: %v", err)
	}

	set := func(identity *rbacv1.Subject) {
		t.Helper()
		before := cluster.DeepCopy()
		cluster.Spec.Identity = identity
		if err := c.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	set(nil)
	framework.Await(t, c, binding, "gives rights to the certificate's user", subjects(rbacv1.Subject{
		Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: clusterv1.AgentUser(cluster.Name, cluster.UID),
	}))
	framework.Await(t, c, account, "exists", func(*corev1.ServiceAccount) bool { return true })
	set(&rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "agents", Name: "member"})
	framework.Await(t, c, binding, "gives rights to the service account", subjects(rbacv1.Subject{Kind: "ServiceAccount", Namespace: "agents", Name: "member"}))
	framework.AwaitGone(t, c, account)
	framework.AwaitGone(t, c, certificateRole(cluster))
}

func TestJoinLossAndRecovery(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "loss", nil)
	imc := internalOf(cluster.Name)
	join(t, c, cluster, "id")
	framework.Await(t, c, imc, "says which cluster joined", func(i *clusterv1.InternalMemberCluster) bool { return i.Spec.ClusterID == "id" })

	// Renewals of the Lease alone, and passes without news, write nothing.
	report(t, c, cluster.Name, "id", sayJoined)
	framework.Await(t, c, cluster, "has the agent's account", func(m *clusterv1.MemberCluster) bool {
		condition := agentCondition(m.Status.AgentStatus, clusterv1.ConditionJoined)
		return condition.ObservedGeneration == m.Generation
	})
	version := cluster.ResourceVersion
	for range 3 {
		renew(t, c, cluster.Name)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.ResourceVersion != version {
		t.Errorf("renewals of the Lease wrote the MemberCluster: %s after %s", cluster.ResourceVersion, version)
	}

	// Time goes by, and nothing is heard of the agent.
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, framework.Patience, true, func(ctx context.Context) (bool, error) {
		hubClock.SetTime(hubClock.Now().Add(time.Minute))
		if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return false, err
		}
		wake(t, c, cluster, hubClock.Now().String())
		return meta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, clusterv1.ConditionJoined, metav1.ConditionUnknown), nil
	})
	if err != nil {
		t.Fatalf("wait until the silent agent is lost: %v", err)
	}
	if got := summary(agentCondition(cluster.Status.AgentStatus, clusterv1.ConditionHealthy)); got != "Unknown/"+clusterv1.ReasonHeartbeatLost {
		t.Errorf("the lost agent is %s", got)
	}
	renew(t, c, cluster.Name)
	awaitJoined(t, c, cluster, "True/"+clusterv1.ReasonJoined)
}

func TestSecondClusterIsRefused(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "second", nil)
	join(t, c, cluster, "first")
	report(t, c, cluster.Name, "intruder", sayJoined)
	framework.Await(t, c, cluster, "tells of the second cluster", func(m *clusterv1.MemberCluster) bool {
		condition := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionClusterIDConflict)
		return condition != nil && strings.Contains(condition.Message, "intruder")
	})
	imc := internalOf(cluster.Name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(imc), imc); err != nil {
		t.Fatal(err)
	}
	if cluster.Status.ClusterID != "first" || imc.Spec.ClusterID != "first" {
		t.Errorf("the member is taken to be %s, and the agent is told %s", cluster.Status.ClusterID, imc.Spec.ClusterID)
	}
	report(t, c, cluster.Name, "first", sayJoined)
	hubClock.SetTime(hubClock.Now().Add(conflictMemory + time.Second))
	wake(t, c, cluster, "later")
	framework.Await(t, c, cluster, "tells of it no more", func(m *clusterv1.MemberCluster) bool {
		return meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionClusterIDConflict) == nil
	})
	// One that was refused a certificate is told of by other means.
	controller.SecondCluster(t.Context(), cluster.Name, "another")
	framework.Await(t, c, cluster, "tells of another", func(m *clusterv1.MemberCluster) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ConditionClusterIDConflict)
	})
}

func TestLeave(t *testing.T) {
	for name, tc := range map[string]struct {
		joins bool
		ends  func(t *testing.T, c client.WithWatch, cluster *clusterv1.MemberCluster)
	}{
		"never-joined": {},
		"agent-leaves": {joins: true, ends: func(t *testing.T, c client.WithWatch, cluster *clusterv1.MemberCluster) {
			t.Helper()
			report(t, c, cluster.Name, "id", sayLeft)
		}},
		"agent-silent": {joins: true, ends: func(t *testing.T, c client.WithWatch, cluster *clusterv1.MemberCluster) {
			t.Helper()
			hubClock.SetTime(hubClock.Now().Add(16 * time.Minute))
			wake(t, c, cluster, "patience ends")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := hub(t)
			cluster := newMember(t, c, name, func(m *clusterv1.MemberCluster) {
				m.Spec.DeleteOptions = &clusterv1.DeleteOptions{Workloads: clusterv1.WorkloadsRemove}
			})
			work := newWork(t, c, cluster.Name, "w")
			if tc.joins {
				hubClock.SetTime(time.Now())
				join(t, c, cluster, "id")
			}
			if err := c.Delete(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
			if tc.joins {
				imc := internalOf(cluster.Name)
				framework.Await(t, c, imc, "asks the agent to leave", func(i *clusterv1.InternalMemberCluster) bool {
					return i.Spec.State == clusterv1.ClusterStateLeave && i.Spec.Workloads == clusterv1.WorkloadsRemove
				})
				framework.Await(t, c, cluster, "says what it waits for", func(m *clusterv1.MemberCluster) bool {
					return strings.Contains(meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionReadyToJoin).Message, "waits for its agent to remove")
				})
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil || work.DeletionTimestamp != nil {
					t.Errorf("a Work went before the agent had left: %v", err)
				}
				tc.ends(t, c, cluster)
			}
			emptyNamespace(t, c, placement.MemberNamespace(cluster.Name))
			framework.AwaitGone(t, c, cluster)
			framework.AwaitGone(t, c, work)
			framework.AwaitGone(t, c, certificateRole(cluster))
			framework.AwaitGone(t, c, certificateRoleBinding(cluster))
			rejoin(t, c, cluster)
		})
	}
}

// rejoin makes a MemberCluster of the same name again: another cluster may join as it, and the agent of the earlier one has no
// rights any more.
func rejoin(t *testing.T, c client.WithWatch, earlier *clusterv1.MemberCluster) {
	t.Helper()
	again := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: earlier.Name}}
	if err := c.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, c, again, "is ready to join again", func(m *clusterv1.MemberCluster) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ConditionReadyToJoin)
	})
	join(t, c, again, "another-id")
	if again.Status.ClusterID != "another-id" {
		t.Errorf("the member is taken to be %q", again.Status.ClusterID)
	}
	binding := agentRoleBinding(again)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
		t.Fatal(err)
	}
	if got := binding.Subjects[0].Name; got != clusterv1.AgentUser(again.Name, again.UID) || got == clusterv1.AgentUser(earlier.Name, earlier.UID) {
		t.Errorf("rights are given to %s", got)
	}
}

func TestNamespaceDeletedByAccident(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "accident", nil)
	join(t, c, cluster, "id")
	work := newWork(t, c, cluster.Name, "w")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(cluster.Name)}}
	if err := c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	deleteContent(t, c, namespace.Name)
	framework.Await(t, c, cluster, "says so", func(m *clusterv1.MemberCluster) bool {
		condition := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionReadyToJoin)
		return condition.Status == metav1.ConditionFalse && strings.Contains(condition.Message, "is being deleted")
	})
	// The agent can still answer for its Works.
	for _, object := range []client.Object{agentRole(cluster), agentRoleBinding(cluster), internalOf(cluster.Name)} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("while there are Works: %v", err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatal(err)
	}
	work.Finalizers = nil
	if err := c.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	emptyNamespace(t, c, namespace.Name)
	framework.Await(t, c, namespace, "was made again", func(n *corev1.Namespace) bool { return n.DeletionTimestamp == nil })
	imc := internalOf(cluster.Name)
	framework.Await(t, c, imc, "remembers the member", func(i *clusterv1.InternalMemberCluster) bool { return i.Spec.ClusterID == "id" })
	framework.Await(t, c, cluster, "is ready again", func(m *clusterv1.MemberCluster) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ConditionReadyToJoin)
	})
	if joined := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionJoined); joined.Status != metav1.ConditionTrue {
		t.Errorf("the member is %s", summary(joined))
	}
}
