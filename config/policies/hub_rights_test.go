package policies_test

import (
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestHubRights: whoever has the hub's token, and more rights than the hub's role gives, writes the namespaces and RBAC of
// members, and no others. Of anybody else this asks nothing.
func TestHubRights(t *testing.T) {
	install(t)
	makeNamespaces(t, "fleet-member-nice", "rights")
	hubItself, root := as(t, hubAccount), as(t, "root", "system:masters")
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}
	clusterRole := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"}
	const certificates = clusterv1.CertificateRoleNamePrefix
	for what, tc := range map[string]struct {
		object  client.Object
		allowed bool
	}{
		"a role of a member":                    {&rbacv1.Role{ObjectMeta: meta("fleet-member-nice", clusterv1.RoleNamePrefix+"nice")}, true},
		"a role binding of a member":            {&rbacv1.RoleBinding{ObjectMeta: meta("fleet-member-nice", clusterv1.RoleBindingNamePrefix+"nice"), RoleRef: role}, true},
		"the account of a member":               {&corev1.ServiceAccount{ObjectMeta: meta("fleet-member-nice", clusterv1.BootstrapServiceAccount)}, true},
		"a cluster role of a member":            {&rbacv1.ClusterRole{ObjectMeta: meta("", certificates+"nice")}, true},
		"a cluster role binding of a member":    {&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", certificates+"nice"), RoleRef: clusterRole}, true},
		"a namespace of a member":               {&corev1.Namespace{ObjectMeta: meta("", "fleet-member-cannes")}, true},
		"a role elsewhere":                      {&rbacv1.Role{ObjectMeta: meta("rights", clusterv1.RoleNamePrefix+"nice")}, false},
		"a role binding elsewhere":              {&rbacv1.RoleBinding{ObjectMeta: meta("rights", "more"), RoleRef: role}, false},
		"an account elsewhere":                  {&corev1.ServiceAccount{ObjectMeta: meta("rights", clusterv1.BootstrapServiceAccount)}, false},
		"a cluster role of another name":        {&rbacv1.ClusterRole{ObjectMeta: meta("", "more")}, false},
		"a cluster role binding, to everything": {&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "fleetwright-more"), RoleRef: clusterRole}, false},
		"a namespace of another name":           {&corev1.Namespace{ObjectMeta: meta("", "my-fleet-member-x")}, false},
	} {
		t.Run(what, func(t *testing.T) {
			g := gomega.NewWithT(t)
			judge := func(did string, err error) {
				t.Helper()
				if refused := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the hub may not write"); (err == nil) != tc.allowed || refused == tc.allowed {
					t.Errorf("%s: got %v, want it allowed: %t", did, err, tc.allowed)
				}
			}
			fresh := func() client.Object { return tc.object.DeepCopyObject().(client.Object) } //nolint:forcetypeassert // it is one
			probe := &rbacv1.ClusterRole{ObjectMeta: meta("", "probe")}
			g.Eventually(func() error { return hubItself.Create(t.Context(), probe.DeepCopy(), client.DryRunAll) }, framework.Patience).ShouldNot(gomega.Succeed())
			if _, namespace := tc.object.(*corev1.Namespace); namespace {
				g.Expect(hubItself.Create(t.Context(), fresh(), client.DryRunAll)).To(gomega.Succeed(), "it makes that of ClusterProfiles, whatever its name")
			} else {
				judge("create", hubItself.Create(t.Context(), fresh(), client.DryRunAll))
			}
			made := fresh()
			if err := root.Create(t.Context(), made); err != nil {
				t.Fatalf("an administrator makes it: %v", err)
			}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"changed":"yes"}}}`))
			judge("change", hubItself.Patch(t.Context(), made, patch, client.DryRunAll))
			judge("delete", hubItself.Delete(t.Context(), fresh(), client.DryRunAll))
			if err := root.Delete(t.Context(), made); err != nil {
				t.Errorf("an administrator deletes it: %v", err)
			}
		})
	}
}
