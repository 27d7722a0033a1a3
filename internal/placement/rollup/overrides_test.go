package rollup_test

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What waits for no other reason than that an override was edited is explained: b for its place in the budget, and a, which
// has one, for being given it.
func TestEditedOverride(t *testing.T) {
	t.Parallel()
	given := func(revision string) override.Applied {
		return override.Applied{AppliedOverrides: placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{revision}}}
	}
	in := input(placementv1.RollingUpdateRolloutStrategyType)
	in.Latest = &rollup.Revision{Index: 1}
	for _, cluster := range []string{"a", "b", "c"} {
		b := binding(cluster, "on1", "done")
		given("tune-0").Give(b)
		in.Bindings = append(in.Bindings, b)
	}
	in.Overrides = func(b placementv1.BindingObject) override.Applied {
		if b.BindingSpec().TargetCluster == "c" { // its rule was not edited
			return given("tune-0")
		}
		return given("tune-1")
	}
	started := map[string]string{}
	for _, row := range rollup.Status(in).PlacementStatuses {
		for _, c := range row.Conditions {
			if c.Type == placementv1.ConditionRolloutStarted {
				started[row.ClusterName] = string(c.Status) + "/" + c.Reason + ": " + c.Message
			}
		}
	}
	const waits = "False/RolloutNotStartedYet: The rollout is being blocked by the rollout strategy: the cluster has other overrides than it is to get now"
	if got := started["a"]; got != waits {
		t.Errorf("of a it says %q, want %q", got, waits)
	}
	if got := started["b"]; !strings.HasPrefix(got, waits+"; at most 1 of 3 clusters may be unavailable at once") {
		t.Errorf("of b it says %q, want that it waits for the budget", got)
	}
	if got := started["c"]; !strings.HasPrefix(got, "True/") {
		t.Errorf("of c it says %q, want nothing to wait for", got)
	}

	in.Overrides = nil
	for _, line := range summarize(rollup.Status(in).Conditions) {
		if !strings.Contains(line, "=True/") {
			t.Errorf("with overrides that are not known it says %s", line)
		}
	}
}

// While an override cannot be recorded, the clusters that are to be given something new say that they wait for that, and those
// that have what is newest do not.
func TestOverrideThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	in := input(placementv1.RollingUpdateRolloutStrategyType)
	in.Latest = &rollup.Revision{Index: 1}
	for cluster, state := range map[string]string{"a": "on0", "b": "on1"} {
		in.Bindings = append(in.Bindings, binding(cluster, state, "done"))
	}
	in.Waiting = "there is no snapshot yet"
	for _, row := range rollup.Status(in).PlacementStatuses {
		c := meta.FindStatusCondition(row.Conditions, placementv1.ConditionRolloutStarted)
		if waits := c.Message == "The rollout waits: there is no snapshot yet" && c.Status == metav1.ConditionFalse; waits != (row.ClusterName == "a") {
			t.Errorf("of %s it says %s: %s", row.ClusterName, c.Status, c.Message)
		}
	}
}
