package apply

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func roleOf(name string, labels map[string]string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	}
}

// testOwnOfCluster has a hub place roles that every cluster has of its own, which today's hub would not, and give them up:
// once by another snapshot, once with the Work. The member keeps them.
func testOwnOfCluster(t *testing.T) {
	a := startAgent(t, "builtin")
	own := []*rbacv1.ClusterRole{
		roleOf("view", nil), roleOf("system:node", nil), roleOf("builtin-marked", map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}),
	}
	placed := roleOf("builtin-placed", nil)
	stays := func(role *rbacv1.ClusterRole) {
		t.Helper()
		found := &rbacv1.ClusterRole{}
		if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(role), found); err != nil {
			t.Errorf("ClusterRole %s: %v", role.Name, err)
		}
		if len(found.OwnerReferences) > 0 || found.DeletionTimestamp != nil {
			t.Errorf("ClusterRole %s is left with owners %v, deleted at %v", role.Name, found.OwnerReferences, found.DeletionTimestamp)
		}
	}
	w := a.create(a.work("builtin", "work", 1, own[0], own[1], own[2], placed))
	a.await(w, placementv1.ConditionAvailable, available)
	a.change(w, "1", own[1], own[2])
	framework.AwaitGone(t, a.member, placed)
	a.await(w, placementv1.ConditionAvailable, available)
	framework.Await(t, a.member, roleOf("view", nil), "is owned by nobody", func(r *rbacv1.ClusterRole) bool { return len(r.OwnerReferences) == 0 })
	stays(own[0])

	a.remove(w, true, "True/ResourcesReleased")
	for _, role := range own {
		stays(role)
	}
	if c := w.Status.Conditions; !strings.Contains(c[len(c)-1].Message, "ClusterRole system:node stays: Kubernetes makes it in every cluster") {
		t.Errorf("the hub is told %q", c[len(c)-1].Message)
	}
}
