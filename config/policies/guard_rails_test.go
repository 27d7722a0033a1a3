package policies_test

import (
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const hubAccount = "system:serviceaccount:fleetwright-system:fleetwright-hub"

// named is metadata of an object that the hub makes.
func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{placementv1.LabelParentPlacement: "web"}}
}

// fleetObjects are objects that are the hub's to make, in the member namespace or a user's.
func fleetObjects(member, users string) map[string]client.Object {
	binding := placementv1.ResourceBindingSpec{State: placementv1.BindingStateUnscheduled, TargetCluster: "paris", SchedulingPolicySnapshotName: "web-0",
		ClusterDecision: placementv1.ClusterDecision{ClusterName: "paris", Reason: "picked"}}
	snapshot := placementv1.ResourceSnapshotSpec{SelectedResources: []placementv1.ResourceContent{}}
	policy := placementv1.SchedulingPolicySnapshotSpec{PolicyHash: []byte("hash")}
	claimed := policyv1alpha1.ObjectPlacementSpec{Resource: policyv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	return map[string]client.Object{
		"a member namespace":                   &corev1.Namespace{ObjectMeta: named("", "fleet-member-berlin")},
		"a member namespace of a made-up name": &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-member-"}},
		"a Work":                               &placementv1.Work{ObjectMeta: named(member, "web-work")},
		"a ClusterResourceBinding":             &placementv1.ClusterResourceBinding{ObjectMeta: named("", "web-guarded"), Spec: binding},
		"a ResourceBinding":                    &placementv1.ResourceBinding{ObjectMeta: named(users, "web-guarded"), Spec: binding},
		"a ClusterResourceSnapshot":            &placementv1.ClusterResourceSnapshot{ObjectMeta: named("", "web-7-snapshot"), Spec: snapshot},
		"a ResourceSnapshot":                   &placementv1.ResourceSnapshot{ObjectMeta: named(users, "web-7-snapshot"), Spec: snapshot},
		"a ClusterSchedulingPolicySnapshot":    &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: named("", "web-7"), Spec: policy},
		"a SchedulingPolicySnapshot":           &placementv1.SchedulingPolicySnapshot{ObjectMeta: named(users, "web-7"), Spec: policy},
		"an ObjectPlacement":                   &policyv1alpha1.ObjectPlacement{ObjectMeta: named(users, "web-guarded"), Spec: claimed},
		"a ClusterObjectPlacement":             &policyv1alpha1.ClusterObjectPlacement{ObjectMeta: named("", "web-guarded"), Spec: claimed},
		"an InternalMemberCluster": &clusterv1.InternalMemberCluster{ObjectMeta: named(member, "paris"),
			Spec: clusterv1.InternalMemberClusterSpec{State: clusterv1.ClusterStateJoin}},
		"a Role in a member namespace":           &rbacv1.Role{ObjectMeta: named(member, "more")},
		"a ServiceAccount in a member namespace": &corev1.ServiceAccount{ObjectMeta: named(member, "more")},
	}
}

func makeNamespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := framework.Client(t, hub).Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("create namespace %s: %v", name, err)
		}
	}
}

// TestGuardRails has somebody with all rights make, change and delete what is the hub's, and the hub, Kubernetes' own
// controllers and an administrator do so, too.
func TestGuardRails(t *testing.T) {
	install(t)
	makeNamespaces(t, "fleet-member-paris", "guarded")
	anna := as(t, "anna")
	system := map[string]client.Client{
		"the hub":                  as(t, hubAccount),
		"the garbage collector":    as(t, "system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccounts", "system:serviceaccounts:kube-system"),
		"the namespace controller": as(t, "system:serviceaccount:kube-system:namespace-controller", "system:serviceaccounts:kube-system"),
		"a fleet administrator":    as(t, "adam", "fleetwright:admins"),
		"a cluster administrator":  as(t, "root", "system:masters"),
	}
	refused := func(t *testing.T, what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the hub may "+what) || !strings.Contains(err.Error(), "fleetwright-guard-rails") {
			t.Errorf("%s: got %v, want it refused", what, err)
		}
	}
	for name, object := range fleetObjects("fleet-member-paris", "guarded") {
		t.Run(name, func(t *testing.T) {
			fresh := func() client.Object { return object.DeepCopyObject().(client.Object) } //nolint:forcetypeassert // it is one
			refused(t, "make", anna.Create(t.Context(), fresh()))
			for who, c := range system {
				if err := c.Create(t.Context(), fresh(), client.DryRunAll); err != nil {
					t.Errorf("%s makes it: %v", who, err)
				}
			}
			made := fresh()
			if err := system["the hub"].Create(t.Context(), made); err != nil {
				t.Fatalf("the hub makes it: %v", err)
			}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"changed":"yes"}}}`))
			refused(t, "change", anna.Patch(t.Context(), made, patch))
			refused(t, "delete", anna.Delete(t.Context(), made))
			if _, several := object.(*corev1.Namespace); !several {
				in := client.InNamespace(made.GetNamespace())
				refused(t, "delete", anna.DeleteAllOf(t.Context(), fresh(), in, client.MatchingLabels(made.GetLabels())))
			}
			for who, c := range system {
				if err := c.Patch(t.Context(), made, patch, client.DryRunAll); err != nil {
					t.Errorf("%s changes it: %v", who, err)
				}
				if err := c.Delete(t.Context(), made, client.DryRunAll); err != nil {
					t.Errorf("%s deletes it: %v", who, err)
				}
			}
			if err := system["the garbage collector"].Delete(t.Context(), made); err != nil {
				t.Errorf("the garbage collector deletes it: %v", err)
			}
		})
	}
}

// TestGuardRailsLeaveTheRestAlone: what is not the fleet's is nobody's business here, and agents write their statuses.
func TestGuardRailsLeaveTheRestAlone(t *testing.T) {
	install(t)
	makeNamespaces(t, "fleet-member-lyon", "guarded")
	anna, agent := as(t, "anna"), as(t, "fleetwright:agent:lyon")
	for what, object := range map[string]client.Object{
		"a namespace of another name":      &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "my-fleet-member-lyon"}},
		"a Role in another namespace":      &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "guarded", Name: "more"}},
		"a ServiceAccount elsewhere":       &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "guarded", Name: "more"}},
		"a ConfigMap in a member's":        &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-lyon", Name: "note"}},
		"a member, which is the user's":    &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "rome"}},
		"a placement, which is the user's": external("guarded-placement"),
	} {
		if err := anna.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	work := &placementv1.Work{ObjectMeta: named("fleet-member-lyon", "status-work")}
	internal := &clusterv1.InternalMemberCluster{ObjectMeta: named("fleet-member-lyon", "lyon"), Spec: clusterv1.InternalMemberClusterSpec{State: clusterv1.ClusterStateJoin}}
	for _, object := range []client.Object{work, internal} {
		if err := as(t, hubAccount).Create(t.Context(), object); err != nil {
			t.Fatalf("the hub makes %T: %v", object, err)
		}
		if err := agent.Status().Update(t.Context(), object); err != nil {
			t.Errorf("an agent writes the status of its %T: %v", object, err)
		}
	}
	if err := agent.Delete(t.Context(), work); !apierrors.IsForbidden(err) {
		t.Errorf("an agent deletes its Work: %v", err)
	}
}

func external(name string) *placementv1.ClusterResourcePlacement {
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "test"}}
	p.Spec.Strategy.Type = placementv1.ExternalRolloutStrategyType
	return p
}

// TestGuardRailSettings changes the one place that says who administers the fleet and whether the hub runs workloads.
func TestGuardRailSettings(t *testing.T) {
	install(t)
	makeNamespaces(t, "settings")
	g, admin := gomega.NewWithT(t), framework.Client(t, hub)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleetwright-system", Name: "fleetwright-guard-rails"}}
	set := func(data string) {
		t.Helper()
		if err := admin.Patch(framework.CleanupContext(t), settings, client.RawPatch("application/merge-patch+json", []byte(`{"data":`+data+`}`))); err != nil {
			t.Fatalf("change the settings: %v", err)
		}
	}
	anna := as(t, "anna")
	t.Cleanup(func() {
		set(`null`)
		g.Eventually(func() error {
			return anna.Create(framework.CleanupContext(t), workloads("settings")[0], client.DryRunAll)
		}, framework.Patience).
			ShouldNot(gomega.Succeed())
	})
	work := func() client.Object { return &placementv1.Work{ObjectMeta: named("settings", "web-work")} }
	makes := func(c client.Client, object client.Object) func() error {
		return func() error { return c.Create(t.Context(), object, client.DryRunAll) }
	}
	ada, platform := as(t, "ada"), as(t, "paul", "platform")
	for _, c := range []client.Client{ada, platform} {
		g.Expect(makes(c, work())()).NotTo(gomega.Succeed())
		g.Expect(makes(c, workloads("settings")[0])()).NotTo(gomega.Succeed())
	}
	set(`{"administrator-groups":"system:masters, platform","administrator-users":"ada","hub-workloads":"Allowed"}`)
	for _, c := range []client.Client{ada, platform} {
		g.Eventually(makes(c, work()), framework.Patience).Should(gomega.Succeed())
		g.Eventually(makes(c, workloads("settings")[0]), framework.Patience).Should(gomega.Succeed())
	}
	g.Eventually(makes(as(t, "adam", "fleetwright:admins"), work()), framework.Patience).ShouldNot(gomega.Succeed())
}
