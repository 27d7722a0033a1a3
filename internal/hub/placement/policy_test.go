package placement_test

import (
	"fmt"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rows are the clusters of a placement's rows, and those of rows without one the reason why.
func (f *fleet) rows(name string) func() []string {
	return func() []string {
		rows := []string{}
		for _, row := range f.placement(name).Status.PlacementStatuses {
			if row.ClusterName == "" {
				rows = append(rows, row.Conditions[0].Reason+": "+row.Conditions[0].Message)
			} else {
				rows = append(rows, row.ClusterName)
			}
		}
		return rows
	}
}

// policies are, by name, the policy snapshots of a placement with the number of clusters that each asks for.
func (f *fleet) policies(name string) []string {
	f.t.Helper()
	var list placementv1.ClusterSchedulingPolicySnapshotList
	f.Expect(f.List(f.t.Context(), &list, client.MatchingLabels{placementv1.LabelParentPlacement: name})).To(Succeed())
	var all []string
	for _, s := range list.Items {
		if s.Spec.Policy != nil && s.Spec.Policy.NumberOfClusters != nil {
			f.t.Errorf("policy snapshot %s has a number that cannot change", s.Name)
		}
		all = append(all, fmt.Sprint(s.Name, "=", s.Annotations[placementv1.AnnotationNumberOfClusters]))
	}
	return all
}

// PickN from end to end: the number changes without a new policy snapshot, what is missing is told of, what joins fills it, and
// fewer clusters leave nothing behind.
func TestPickN(t *testing.T) {
	f := newFleet(t, "pickn1", "pickn2")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: pickn}}`)
	f.placeWith("pickn", &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](1)}, namespaceSelector("pickn"))
	f.Eventually(f.condition("pickn", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.Expect(f.rows("pickn")()).To(Equal([]string{"pickn2"}))
	number := func(n int32) {
		f.edit("pickn", func(p *placementv1.ClusterResourcePlacement) { p.Spec.Policy.NumberOfClusters = &n })
	}
	number(3)
	f.Eventually(f.condition("pickn", "Scheduled")).WithTimeout(patience).Should(Equal("False/SchedulingPolicyUnfulfilled"))
	f.Expect(f.message("pickn", "Scheduled")).To(Equal("could not find all clusters needed as specified by the scheduling policy, found 2 cluster(s) instead; " +
		"3 are asked for, and there are no others in the fleet: join more, or ask for fewer"))
	f.Eventually(f.condition("pickn", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable")) // what was found is placed
	f.Eventually(f.rows("pickn")).WithTimeout(patience).Should(ConsistOf("pickn1", "pickn2"))
	f.join("pickn3")
	f.Eventually(f.condition("pickn", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
	f.Eventually(f.rows("pickn")).WithTimeout(patience).Should(ConsistOf("pickn1", "pickn2", "pickn3"))
	number(0)
	f.Eventually(f.rows("pickn")).WithTimeout(patience).Should(BeEmpty())
	f.Eventually(func() int {
		var left placementv1.ClusterResourceBindingList
		f.Expect(f.List(t.Context(), &left, client.MatchingLabels{placementv1.LabelParentPlacement: "pickn"})).To(Succeed())
		return len(left.Items)
	}).WithTimeout(patience).Should(BeZero())
	f.Eventually(f.condition("pickn", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
	f.Expect(f.policies("pickn")).To(Equal([]string{"pickn-0=0"}))
}

// PickFixed from end to end: a cluster that is not there has a row without a name, and an empty list takes all back.
func TestPickFixed(t *testing.T) {
	f := newFleet(t, "fixed1", "fixed2")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: fixed}}`)
	f.placeWith("fixed", &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType, ClusterNames: []string{"fixed1", "nowhere"}}, namespaceSelector("fixed"))
	f.Eventually(f.rows("fixed")).WithTimeout(patience).Should(Equal([]string{"fixed1", `ScheduleFailed: Specified cluster "nowhere" is not found`}))
	names := func(names ...string) {
		f.edit("fixed", func(p *placementv1.ClusterResourcePlacement) { p.Spec.Policy.ClusterNames = names })
	}
	names("fixed2")
	f.Eventually(f.rows("fixed")).WithTimeout(patience).Should(Equal([]string{"fixed2"}))
	f.Eventually(f.condition("fixed", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	names()
	f.Eventually(f.rows("fixed")).WithTimeout(patience).Should(BeEmpty())
	f.Eventually(f.condition("fixed", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
	f.Expect(f.policies("fixed")).To(Equal([]string{"fixed-0=", "fixed-1=", "fixed-2="}))
}
