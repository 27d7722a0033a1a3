package v1_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// inNamespace makes a ClusterResourcePlacement a ResourcePlacement, in a version.
func inNamespace(text, version string) string {
	head := "\napiVersion: placement.kubernetes-fleet.io/" + version + "\nkind: ResourcePlacement\nmetadata: {namespace: default}\n"
	return strings.Replace(text, placementHead, head, 1)
}

func TestReportBackStrategy(t *testing.T) {
	const (
		at       = "spec.strategy.reportBackStrategy"
		toObject = "{type: Mirror, destination: OriginalResource}"
		one      = "destination OriginalResource needs a placement that chooses one cluster at the most"
	)
	for scope, head := range map[string]string{
		"v1 ClusterResourcePlacement":      aPlacement,
		"v1beta1 ClusterResourcePlacement": strings.Replace(aPlacement, "/v1\n", "/v1beta1\n", 1),
		"v1 ResourcePlacement":             inNamespace(aPlacement, "v1"),
		"v1beta1 ResourcePlacement":        inNamespace(aPlacement, "v1beta1"),
	} {
		with := func(strategy string) string { return head + "  strategy: {reportBackStrategy: " + strategy + "}\n" }
		t.Run(scope, func(t *testing.T) {
			apitest.Run(t, hub, map[string]apitest.Case{
				"left out":          {Create: head, Want: map[string]any{"metadata.generation": int64(1), at: nil}},
				"an empty strategy": {Create: with("{}"), Want: map[string]any{"metadata.generation": int64(1), at + ".type": "Disabled", at + ".destination": nil}},
				"Disabled":          {Create: with("{type: Disabled}")},
				"Mirror into the Work": {
					Create: with("{type: Mirror, destination: WorkAPI}"),
					Want:   map[string]any{at + ".type": "Mirror", at + ".destination": "WorkAPI"},
				},
				"Mirror to the object, of one fixed cluster": {
					Create: with("{type: Mirror, destination: OriginalResource}") + "  policy: {placementType: PickFixed, clusterNames: [a]}\n",
					Want:   map[string]any{at + ".destination": "OriginalResource"},
				},
				"of no fixed cluster": {Create: with(toObject) + "  policy: {placementType: PickFixed}\n"},
				"of one cluster":      {Create: with(toObject) + "  policy: {placementType: PickN, numberOfClusters: 1}\n"},
				"of none":             {Create: with(toObject) + "  policy: {placementType: PickN, numberOfClusters: 0}\n"},
				"of two fixed":        {Create: with(toObject) + "  policy: {placementType: PickFixed, clusterNames: [a, b]}\n", Refused: one},
				"of two":              {Create: with(toObject) + "  policy: {placementType: PickN, numberOfClusters: 2}\n", Refused: one},
				"of all":              {Create: with(toObject) + "  policy: {placementType: PickAll}\n", Refused: one},
				"of all, by default":  {Create: with(toObject), Refused: one},
				"a second cluster":    {Create: with(toObject) + "  policy: {placementType: PickN, numberOfClusters: 1}\n", Update: "spec: {policy: {numberOfClusters: 2}}", Refused: one},
				"Mirror without a destination":   {Create: with("{type: Mirror}"), Refused: "destination must be set when the type is Mirror"},
				"Disabled with a destination":    {Create: with("{type: Disabled, destination: WorkAPI}"), Refused: "destination must not be set unless the type is Mirror"},
				"a destination and no type":      {Create: with("{destination: WorkAPI}"), Refused: "destination must not be set unless the type is Mirror"},
				"an unknown type":                {Create: with("{type: Copy}"), Refused: `Unsupported value: "Copy"`},
				"an unknown destination":         {Create: with("{type: Mirror, destination: Elsewhere}"), Refused: `Unsupported value: "Elsewhere"`},
				"an empty destination":           {Create: with(`{type: Mirror, destination: ""}`), Refused: `Unsupported value: ""`},
				"an unknown field":               {Create: with("{interval: 5s}"), Refused: `unknown field "` + at + `.interval"`},
				"it can be switched on":          {Create: head, Update: "spec: {strategy: {reportBackStrategy: {type: Mirror, destination: WorkAPI}}}", Want: map[string]any{at + ".type": "Mirror"}},
				"it can be switched off":         {Create: with("{type: Mirror, destination: WorkAPI}"), Update: "spec: {strategy: {reportBackStrategy: null}}", Want: map[string]any{at: nil}},
				"off, with its destination left": {Create: with("{type: Mirror, destination: WorkAPI}"), Update: "spec: {strategy: {reportBackStrategy: {type: Disabled}}}", Refused: "destination must not be set unless the type is Mirror"},
			})
		})
	}
}
