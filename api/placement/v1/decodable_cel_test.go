package v1_test

import (
	"fmt"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestNothingIsStoredThatCannotBeRead: one object that Go cannot read keeps the hub from reading any of its kind, so the API
// server must not take it. It goes by the schema alone, which lets more pass than Go reads.
func TestNothingIsStoredThatCannotBeRead(t *testing.T) {
	numbers := []string{"99999999999", "-99999999999", "9223372036854775808", "1e30", "-1e30", "1.5"}
	times := []string{"2026-01-02t03:04:05z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05x1Z", "2026-01-02T03:04:05+99:99", "2026-01-02T03:04:05"}
	const condition = `status: {conditions: [{type: Approved, status: "True", reason: r, message: m, observedGeneration: %s, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`
	for name, tc := range map[string]struct {
		object string
		into   client.Object
		status string
		values []string
	}{
		"a number":      {aPlacement, &placementv1.ClusterResourcePlacement{}, "status: {selectedResourceCount: %s}", numbers},
		"a count":       {run(""), &placementv1.ClusterStagedUpdateRun{}, "status: {policyObservedClusterCount: %s}", numbers[2:]},
		"a generation":  {approvalRequest, &placementv1.ClusterApprovalRequest{}, condition, numbers[2:]},
		"a time":        {run(""), &placementv1.ClusterStagedUpdateRun{}, "status: {startedTime: %q}", times},
		"a transition":  {approvalRequest, &placementv1.ClusterApprovalRequest{}, strings.NewReplacer("%s", "1", `"2026-01-02T03:04:05Z"`, "%q").Replace(condition), times},
		"a wait":        {run(""), &placementv1.ClusterStagedUpdateRun{}, "status: {stagedUpdateStrategySnapshot: {stages: [{name: a, afterStageTasks: [{type: TimedWait, waitTime: %s}]}]}}", []string{"9999999h", "99999999999999999999h", "1d"}},
		"a concurrency": {run(""), &placementv1.ClusterStagedUpdateRun{}, "status: {stagedUpdateStrategySnapshot: {stages: [{name: a, maxConcurrency: %s}]}}", numbers},
	} {
		for _, value := range tc.values {
			t.Run(name+" of "+value, func(t *testing.T) {
				c := framework.Client(t, hub)
				object := apitest.Parse(t, tc.object)
				object.SetGenerateName("unreadable-")
				if err := c.Create(t.Context(), object); err != nil {
					t.Fatalf("create an object: %v", err)
				}
				patch, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(tc.status, value)))
				if err != nil {
					t.Fatalf("parse a status: %v", err)
				}
				refused := c.Status().Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), tc.into); err != nil {
					t.Errorf("it was stored, and is not readable: %v", err)
				}
				if refused == nil {
					t.Errorf("it was stored: %s", patch)
				}
			})
		}
	}
}
