// Package policies_test asks a real API server what the hub's admission policies make of people's requests.
package policies_test

import (
	"os"
	"sync"
	"testing"

	"github.com/fleetwright/fleetwright/test/framework"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var hub *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hub)) }

var installed sync.Once

// install installs the policies for the first test that asks.
func install(t *testing.T) {
	t.Helper()
	installed.Do(func() { framework.InstallPolicies(t, hub) })
}

// as is a client of a person who may do everything, but not under another's name, and in these groups.
func as(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	admin := framework.Client(t, hub)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := admin.Create(t.Context(), binding); err != nil && client.IgnoreAlreadyExists(err) != nil {
		t.Fatalf("give %s rights: %v", user, err)
	}
	config := rest.CopyConfig(hub)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return framework.Client(t, config)
}
