package v1_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

const placementHead = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
`

// aPlacement has nothing but what is required; more is added to its spec.
const aPlacement = placementHead + `
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: web}
`

const anExternalPlacement = aPlacement + `
  policy: {placementType: PickAll}
  strategy: {type: External}
`

// selecting is a placement with one selector.
func selecting(selector string) string {
	return placementHead + "spec:\n  resourceSelectors:\n  - " + selector + "\n"
}

func TestClusterResourcePlacement(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"defaults come from the schema, and the generation is 1": {
			Create: aPlacement,
			Want: map[string]any{
				"metadata.generation": int64(1), "spec.strategy.type": "RollingUpdate", "spec.revisionHistoryLimit": int64(10), "spec.policy": nil,
			},
		},
		"an empty policy picks all": {
			Create: aPlacement + "  policy: {}",
			Want:   map[string]any{"spec.policy.placementType": "PickAll"},
		},
		"the first seed's placement": {
			Create: anExternalPlacement,
			Want:   map[string]any{"metadata.generation": int64(1), "spec.strategy.type": "External"},
		},
		"a name of 63 characters": {
			Create: aPlacement + "metadata: {name: " + strings.Repeat("p", 63) + "}",
		},
		"a name of 64 characters": {
			Create:  aPlacement + "metadata: {name: " + strings.Repeat("p", 64) + "}",
			Refused: "the name field cannot have length exceeding 63",
		},
		"no selectors": {
			Create:  placementHead + "spec: {resourceSelectors: []}",
			Refused: "should have at least 1 items",
		},
		"100 selectors": {
			Create: placementHead + "spec:\n  resourceSelectors:" + strings.Repeat("\n  - {group: apps, version: v1, kind: Deployment}", 100),
		},
		"101 selectors": {
			Create:  placementHead + "spec:\n  resourceSelectors:" + strings.Repeat("\n  - {group: apps, version: v1, kind: Deployment}", 101),
			Refused: "must have at most 100 items",
		},
		"a history of 1": {
			Create: aPlacement + "  revisionHistoryLimit: 1",
		},
		"a history of 0": {
			Create:  aPlacement + "  revisionHistoryLimit: 0",
			Refused: "should be greater than or equal to 1",
		},
		"a history of 1001": {
			Create:  aPlacement + "  revisionHistoryLimit: 1001",
			Refused: "should be less than or equal to 1000",
		},
		"a placement type that is not known": {
			Create:  aPlacement + "  policy: {placementType: PickSome}",
			Refused: `Unsupported value: "PickSome"`,
		},
		"a strategy that is not known": {
			Create:  aPlacement + "  strategy: {type: Recreate}",
			Refused: `Unsupported value: "Recreate"`,
		},
	})
}

func TestClusterResourcePlacementUpdates(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"a policy can be added": {
			Create: aPlacement,
			Update: "spec: {policy: {placementType: PickAll}}",
			Want:   map[string]any{"spec.policy.placementType": "PickAll"},
		},
		"a policy cannot be removed": {
			Create:  anExternalPlacement,
			Update:  "spec: {policy: null}",
			Refused: "policy cannot be removed once set",
		},
		"the strategy can become External": {
			Create: aPlacement,
			Update: "spec: {strategy: {type: External}}",
			Want:   map[string]any{"spec.strategy.type": "External"},
		},
		"External cannot be changed": {
			Create:  anExternalPlacement,
			Update:  "spec: {strategy: {type: RollingUpdate}}",
			Refused: "cannot change rollout strategy type from 'External' to other types",
		},
		"External cannot be left out": {
			Create:  anExternalPlacement,
			Update:  "spec: {strategy: null}",
			Refused: "cannot change rollout strategy type from 'External' to other types",
		},
		"selectors can be changed": {
			Create: anExternalPlacement,
			Update: `spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: other}]}`,
			Want:   map[string]any{"metadata.generation": int64(2)},
		},
	})
}

func TestResourceSelector(t *testing.T) {
	const both = "name and labelSelector are mutually exclusive in a resource selector"
	apitest.Run(t, hub, map[string]apitest.Case{
		"all of a kind": {Create: selecting(`{group: apps, version: v1, kind: Deployment}`)},
		"by label":      {Create: selecting(`{group: "", version: v1, kind: Namespace, labelSelector: {matchLabels: {app: web}}}`)},
		"by name and label": {
			Create:  selecting(`{group: "", version: v1, kind: Namespace, name: web, labelSelector: {matchLabels: {app: web}}}`),
			Refused: both,
		},
		"by name and an empty label selector": {
			Create:  selecting(`{group: "", version: v1, kind: Namespace, name: web, labelSelector: {}}`),
			Refused: both,
		},
		"an empty name is none: all of the kind": {
			Create: selecting(`{group: "", version: v1, kind: Namespace, name: ""}`),
		},
		"an empty name leaves room for labels": {
			Create: selecting(`{group: "", version: v1, kind: Namespace, name: "", labelSelector: {}}`),
		},
		"a namespace goes with what is in it": {
			Create: selecting(`{group: "", version: v1, kind: Namespace, name: web}`),
			Want:   map[string]any{"spec.resourceSelectors": []any{map[string]any{"group": "", "version": "v1", "kind": "Namespace", "name": "web", "selectionScope": "NamespaceWithResources"}}},
		},
		"a namespace alone": {
			Create: selecting(`{group: "", version: v1, kind: Namespace, name: web, selectionScope: NamespaceOnly}`),
			Want:   map[string]any{"metadata.generation": int64(1)},
		},
		"an unknown scope": {
			Create:  selecting(`{group: "", version: v1, kind: Namespace, name: web, selectionScope: Everything}`),
			Refused: `selectionScope: Unsupported value: "Everything"`,
		},
		"no group":   {Create: selecting(`{version: v1, kind: Namespace}`), Refused: "resourceSelectors[0].group: Required value"},
		"no version": {Create: selecting(`{group: "", kind: Namespace}`), Refused: "resourceSelectors[0].version: Required value"},
		"no kind":    {Create: selecting(`{group: "", version: v1}`), Refused: "resourceSelectors[0].kind: Required value"},
		"an empty kind": {
			Create:  selecting(`{group: "", version: v1, kind: ""}`),
			Refused: "should be at least 1 chars long",
		},
	})
}

// TestLabelSelector holds for every label selector of the API; see hack/tools/crdgen.
func TestLabelSelector(t *testing.T) {
	with := func(selector string) string {
		return selecting(`{group: "", version: v1, kind: Namespace, labelSelector: ` + selector + `}`)
	}
	requirement := func(text string) string { return with(`{matchExpressions: [` + text + `]}`) }
	const values = "values must be given for the operators In and NotIn, and left out for Exists and DoesNotExist"
	apitest.Run(t, hub, map[string]apitest.Case{
		"In":                     {Create: requirement(`{key: tier, operator: In, values: [web, ""]}`)},
		"NotIn":                  {Create: requirement(`{key: example.com/tier, operator: NotIn, values: [web]}`)},
		"Exists":                 {Create: requirement(`{key: tier, operator: Exists}`)},
		"DoesNotExist":           {Create: requirement(`{key: tier, operator: DoesNotExist, values: []}`)},
		"an unknown operator":    {Create: requirement(`{key: tier, operator: Gt, values: ["1"]}`), Refused: `Unsupported value: "Gt"`},
		"In without values":      {Create: requirement(`{key: tier, operator: In}`), Refused: values},
		"NotIn with no value":    {Create: requirement(`{key: tier, operator: NotIn, values: []}`), Refused: values},
		"Exists with a value":    {Create: requirement(`{key: tier, operator: Exists, values: [web]}`), Refused: values},
		"no key":                 {Create: requirement(`{operator: Exists}`), Refused: "key: Required value"},
		"a key that is none":     {Create: requirement(`{key: "not a key", operator: Exists}`), Refused: "key must be a label key"},
		"a value that is none":   {Create: requirement(`{key: tier, operator: In, values: ["not a value"]}`), Refused: "values[0] in body should match"},
		"labels":                 {Create: with(`{matchLabels: {tier: web, example.com/Zone: "", a_b.c-d: X.y_z-1}}`)},
		"a label key of no form": {Create: with(`{matchLabels: {"not a key": web}}`), Refused: "each key of matchLabels must be a label key"},
		"a label value too long": {Create: with(`{matchLabels: {tier: ` + strings.Repeat("x", 64) + `}}`), Refused: "may not be more than 63"},
		"21 requirements": {
			Create:  requirement(strings.Repeat(`{key: tier, operator: Exists},`, 21)),
			Refused: "must have at most 20 items",
		},
	})
}

// TestUnknownFields: a field is in the API when it works. One that is not is refused, and never silently ignored.
func TestUnknownFields(t *testing.T) {
	cases := map[string]apitest.Case{}
	for field, text := range map[string]string{
		"spec.policy.policyOfAnotherProduct":          "  policy: {policyOfAnotherProduct: {}}",
		"spec.strategy.rollingUpdateOfAnotherProduct": "  strategy: {rollingUpdateOfAnotherProduct: {}}",
	} {
		cases[field] = apitest.Case{Create: aPlacement + text, Refused: `unknown field "` + field + `"`}
	}
	apitest.Run(t, hub, cases)
}
