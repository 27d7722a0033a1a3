package policies_test

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestBindings: nobody empties clusters by deleting bindings; the hub does so where a placement is deleted.
func TestBindings(t *testing.T) {
	install(t)
	const refusal = "would remove from cluster paris what placement web has placed there. If that is what you want, delete the placement, or change its policy"
	anna, hubItself := as(t, "anna", "fleetwright:admins"), as(t, "system:serviceaccount:fleetwright-system:fleetwright-hub")
	binding := func(name string, state placementv1.BindingState) *placementv1.ClusterResourceBinding {
		b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{placementv1.LabelParentPlacement: "web"}}}
		b.Spec = placementv1.ResourceBindingSpec{State: state, TargetCluster: "paris", SchedulingPolicySnapshotName: "web-0",
			ClusterDecision: placementv1.ClusterDecision{ClusterName: "paris", Reason: "picked"}}
		if err := anna.Create(t.Context(), b); err != nil {
			t.Fatalf("create binding %s: %v", name, err)
		}
		return b
	}
	refused := func(g gomega.Gomega, err error) {
		g.Expect(apierrors.IsForbidden(err) && strings.Contains(err.Error(), refusal)).To(gomega.BeTrue(), "%v", err)
	}
	g := gomega.NewWithT(t)
	probe := binding("probe", placementv1.BindingStateBound)
	g.Eventually(func(g gomega.Gomega) { refused(g, anna.Delete(t.Context(), probe, client.DryRunAll)) }, framework.Patience).Should(gomega.Succeed())
	var all []*placementv1.ClusterResourceBinding
	for name, state := range map[string]placementv1.BindingState{
		"scheduled": placementv1.BindingStateScheduled, "bound": placementv1.BindingStateBound,
	} {
		b := binding(name, state)
		refused(g, anna.Delete(t.Context(), b))
		all = append(all, b)
	}
	refused(g, anna.DeleteAllOf(t.Context(), &placementv1.ClusterResourceBinding{}))
	for _, b := range append(all, probe) {
		if err := hubItself.Delete(t.Context(), b); err != nil {
			t.Errorf("the hub deletes binding %s: %v", b.Name, err)
		}
	}
	if err := anna.Delete(t.Context(), binding("unscheduled", placementv1.BindingStateUnscheduled)); err != nil {
		t.Errorf("a binding that is not wanted any more: %v", err)
	}
	bare := binding("bare", placementv1.BindingStateBound)
	bare.Labels = nil
	if err := anna.Update(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	if err := anna.Delete(t.Context(), bare); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "what placement unknown has placed") {
		t.Errorf("a binding without its label: %v", err)
	}
}
