package e2e

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/quickstart"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAgentUninstalled takes everything of the agent out of a cluster that never left: its process first, which is the order
// in which nobody is there to let the objects go, then the definition and the rights. Whatever was placed stays as it is.
func TestAgentUninstalled(t *testing.T) {
	hub, member := clientFor(t, fleet, "hub"), clientFor(t, fleet, "member1")
	const name = "uninstalled"
	placement := placeWeb(t, hub, name)
	before := web(name)
	framework.Await(t, member, before, "exists", func(*appsv1.Deployment) bool { return true })
	sandbox(t, "kill", quickstart.AgentProcess+"member1")
	reinstalled := false
	t.Cleanup(func() {
		if reinstalled {
			return
		}
		if err := fleet.Up(framework.CleanupContext(t)); err != nil {
			t.Errorf("install the agent again: %v", err)
		}
	})
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "appliedworks.placement.kubernetes-fleet.io"}}
	meta := metav1.ObjectMeta{Name: "fleetwright-agent"}
	for _, object := range []client.Object{crd, &rbacv1.ClusterRoleBinding{ObjectMeta: meta}, &rbacv1.ClusterRole{ObjectMeta: meta}} {
		if err := member.Delete(t.Context(), object); err != nil {
			t.Fatalf("delete %T %s: %v", object, object.GetName(), err)
		}
	}
	// The AppliedWorks wait for an agent, and the definition waits for them: their objects keep an owner that exists.
	applied := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name + "-work"}}
	framework.Await(t, member, applied, "is being deleted", func(w *placementv1.AppliedWork) bool { return w.DeletionTimestamp != nil })
	collectGarbage(t, member)
	steadyUID(t, member, name, before, "the agent was uninstalled")
	// An agent that is there again lets the objects go, and so the definition can go.
	old := crd.DeepCopy()
	if err := member.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatalf("the definition went while AppliedWorks were held: %v", err)
	}
	if err := fleet.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, member, old)
	after := web(name)
	framework.Await(t, member, after, "has no owner", func(d *appsv1.Deployment) bool { return len(d.OwnerReferences) == 0 })
	collectGarbage(t, member)
	steadyUID(t, member, name, before, "the agent let go")
	// Installed whole again, it takes up what is there in place.
	if err := fleet.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	reinstalled = true
	framework.Await(t, member, after, "has an owner again", func(d *appsv1.Deployment) bool { return len(d.OwnerReferences) == 1 })
	awaitAvailable(t, hub, placement)
	steadyUID(t, member, name, before, "the agent was installed again")
}
