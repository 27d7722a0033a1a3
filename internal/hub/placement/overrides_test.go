package placement_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A cluster that waits only because an override was edited says so in the placement's status, though nothing is written for
// it while the budget is spent.
func TestEditedOverrideIsExplained(t *testing.T) {
	f := newFleet(t, "tuned1", "tuned2")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: tuned}}`,
		`{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourceOverride, metadata: {name: tuned}, spec: {placement: {name: tuned},
		clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: tuned}],
		policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: add, path: /metadata/annotations, value: {size: small}}]}]}}}`)
	f.placeAs("tuned", placementv1.PlacementSpec{
		ResourceSelectors: []placementv1.ResourceSelector{namespaceSelector("tuned")},
		Strategy: placementv1.RolloutStrategy{Type: placementv1.RollingUpdateRolloutStrategyType, RollingUpdate: &placementv1.RollingUpdateConfig{
			MaxUnavailable: ptr.To(intstr.FromString("100%")),
		}},
	})
	f.Eventually(f.condition("tuned", placementv1.ConditionAvailable)).WithTimeout(patience).Should(HavePrefix("True/"))

	f.edit("tuned", func(p *placementv1.ClusterResourcePlacement) {
		p.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	})
	o := &placementv1.ClusterResourceOverride{}
	o.Name = "tuned"
	f.Expect(f.Patch(f.t.Context(), o, client.RawPatch("application/json-patch+json",
		[]byte(`[{"op":"replace","path":"/spec/policy/overrideRules/0/jsonPatchOverrides/0/value","value":{"size":"large"}}]`)))).To(Succeed())
	f.Eventually(f.condition("tuned", placementv1.ConditionRolloutStarted)).WithTimeout(patience).Should(Equal("False/" + placementv1.ReasonRolloutNotStartedYet))
	for _, row := range f.placement("tuned").Status.PlacementStatuses {
		f.Expect(row.Conditions).To(ContainElement(And(
			HaveField("Type", placementv1.ConditionRolloutStarted),
			HaveField("Message", And(ContainSubstring("the cluster has other overrides than it is to get now"), ContainSubstring("maxUnavailable is 0"))),
		)), row.ClusterName)
	}

	f.edit("tuned", func(p *placementv1.ClusterResourcePlacement) {
		p.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("100%"))
	})
	f.Eventually(f.condition("tuned", placementv1.ConditionAvailable)).WithTimeout(patience).Should(HavePrefix("True/"))
}
