package e2e

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// as is somebody else on the hub.
func as(t testing.TB, user string) client.WithWatch {
	t.Helper()
	_, config, err := fleet.Client("hub")
	if err != nil {
		t.Fatal(err)
	}
	other := rest.CopyConfig(config)
	other.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.NewWithWatch(other, client.Options{Scheme: clientFor(t, fleet, "hub").Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSelectionScopes takes a namespace alone, some of what is in it, and all, in one placement after the other; that a
// ResourcePlacement can fill a namespace that is placed alone is TestSeedOneNamespaced, and what becomes of an object that two
// placements select is TestTwoPlacementsOfOneObject.
func TestSelectionScopes(t *testing.T) {
	t.Parallel()
	hub, member := clientFor(t, fleet, "hub"), clientFor(t, fleet, "member1")
	const name = "scopes"
	create(t, hub, namespace(name))
	picked := configMap(name, "picked", "value1")
	picked.Labels = map[string]string{"tier": "web"}
	create(t, hub, picked)
	create(t, hub, configMap(name, "left", "value1"))
	placement := create(t, hub, placeOnly(name, name))
	// has waits until the placement has come as far as it is, and tells which of the two are in the member.
	has := func(want string) {
		t.Helper()
		framework.Await(t, hub, placement, "is available as it is now", func(p *placementv1.ClusterResourcePlacement) bool {
			c := meta.FindStatusCondition(p.Status.Conditions, "ClusterResourcePlacementAvailable")
			return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == p.Generation
		})
		if got := valueOf(t, member, name, "picked") + "," + valueOf(t, member, name, "left"); got != want {
			t.Errorf("in the member are %q, want %q", got, want)
		}
	}
	has(",")
	change(t, hub, placement, `{"spec":{"resourceSelectors":[
		{"group":"","version":"v1","kind":"Namespace","name":"scopes","selectionScope":"NamespaceWithResourceSelectors"},
		{"group":"","version":"v1","kind":"ConfigMap","labelSelector":{"matchLabels":{"tier":"web"}}}]}}`)
	awaitValue(t, member, name, "picked", "value1")
	has("value1,")
	change(t, hub, placement, `{"spec":{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"scopes","selectionScope":"NamespaceWithResources"}]}}`)
	awaitValue(t, member, name, "left", "value1")
	has("value1,value1")
	change(t, hub, placement, `{"spec":{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"scopes","selectionScope":"NamespaceOnly"}]}}`)
	awaitGone(t, member, name, "left")
	awaitGone(t, member, name, "picked")

	wrong := placeOnly("scopes-wrong", name)
	wrong.Spec.ResourceSelectors[0] = placementv1.ResourceSelector{Version: "v1", Kind: "Namespace",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}, SelectionScope: placementv1.SelectionScopeNamespaceWithResourceSelectors}
	if err := hub.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "must select by name (not by label)") {
		t.Errorf("some of what is in namespaces with a label: %v", err)
	}
}

// TestStatusInTheNamespace has somebody who may do nothing but view a namespace read how the placement of it goes.
func TestStatusInTheNamespace(t *testing.T) {
	t.Parallel()
	hub := clientFor(t, fleet, "hub")
	const name = "shared-status"
	create(t, hub, namespace(name))
	create(t, hub, configMap(name, "test-cm", "value1"))
	create(t, hub, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "view"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "berta"}}})
	p := placeNamespace(name, name, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.StatusReportingScope = placementv1.StatusReportingNamespaceAccessible
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "another"})
	if err := hub.Create(t.Context(), p); err == nil || !strings.Contains(err.Error(), "exactly one resourceSelector with kind 'Namespace' is required") {
		t.Errorf("the status of two namespaces in both of them: %v", err)
	}
	p.Spec.ResourceSelectors = p.Spec.ResourceSelectors[:1]
	placement := create(t, hub, p)
	berta := as(t, "berta")
	shared := &placementv1.ClusterResourcePlacementStatus{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	framework.Await(t, berta, shared, "says that all is available in three members", func(s *placementv1.ClusterResourcePlacementStatus) bool {
		return condition(s.SourceStatus.Conditions, "ClusterResourcePlacementAvailable") == "True/ResourceAvailable" && len(s.SourceStatus.PlacementStatuses) == 3
	})
	if err := berta.Get(t.Context(), client.ObjectKeyFromObject(placement), placement); !apierrors.IsForbidden(err) {
		t.Errorf("who may view the namespace reads the placement itself: %v", err)
	}
	framework.Await(t, hub, placement, "says that its status is in the namespace", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementStatusSynced") == "True/StatusSyncSucceeded"
	})
	if err := hub.Delete(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, berta, shared)
}
