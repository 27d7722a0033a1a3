package v1_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
)

const policySnapshot = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterSchedulingPolicySnapshot
spec:
  policy: {placementType: PickAll}
  policyHash: YWJj
`

func TestClusterSchedulingPolicySnapshot(t *testing.T) {
	const immutable = "spec is immutable; the hub makes a new snapshot when the policy changes"
	apitest.Run(t, hub, map[string]apitest.Case{
		"a snapshot":         {Create: policySnapshot},
		"of no policy":       {Create: "{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterSchedulingPolicySnapshot, spec: {policyHash: YWJj}}"},
		"another hash":       {Create: policySnapshot, Update: "spec: {policyHash: ZGVm}", Refused: immutable},
		"another policy":     {Create: policySnapshot, Update: "spec: {policy: null}", Refused: immutable},
		"labels may change":  {Create: policySnapshot, Update: "metadata: {labels: {kubernetes-fleet.io/is-latest-snapshot: 'false'}}"},
		"a hash of no bytes": {Create: "{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterSchedulingPolicySnapshot, spec: {policyHash: '!'}}", Refused: "policyHash"},
		"decisions": {
			Create:       policySnapshot,
			UpdateStatus: "status: {observedCRPGeneration: 1, targetClusters: [{clusterName: member1, selected: true, reason: joined}]}",
		},
		"a decision without a reason": {
			Create:       policySnapshot,
			UpdateStatus: "status: {targetClusters: [{clusterName: member1, selected: true}]}",
			Refused:      "reason: Required value",
		},
	})
}

// holding is a resource snapshot that holds the objects.
func holding(objects string) string {
	return `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourceSnapshot
spec: {selectedResources: [` + objects + `]}
`
}

const aConfigMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: web}, data: {key: value1}}`

func TestClusterResourceSnapshot(t *testing.T) {
	const immutable = "spec is immutable; the hub makes a new snapshot when the resources change"
	apitest.Run(t, hub, map[string]apitest.Case{
		"of nothing": {Create: holding("")},
		"keeps objects as they are": {
			Create: holding(aConfigMap + `, {apiVersion: example.com/v1, kind: Widget, metadata: {name: "a:b"}, spec: {deep: [{x: 1}]}}`),
			Want: map[string]any{"spec.selectedResources": []any{
				map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "web"},
					"data": map[string]any{"key": "value1"},
				},
				map[string]any{
					"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a:b"},
					"spec": map[string]any{"deep": []any{map[string]any{"x": int64(1)}}},
				},
			}},
		},
		"an object without a kind":       {Create: holding(`{apiVersion: v1, metadata: {name: web}}`), Refused: "kind: Required value"},
		"an object without a version":    {Create: holding(`{kind: ConfigMap, metadata: {name: web}}`), Refused: "apiVersion: Required value"},
		"an object with impossible meta": {Create: holding(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}`), Refused: "metadata.name"},
		"labels may change": {
			Create: holding(aConfigMap),
			Update: "metadata: {labels: {kubernetes-fleet.io/is-latest-snapshot: 'false'}}",
		},
		"content may not change": {
			Create:  holding(aConfigMap),
			Update:  `spec: {selectedResources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: web}, data: {key: value2}}]}`,
			Refused: immutable,
		},
		"objects may not be added": {
			Create:  holding(aConfigMap),
			Update:  `spec: {selectedResources: [` + aConfigMap + `, {apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: web}}]}`,
			Refused: immutable,
		},
		"objects may not be removed": {Create: holding(aConfigMap), Update: `spec: {selectedResources: []}`, Refused: immutable},
	})
}

const binding = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourceBinding
spec:
  schedulingPolicySnapshotName: web-0
  targetCluster: member1
  clusterDecision: {clusterName: member1, selected: true, reason: joined}
  state: `

func TestClusterResourceBinding(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"scheduled":                {Create: binding + "Scheduled"},
		"bound":                    {Create: binding + "Bound\n  resourceSnapshotName: web-0-snapshot"},
		"unscheduled":              {Create: binding + "Unscheduled"},
		"a state that is not one":  {Create: binding + "Lost", Refused: `Unsupported value: "Lost"`},
		"from scheduled to bound":  {Create: binding + "Scheduled", Update: "spec: {state: Bound, resourceSnapshotName: web-0-snapshot}"},
		"for another cluster":      {Create: binding + "Bound", Update: "spec: {targetCluster: member2}", Refused: "targetCluster is immutable"},
		"a field that is not ours": {Create: binding + "Bound\n  colour: red", Refused: `unknown field "spec.colour"`},
		"a status with a snapshot": {
			Create: binding + "Bound", UpdateStatus: `status: {observedResourceIndex: "0"}`,
			Want: map[string]any{"status.observedResourceIndex": "0"},
		},
	})
}

// carrying is a Work that carries the objects.
func carrying(objects string) string {
	return `
apiVersion: placement.kubernetes-fleet.io/v1
kind: Work
metadata: {namespace: default}
spec: {workload: {manifests: [` + objects + `]}}
`
}

func TestWork(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"of nothing": {Create: carrying("")},
		"keeps manifests as they are": {
			Create: carrying(aConfigMap),
			Want: map[string]any{"spec.workload.manifests": []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "web"},
				"data": map[string]any{"key": "value1"},
			}}},
		},
		"a manifest without a kind":    {Create: carrying(`{apiVersion: v1, metadata: {name: web}}`), Refused: "kind: Required value"},
		"a manifest without a version": {Create: carrying(`{kind: ConfigMap, metadata: {name: web}}`), Refused: "apiVersion: Required value"},
		"manifests may change":         {Create: carrying(aConfigMap), Update: "spec: {workload: {manifests: []}}"},
		"the status of a manifest": {
			Create:       carrying(aConfigMap),
			UpdateStatus: "status: {manifestConditions: [{identifier: {ordinal: 0, version: v1, kind: ConfigMap, namespace: web, name: web}}]}",
		},
	})
}

func TestAppliedWork(t *testing.T) {
	const applied = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: AppliedWork
spec: {workName: web-work, workNamespace: fleet-member-member1}
`
	apitest.Run(t, framework.StartMemberAPIServer(t), map[string]apitest.Case{
		"names its work": {Create: applied},
		"without a work": {
			Create:  "{apiVersion: placement.kubernetes-fleet.io/v1, kind: AppliedWork, spec: {workNamespace: fleet-member-member1}}",
			Refused: "spec.workName: Required value",
		},
		"lists what was applied": {
			Create:       applied,
			UpdateStatus: "status: {appliedResources: [{ordinal: 0, version: v1, kind: ConfigMap, resource: configmaps, namespace: web, name: web, uid: a}]}",
		},
		"the older version": {Create: "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: AppliedWork, spec: {workName: web-work, workNamespace: fleet-member-member1}}"},
	})
}
