package v1_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// run is an update run with these further fields of its spec.
func run(fields string) string {
	return `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterStagedUpdateRun
spec:
  placementName: web
  stagedRolloutStrategyName: careful
` + fields
}

func TestClusterStagedUpdateRun(t *testing.T) {
	const index = "resourceSnapshotIndex must be an integer >= 0"
	apitest.Run(t, hub, map[string]apitest.Case{
		"a run that says nothing more is initialized only": {
			Create: run(""),
			Want:   map[string]any{"spec.state": "Initialize", "spec.resourceSnapshotIndex": nil, "metadata.generation": int64(1)},
		},
		"created in state Run":       {Create: run("  state: Run")},
		"created in state Stop":      {Create: run("  state: Stop")},
		"a state that is not known":  {Create: run("  state: Pause"), Refused: `Unsupported value: "Pause"`},
		"an empty state":             {Create: run(`  state: ""`), Refused: `Unsupported value: ""`},
		"index 0":                    {Create: run(`  resourceSnapshotIndex: "0"`)},
		"index 12":                   {Create: run(`  resourceSnapshotIndex: "12"`)},
		"an empty index":             {Create: run(`  resourceSnapshotIndex: ""`)},
		"an index that is no number": {Create: run(`  resourceSnapshotIndex: latest`), Refused: index},
		"a negative index":           {Create: run(`  resourceSnapshotIndex: "-1"`), Refused: index},
		"a leading zero":             {Create: run(`  resourceSnapshotIndex: "01"`), Refused: index},
		"a number instead of text":   {Create: run(`  resourceSnapshotIndex: 1`), Refused: "must be of type string"},
		"an index of 11 digits":      {Create: run(`  resourceSnapshotIndex: "12345678901"`), Refused: "may not be more than 10"},
		"a name of 63 characters":    {Create: run("") + "metadata: {name: " + strings.Repeat("r", 63) + "}"},
		"a name of 64 characters":    {Create: run("") + "metadata: {name: " + strings.Repeat("r", 64) + "}", Refused: "metadata.name max length is 63"},
		"no placement": {
			Create:  strings.Replace(run(""), "placementName: web", "", 1),
			Refused: "spec.placementName: Required value",
		},
		"an empty placement": {
			Create:  strings.Replace(run(""), "placementName: web", `placementName: ""`, 1),
			Refused: "should be at least 1 chars long",
		},
		"a placement of 256 characters": {
			Create:  strings.Replace(run(""), "placementName: web", "placementName: "+strings.Repeat("p", 256), 1),
			Refused: "may not be more than 255",
		},
		"no strategy": {
			Create:  strings.Replace(run(""), "stagedRolloutStrategyName: careful", "", 1),
			Refused: "spec.stagedRolloutStrategyName: Required value",
		},
		"a field that is not known": {
			Create:  run("  dryRun: true"),
			Refused: `unknown field "spec.dryRun"`,
		},
	})
}

func TestClusterStagedUpdateRunUpdates(t *testing.T) {
	const immutable = "resourceSnapshotIndex is immutable"
	apitest.Run(t, hub, map[string]apitest.Case{
		"another placement": {Create: run(""), Update: "spec: {placementName: other}", Refused: "placementName is immutable"},
		"another strategy":  {Create: run(""), Update: "spec: {stagedRolloutStrategyName: other}", Refused: "stagedRolloutStrategyName is immutable"},
		"another index":     {Create: run(`  resourceSnapshotIndex: "1"`), Update: `spec: {resourceSnapshotIndex: "2"}`, Refused: immutable},
		"an index added":    {Create: run(""), Update: `spec: {resourceSnapshotIndex: "2"}`, Refused: immutable},
		"an index removed":  {Create: run(`  resourceSnapshotIndex: "1"`), Update: "spec: {resourceSnapshotIndex: null}", Refused: immutable},
		// Go clients leave empty text out: what they write back must not count as a change.
		"an empty index left out":   {Create: run(`  resourceSnapshotIndex: ""`), Update: "spec: {resourceSnapshotIndex: null}"},
		"an empty index, put in":    {Create: run(""), Update: `spec: {resourceSnapshotIndex: ""}`},
		"a label, and nothing else": {Create: run(`  resourceSnapshotIndex: "1"`), Update: "metadata: {labels: {a: b}}"},
	})
}

func TestClusterStagedUpdateRunStates(t *testing.T) {
	states := []string{"Initialize", "Run", "Stop"}
	forbidden := map[string]bool{"Initialize to Stop": true, "Run to Initialize": true, "Stop to Initialize": true}
	cases := map[string]apitest.Case{}
	for _, from := range states {
		for _, to := range states {
			name := from + " to " + to
			c := apitest.Case{Create: run("  state: " + from), Update: "spec: {state: " + to + "}"}
			if forbidden[name] {
				c.Refused = "invalid state transition: cannot transition from " + name
			}
			cases[name] = c
		}
	}
	cases["Run to none, which is Initialize"] = apitest.Case{
		Create: run("  state: Run"), Update: "spec: {state: null}", Refused: "invalid state transition: cannot transition from Run to Initialize",
	}
	apitest.Run(t, hub, cases)
}

// approvalRequest asks for an approval.
const approvalRequest = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterApprovalRequest
spec: {parentStageRollout: first, targetStage: canary}
`

func TestClusterApprovalRequest(t *testing.T) {
	const immutable = "The spec field is immutable"
	apitest.Run(t, hub, map[string]apitest.Case{
		"a request":         {Create: approvalRequest},
		"without a run":     {Create: strings.Replace(approvalRequest, "parentStageRollout: first, ", "", 1), Refused: "spec.parentStageRollout: Required value"},
		"without stage":     {Create: strings.Replace(approvalRequest, ", targetStage: canary", "", 1), Refused: "spec.targetStage: Required value"},
		"another run":       {Create: approvalRequest, Update: "spec: {parentStageRollout: second}", Refused: immutable},
		"another stage":     {Create: approvalRequest, Update: "spec: {targetStage: staging}", Refused: immutable},
		"labels may change": {Create: approvalRequest, Update: "metadata: {labels: {a: b}}"},
		"approved as the first seed does it": {
			Create: approvalRequest,
			UpdateStatus: `
status:
  conditions:
  - {type: Approved, status: "True", reason: testPassed, message: lgtm, observedGeneration: 1, lastTransitionTime: "2026-01-02T03:04:05Z"}
`,
		},
		"approved without a reason": {
			Create:       approvalRequest,
			UpdateStatus: `status: {conditions: [{type: Approved, status: "True", message: lgtm, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			Refused:      "reason: Required value",
		},
		"approved in a word that is no status": {
			Create:       approvalRequest,
			UpdateStatus: `status: {conditions: [{type: Approved, status: "Yes", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`,
			Refused:      `Unsupported value: "Yes"`,
		},
	})
}
