package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestHubIsGuarded has somebody with all rights, but not an administrator of the fleet, change and delete what is the hub's, and
// run a Pod on the hub, which a switch allows.
func TestHubIsGuarded(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	const name = "guarded"
	placeWeb(t, hub, name)
	create(t, hub, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "e2e-anna"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "anna"}}})
	anna := as(t, "anna")
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-member1", Name: name + "-work"}}
	framework.Await(t, hub, work, "exists", func(*placementv1.Work) bool { return true })
	bindings := &placementv1.ClusterResourceBindingList{}
	if err := hub.List(t.Context(), bindings, client.MatchingLabels{placementv1.LabelParentPlacement: name}); err != nil || len(bindings.Items) != 3 {
		t.Fatalf("list the placement's bindings: %v, %d of them", err, len(bindings.Items))
	}
	binding := &bindings.Items[0]
	snapshot := &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name + "-0-snapshot"}}
	mark := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"by":"anna"}}}`))
	for what, err := range map[string]error{
		"change a Work":             anna.Patch(t.Context(), work, mark),
		"change a binding":          anna.Patch(t.Context(), binding, mark),
		"change a snapshot":         anna.Patch(t.Context(), snapshot, mark),
		"change a member namespace": anna.Patch(t.Context(), namespace("fleet-member-member1"), mark),
		"make a member namespace":   anna.Create(t.Context(), namespace("fleet-member-anna")),
		"delete a Work":             anna.Delete(t.Context(), work),
		"delete a binding":          anna.Delete(t.Context(), binding),
		"delete policy snapshots":   anna.DeleteAllOf(t.Context(), &placementv1.ClusterSchedulingPolicySnapshot{}),
		"delete all snapshots":      anna.DeleteAllOf(t.Context(), &placementv1.ClusterResourceSnapshot{}),
		"delete a member namespace": anna.Delete(t.Context(), namespace("fleet-member-member1")),
	} {
		verb, _, _ := strings.Cut(what, " ")
		if !apierrors.IsForbidden(err) || (!strings.Contains(err.Error(), "only the hub may "+verb) && !strings.Contains(err.Error(), "deleting binding")) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := hub.Patch(t.Context(), work, mark, client.DryRunAll); err != nil {
		t.Errorf("an administrator changes a Work: %v", err)
	}
	checkHubWorkloads(t, hub, name)
}

// checkHubWorkloads looks whether Pods are refused on the hub until the switch lets them in. A value that the switch does not
// know lets nothing in.
func checkHubWorkloads(t *testing.T, hub client.Client, namespace string) {
	t.Helper()
	run := func(namespace string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
		return hub.Create(t.Context(), pod, client.DryRunAll)
	}
	refused := func(when string) {
		t.Helper()
		if err := run(namespace); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "hub-workloads") {
			t.Errorf("run a Pod on the hub, %s: %v", when, err)
		}
	}
	// What the switch is set to takes effect a moment later, and nothing but trying tells when.
	until := func(what string, done func(error) bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, framework.Patience, true, func(context.Context) (bool, error) { return done(run(namespace)), nil })
		if err != nil {
			t.Fatalf("wait until Pods are %s: %v", what, err)
		}
	}
	refused("as it comes")
	if err := run("fleetwright-system"); apierrors.IsForbidden(err) && strings.Contains(err.Error(), "hub-workloads") {
		t.Errorf("run a Pod in a namespace of the system: %v", err)
	}
	rails := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleetwright-system", Name: "fleetwright-guard-rails"}}
	t.Cleanup(func() {
		off := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"hub-workloads":null}}`))
		if err := hub.Patch(framework.CleanupContext(t), rails, off); err != nil {
			t.Errorf("set the switch back: %v", err)
		}
	})
	change(t, hub, rails, `{"data":{"hub-workloads":"allowed, please"}}`)
	refused("with a value that the switch does not know")
	change(t, hub, rails, `{"data":{"hub-workloads":"Allowed"}}`)
	until("let in", func(err error) bool { return err == nil || !strings.Contains(err.Error(), "hub-workloads") })
	change(t, hub, rails, `{"data":{"hub-workloads":"Refused"}}`)
	until("refused again", apierrors.IsForbidden)
}
