package v1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// withStrategy is a placement with an apply strategy, in a version.
func withStrategy(version, strategy string) string {
	return strings.Replace(aPlacement, "/v1\n", "/"+version+"\n", 1) + "  strategy: {applyStrategy: " + strategy + "}\n"
}

func TestApplyStrategy(t *testing.T) {
	const at = "spec.strategy.applyStrategy."
	defaults := map[string]any{
		"metadata.generation": int64(1), at + "type": "ClientSideApply", at + "comparisonOption": "PartialComparison",
		at + "whenToApply": "Always", at + "whenToTakeOver": "Always", at + "allowCoOwnership": nil, at + "serverSideApplyConfig": nil,
	}
	for _, version := range []string{"v1", "v1beta1"} {
		cases := map[string]apitest.Case{
			"defaults":          {Create: strings.Replace(aPlacement, "/v1\n", "/"+version+"\n", 1), Want: defaults},
			"an empty strategy": {Create: withStrategy(version, "{}"), Want: defaults},
			"ServerSideApply, forced": {
				Create: withStrategy(version, "{type: ServerSideApply, serverSideApplyConfig: {force: true}}"),
				Want:   map[string]any{at + "serverSideApplyConfig.force": true},
			},
			"ServerSideApply by default is not forced": {
				Create: withStrategy(version, "{type: ServerSideApply, serverSideApplyConfig: {}}"),
				Want:   map[string]any{at + "serverSideApplyConfig.force": nil},
			},
			"force without ServerSideApply": {
				Create:  withStrategy(version, "{serverSideApplyConfig: {force: true}}"),
				Refused: "serverSideApplyConfig is only valid for ServerSideApply strategy type",
			},
			"force with ReportDiff": {
				Create:  withStrategy(version, "{type: ReportDiff, serverSideApplyConfig: {force: false}}"),
				Refused: "serverSideApplyConfig is only valid for ServerSideApply strategy type",
			},
			"the type can be changed": {
				Create: withStrategy(version, "{type: ReportDiff}"),
				Update: "spec: {strategy: {applyStrategy: {type: ClientSideApply}}}",
				Want:   map[string]any{at + "type": "ClientSideApply"},
			},
		}
		for field, values := range map[string][]string{
			"type": {"ClientSideApply", "ServerSideApply", "ReportDiff"}, "comparisonOption": {"PartialComparison", "FullComparison"},
			"whenToApply": {"Always", "IfNotDrifted"}, "whenToTakeOver": {"Always", "IfNoDiff", "Never"}, "allowCoOwnership": {"true", "false"},
		} {
			for _, value := range values {
				cases[field+" "+value] = apitest.Case{Create: withStrategy(version, fmt.Sprintf("{%s: %s}", field, value))}
			}
			refused := `Unsupported value: "Sometimes"`
			if field == "allowCoOwnership" {
				refused = "must be of type boolean"
			}
			cases[field+" of another value"] = apitest.Case{Create: withStrategy(version, fmt.Sprintf("{%s: Sometimes}", field)), Refused: refused}
		}
		t.Run(version, func(t *testing.T) { apitest.Run(t, hub, cases) })
	}
}
