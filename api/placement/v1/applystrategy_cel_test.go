package v1_test

import (
	"fmt"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// withStrategy is a placement with an apply strategy.
func withStrategy(strategy string) string {
	return aPlacement + "  strategy: {applyStrategy: " + strategy + "}\n"
}

// TestApplyStrategy holds for placements of a cluster and of a namespace, in both versions.
func TestApplyStrategy(t *testing.T) {
	const at = "spec.strategy.applyStrategy."
	defaults := map[string]any{
		"metadata.generation": int64(1), at + "type": "ClientSideApply", at + "comparisonOption": "PartialComparison",
		at + "whenToApply": "Always", at + "whenToTakeOver": "Always", at + "allowCoOwnership": nil, at + "serverSideApplyConfig": nil,
	}
	cases := map[string]apitest.Case{
		"defaults":          {Create: aPlacement, Want: defaults},
		"an empty strategy": {Create: withStrategy("{}"), Want: defaults},
		"ServerSideApply, forced": {
			Create: withStrategy("{type: ServerSideApply, serverSideApplyConfig: {force: true}}"),
			Want:   map[string]any{at + "serverSideApplyConfig.force": true},
		},
		"ServerSideApply by default is not forced": {
			Create: withStrategy("{type: ServerSideApply, serverSideApplyConfig: {}}"),
			Want:   map[string]any{at + "serverSideApplyConfig.force": nil},
		},
		"force without ServerSideApply": {
			Create:  withStrategy("{serverSideApplyConfig: {force: true}}"),
			Refused: "serverSideApplyConfig is only valid for ServerSideApply strategy type",
		},
		"force with ReportDiff": {
			Create:  withStrategy("{type: ReportDiff, serverSideApplyConfig: {force: false}}"),
			Refused: "serverSideApplyConfig is only valid for ServerSideApply strategy type",
		},
		"force that is left when the type changes": {
			Create:  withStrategy("{type: ServerSideApply, serverSideApplyConfig: {force: true}}"),
			Update:  "spec: {strategy: {applyStrategy: {type: ClientSideApply}}}",
			Refused: "serverSideApplyConfig is only valid for ServerSideApply strategy type",
		},
		"the type can be changed": {
			Create: withStrategy("{type: ReportDiff}"),
			Update: "spec: {strategy: {applyStrategy: {type: ClientSideApply}}}",
			Want:   map[string]any{at + "type": "ClientSideApply"},
		},
	}
	for field, values := range map[string][]string{
		"type": {"ClientSideApply", "ServerSideApply", "ReportDiff"}, "comparisonOption": {"PartialComparison", "FullComparison"},
		"whenToApply": {"Always", "IfNotDrifted"}, "whenToTakeOver": {"Always", "IfNoDiff", "Never"}, "allowCoOwnership": {"true", "false"},
	} {
		for _, value := range values {
			tc := apitest.Case{Create: withStrategy(fmt.Sprintf("{%s: %s}", field, value))}
			if field != "allowCoOwnership" {
				tc.Want = map[string]any{at + field: value}
			}
			cases[field+" "+value] = tc
		}
		refused := `Unsupported value: "Sometimes"`
		if field == "allowCoOwnership" {
			refused = "must be of type boolean"
		}
		cases[field+" of another value"] = apitest.Case{Create: withStrategy(fmt.Sprintf("{%s: Sometimes}", field)), Refused: refused}
	}
	apitest.Run(t, hub, inEveryVersion(cases))
}
