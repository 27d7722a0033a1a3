package v1_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

func TestSelectionScope(t *testing.T) {
	const (
		opens  = `{group: "", version: v1, kind: Namespace, name: web, selectionScope: NamespaceWithResourceSelectors}`
		config = `{group: "", version: v1, kind: ConfigMap, name: web}`
		once   = "only one namespace selector with NamespaceWithResourceSelectors mode is allowed"
		named  = "namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)"
		alone  = "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)"
	)
	cases := map[string]apitest.Case{}
	for kind, head := range map[string]string{
		"cluster": placementHead, "namespace": "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ResourcePlacement\nmetadata: {namespace: default}\n",
	} {
		of := func(selectors ...string) string {
			return head + "spec:\n  resourceSelectors:\n  - " + strings.Join(selectors, "\n  - ") + "\n"
		}
		for name, tc := range map[string]apitest.Case{
			"with other kinds": {Create: of(opens, config)},
			"twice":            {Create: of(opens, strings.Replace(opens, "web", "shop", 1)), Refused: once},
			"by label":         {Create: of(strings.Replace(opens, "name: web", "labelSelector: {matchLabels: {a: b}}", 1), config), Refused: named},
			"of all":           {Create: of(strings.Replace(opens, "name: web, ", "", 1), config), Refused: named},
			"with another":     {Create: of(opens, `{group: "", version: v1, kind: Namespace, name: shop, selectionScope: NamespaceOnly}`), Refused: alone},
			"that is unknown":  {Create: of(strings.Replace(opens, "NamespaceWithResourceSelectors", "Everything", 1)), Refused: `Unsupported value: "Everything"`},
			"on another kind":  {Create: of(strings.Replace(opens, "Namespace, name: web", "Secret", 1), strings.Replace(opens, "Namespace,", "Secret,", 1))},
			"changed to a bad": {
				Create: of(opens, config), Update: "spec: {resourceSelectors: [" + opens + ", " + strings.Replace(opens, "web", "shop", 1) + "]}", Refused: once,
			},
		} {
			cases[kind+": "+name] = tc
		}
	}
	apitest.Run(t, hub, cases)
}
