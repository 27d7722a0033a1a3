package v1_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// printed is what kubectl prints of an object.
type printed struct {
	// object and status are its manifest and a merge patch of its status, in YAML.
	object, status string
	plural         string
	beta           bool // the kind is in v1beta1 alone
	want, wantWide string
}

// TestColumns compares with the first seed's printed outputs, to the letter. Each kind is printed alone, before other
// tests' objects are made: the server is of this test's own.
func TestColumns(t *testing.T) {
	server := framework.StartAPIServer(t)
	for name, tc := range map[string]printed{
		"a placement, scheduled": {
			plural: "clusterresourceplacements",
			object: anExternalPlacement + "metadata: {name: example-placement}",
			status: `status: {observedResourceIndex: "3", conditions: [{type: ClusterResourcePlacementScheduled, status: "True", observedGeneration: 1, reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			want: `
NAME                GEN   SCHEDULED   SCHEDULED-GEN   AVAILABLE   AVAILABLE-GEN   AGE
example-placement   1     True        1                                           AGE`,
			wantWide: `
NAME                GEN   TYPE      SCHEDULED   SCHEDULED-GEN   WORK-SYNCHRONIZED   WORK-SYNCHRONIZED-GEN   AVAILABLE   AVAILABLE-GEN   RESOURCE-INDEX   AGE
example-placement   1     PickAll   True        1                                                                                       3                AGE`,
		},
		"a resource snapshot": {
			plural: "clusterresourcesnapshots",
			object: holding("") + "metadata: {name: example-placement-0-snapshot, labels: {kubernetes-fleet.io/resource-index: \"0\", kubernetes-fleet.io/is-latest-snapshot: \"true\"}}",
			want: `
NAME                           GEN   AGE
example-placement-0-snapshot   1     AGE`,
			wantWide: `
NAME                           GEN   AGE   INDEX   LATEST
example-placement-0-snapshot   1     AGE   0       true`,
		},
		"a policy snapshot": {
			plural: "clusterschedulingpolicysnapshots",
			object: policySnapshot + "metadata: {name: example-placement-0, labels: {kubernetes-fleet.io/policy-index: \"0\", kubernetes-fleet.io/is-latest-snapshot: \"true\"}}",
			want: `
NAME                  GEN   AGE
example-placement-0   1     AGE`,
			wantWide: `
NAME                  GEN   AGE   INDEX   LATEST
example-placement-0   1     AGE   0       true`,
		},
		"a binding": {
			plural: "clusterresourcebindings",
			object: binding + "Bound\nmetadata: {name: web-member1}",
			status: `status: {conditions: [{type: Applied, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			want: `
NAME          WORKSYNCHRONIZED   RESOURCESAPPLIED   AGE
web-member1                      True               AGE`,
			wantWide: `
NAME          WORKSYNCHRONIZED   RESOURCESAPPLIED   RESOURCEAVAILABLE   AGE
web-member1                      True                                   AGE`,
		},
		"a run that named no snapshot, initialized": {
			plural: "clusterstagedupdateruns",
			object: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterStagedUpdateRun
metadata: {name: example-run}
spec: {placementName: example-placement, stagedRolloutStrategyName: example-strategy}`,
			status: `status: {resourceSnapshotIndexUsed: "1", policySnapshotIndexUsed: "0", conditions: [{type: Initialized, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			want: `
NAME          PLACEMENT           RESOURCE-SNAPSHOT-INDEX   POLICY-SNAPSHOT-INDEX   INITIALIZED   SUCCEEDED   AGE
example-run   example-placement   1                         0                       True                      AGE`,
			wantWide: `
NAME          PLACEMENT           RESOURCE-SNAPSHOT-INDEX   POLICY-SNAPSHOT-INDEX   INITIALIZED   PROGRESSING   SUCCEEDED   AGE   STRATEGY           MESSAGE
example-run   example-placement   1                         0                       True                                    AGE   example-strategy`,
		},
		"an approval request": {
			plural: "clusterapprovalrequests",
			object: `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterApprovalRequest
metadata: {name: example-run-before-canary}
spec: {parentStageRollout: example-run, targetStage: canary}`,
			status: `status: {conditions: [
{type: Approved, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"},
{type: ApprovalAccepted, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			want: `
NAME                        UPDATE-RUN    STAGE    APPROVED   APPROVALACCEPTED   AGE
example-run-before-canary   example-run   canary   True       True               AGE`,
		},
		"a disruption budget with a number": {
			plural: "clusterresourceplacementdisruptionbudgets",
			object: `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 2}}`,
			beta:   true,
			want: `
NAME   MIN-AVAILABLE   MAX-UNAVAILABLE   AGE
web    2                                 AGE`,
		},
		"a strategy": {
			plural: "clusterstagedupdatestrategies",
			object: theSeedsStrategy + "metadata: {name: example-strategy}",
			want: `
NAME               FIRST-STAGE   LAST-STAGE   AGE
example-strategy   staging       canary       AGE`,
		},
		"a work": {
			plural: "namespaces/default/works",
			object: `{apiVersion: placement.kubernetes-fleet.io/v1, kind: Work, metadata: {namespace: default, name: web-work}, spec: {}}`,
			status: `status: {conditions: [{type: Applied, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			want: `
NAME       APPLIED   AVAILABLE   AGE
web-work   True                  AGE`,
		},
	} {
		t.Run(name, func(t *testing.T) { comparePrinted(t, server, tc) })
	}
}

func comparePrinted(t *testing.T, server *rest.Config, tc printed) {
	t.Helper()
	c := framework.Client(t, server)
	object := apitest.Parse(t, tc.object)
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("create: %v", err)
	}
	if tc.status != "" {
		patch, err := yaml.YAMLToJSON([]byte(tc.status))
		if err != nil {
			t.Fatalf("parse the status: %v", err)
		}
		if err := c.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatalf("set the status: %v", err)
		}
	}
	versions := []string{"v1", "v1beta1"}
	if tc.beta {
		versions = versions[1:]
	}
	for _, version := range versions {
		path := "/apis/" + group + "/" + version + "/" + tc.plural
		if diff := cmp.Diff(tc.want, "\n"+apitest.Printed(t, server, path, false)); diff != "" {
			t.Errorf("kubectl get, in %s (-want +got):\n%s", version, diff)
		}
		if tc.wantWide == "" {
			continue
		}
		if diff := cmp.Diff(tc.wantWide, "\n"+apitest.Printed(t, server, path, true)); diff != "" {
			t.Errorf("kubectl get -o wide, in %s (-want +got):\n%s", version, diff)
		}
	}
}
