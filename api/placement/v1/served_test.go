package v1_test

import (
	"maps"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const group = "placement.kubernetes-fleet.io"

// TestServedKinds looks at what `kubectl api-resources` shows: both versions, short names, categories.
func TestServedKinds(t *testing.T) {
	ours := []string{"fleet", "fleet-placement"}
	want := map[string]apitest.Served{
		"clusterresourceplacements":        {Kind: "ClusterResourcePlacement", ShortNames: []string{"crp"}, Categories: ours, Status: true},
		"clusterresourceplacementstatuses": {Kind: "ClusterResourcePlacementStatus", Namespaced: true, ShortNames: []string{"crps"}, Categories: ours},
		"clusterschedulingpolicysnapshots": {Kind: "ClusterSchedulingPolicySnapshot", ShortNames: []string{"csps"}, Categories: ours, Status: true},
		"clusterresourcesnapshots":         {Kind: "ClusterResourceSnapshot", ShortNames: []string{"crs"}, Categories: ours},
		"clusterresourcebindings":          {Kind: "ClusterResourceBinding", ShortNames: []string{"crb"}, Categories: ours, Status: true},
		"clusterstagedupdatestrategies":    {Kind: "ClusterStagedUpdateStrategy", ShortNames: []string{"csus"}, Categories: ours},
		// The first seed misspells the run in one command; its spelling is a short name.
		"clusterstagedupdateruns":          {Kind: "ClusterStagedUpdateRun", ShortNames: []string{"csur", "clusterstagedupdaterrun"}, Categories: ours, Status: true},
		"clusterapprovalrequests":          {Kind: "ClusterApprovalRequest", ShortNames: []string{"careq"}, Categories: ours, Status: true},
		"resourceplacements":               {Kind: "ResourcePlacement", Namespaced: true, ShortNames: []string{"rp"}, Categories: ours, Status: true},
		"stagedupdatestrategies":           {Kind: "StagedUpdateStrategy", Namespaced: true, ShortNames: []string{"sus"}, Categories: ours},
		"stagedupdateruns":                 {Kind: "StagedUpdateRun", Namespaced: true, ShortNames: []string{"sur", "stagedupdaterrun"}, Categories: ours, Status: true},
		"approvalrequests":                 {Kind: "ApprovalRequest", Namespaced: true, ShortNames: []string{"areq"}, Categories: ours, Status: true},
		"works":                            {Kind: "Work", Namespaced: true, Categories: ours, Status: true},
		"clusterresourceoverrides":         {Kind: "ClusterResourceOverride", Categories: ours},
		"resourceoverrides":                {Kind: "ResourceOverride", Namespaced: true, Categories: ours},
		"clusterresourceoverridesnapshots": {Kind: "ClusterResourceOverrideSnapshot", Categories: ours},
		"resourceoverridesnapshots":        {Kind: "ResourceOverrideSnapshot", Namespaced: true, Categories: ours},
	}
	if diff := cmp.Diff(want, apitest.Kinds(t, hub, group+"/v1")); diff != "" {
		t.Errorf("v1 (-want +got):\n%s", diff)
	}
	// The kinds that the API has in v1beta1 alone.
	maps.Copy(want, map[string]apitest.Served{
		"schedulingpolicysnapshots": {Kind: "SchedulingPolicySnapshot", Namespaced: true, ShortNames: []string{"sps"}, Categories: ours, Status: true},
		"resourcesnapshots":         {Kind: "ResourceSnapshot", Namespaced: true, ShortNames: []string{"rs"}, Categories: ours},
		"clusterresourceenvelopes":  {Kind: "ClusterResourceEnvelope", Categories: ours},
		"resourceenvelopes":         {Kind: "ResourceEnvelope", Namespaced: true, Categories: ours},
		"resourcebindings":          {Kind: "ResourceBinding", Namespaced: true, ShortNames: []string{"rb"}, Categories: ours, Status: true},

		"clusterresourceplacementevictions":         {Kind: "ClusterResourcePlacementEviction", ShortNames: []string{"crpe"}, Categories: ours, Status: true},
		"clusterresourceplacementdisruptionbudgets": {Kind: "ClusterResourcePlacementDisruptionBudget", ShortNames: []string{"crpdb"}, Categories: ours},
	})
	if diff := cmp.Diff(want, apitest.Kinds(t, hub, group+"/v1beta1")); diff != "" {
		t.Errorf("v1beta1 (-want +got):\n%s", diff)
	}
	want = map[string]apitest.Served{"appliedworks": {Kind: "AppliedWork", Categories: ours, Status: true}}
	member := framework.StartMemberAPIServer(t)
	for _, version := range []string{"v1", "v1beta1"} {
		if diff := cmp.Diff(want, apitest.Kinds(t, member, group+"/"+version)); diff != "" {
			t.Errorf("a member's %s (-want +got):\n%s", version, diff)
		}
	}
}

// TestOlderVersion writes in one version and reads in the other: it is one object, and nothing of it is lost.
func TestOlderVersion(t *testing.T) {
	c := framework.Client(t, hub)
	object := apitest.Parse(t, anExternalPlacement)
	object.SetName("older-version")
	object.SetAPIVersion(group + "/v1beta1")
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("create a placement in v1beta1: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Delete(framework.CleanupContext(t), object); err != nil {
			t.Errorf("delete it: %v", err)
		}
	})
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(object.GroupVersionKind())
	got.SetAPIVersion(group + "/v1")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), got); err != nil {
		t.Fatalf("read it in v1: %v", err)
	}
	if diff := cmp.Diff(object.Object["spec"], got.Object["spec"]); diff != "" {
		t.Errorf("spec (-v1beta1 +v1):\n%s", diff)
	}
	if got.GetGeneration() != 1 {
		t.Errorf("generation %d after being read in another version, want 1", got.GetGeneration())
	}
}
