package e2e

import (
	"os"
	"path/filepath"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/utils/ptr"
)

const explainedPlacement = `apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: explained-file}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: explained}]
  policy:
    placementType: PickN
    numberOfClusters: 2
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms: [{labelSelector: {matchLabels: {e2e.fleetwright.io/explained: "yes"}}}]
`

// TestExplain asks why a placement has the members that it has, in both scopes, and what one in a file would have, which is not
// applied.
func TestExplain(t *testing.T) {
	t.Parallel()
	hub := clientFor(t, fleet, "hub")
	const name = "explained"
	labelEach(t, hub, "e2e.fleetwright.io/explained", "yes", "no")
	create(t, hub, namespace(name))
	create(t, hub, configMap(name, "test-cm", "value1"))
	p := placeNamespace(name, name, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType, ClusterNames: []string{"member2", "member9"}}
	create(t, hub, p)
	awaitValue(t, clientFor(t, fleet, "member2"), name, "test-cm", "value1")
	amcSays(t, 0, []string{`ClusterResourcePlacement "explained", PickFixed of 2`, "member2   yes", "member9   no"}, "explain", "placement", name)

	awaitNamespace(t, hub, name, "member2")
	r := placeConfigMap(name, name, placementv1.RollingUpdateRolloutStrategyType)
	r.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](1)}
	create(t, hub, r)
	amcSays(t, 0, []string{`ResourcePlacement "explained/explained", PickN of 1`, "member2   yes", `cluster has no namespace "explained"`}, "explain", "placement", name, "-n", name)

	file := filepath.Join(t.TempDir(), "placement.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(explainedPlacement)
	amcSays(t, 0, []string{
		`ClusterResourcePlacement "explained-file", PickN of 2: could not find all clusters needed`, "member1   yes",
		`label e2e.fleetwright.io/explained is "no", and "e2e.fleetwright.io/explained=yes" is required`,
	}, "explain", "placement", "-f", file)

	amcSays(t, 1, []string{`there is no ClusterResourcePlacement "explained-file"`}, "explain", "placement", "explained-file")
	amcSays(t, 1, []string{`there is no ResourcePlacement "explained/none"`}, "explain", "placement", "none", "-n", name)
	write("apiVersion: v1\nkind: Namespace\nmetadata: {name: explained}\n")
	amcSays(t, 1, []string{file, "it has no ClusterResourcePlacement and no ResourcePlacement"}, "explain", "placement", "-f", file)
}
