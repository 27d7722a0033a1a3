package v1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// The parts of overrides that the cases below vary. Each stands for a spec's further lines.
const (
	clusterOverrideHead = "\napiVersion: placement.kubernetes-fleet.io/%s\nkind: ClusterResourceOverride\n"
	overrideHead        = "\napiVersion: placement.kubernetes-fleet.io/%s\nkind: ResourceOverride\n"

	theNamespace = "  clusterResourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: web}]\n"
	theConfigMap = "  resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: web}]\n"
	aPatch       = "{op: replace, path: /data/a, value: b}"
)

func policyOf(rules ...string) string {
	return "  policy:\n    overrideRules:\n    - " + strings.Join(rules, "\n    - ") + "\n"
}

func patching(path string) string {
	return fmt.Sprintf("{clusterSelector: {}, jsonPatchOverrides: [{op: add, path: %q, value: 1}]}", path)
}

// cases are the rules that both kinds share. in puts together an object of a name.
func overrideCases(in func(name, placement, selectors, policy string) string, selector string) map[string]apitest.Case {
	rule := "{clusterSelector: {}, jsonPatchOverrides: [" + aPatch + "]}"
	cases := map[string]apitest.Case{
		"defaults": {
			Create: in("", "  placement: {name: web}\n", selector, policyOf(rule)),
			Want:   map[string]any{"metadata.generation": int64(1), "spec.placement.scope": "Cluster"},
		},
		"no placement":                {Create: in("", "", selector, policyOf(rule)), Want: map[string]any{"spec.placement": nil}},
		"no policy":                   {Create: in("", "", selector, ""), Refused: "spec.policy: Required value"},
		"a name of 63 characters":     {Create: in(strings.Repeat("o", 63), "", selector, policyOf(rule))},
		"a name of 64 characters":     {Create: in(strings.Repeat("o", 64), "", selector, policyOf(rule)), Refused: "metadata.name max length is 63"},
		"a placement without a name":  {Create: in("", "  placement: {name: \"\"}\n", selector, policyOf(rule)), Refused: "should be at least 1 chars long"},
		"another scope":               {Create: in("", "  placement: {name: web, scope: Global}\n", selector, policyOf(rule)), Refused: "Unsupported value"},
		"another placement later":     {Create: in("", "  placement: {name: web}\n", selector, policyOf(rule)), Update: "spec: {placement: {name: api}}", Refused: "The placement field is immutable"},
		"a placement that is removed": {Create: in("", "  placement: {name: web}\n", selector, policyOf(rule)), Update: "spec: {placement: null}", Refused: "The placement field is immutable"},
		"a placement that is added":   {Create: in("", "", selector, policyOf(rule)), Update: "spec: {placement: {name: web}}", Refused: "The placement field is immutable"},
		"the policy later":            {Create: in("", "  placement: {name: web}\n", selector, policyOf(rule)), Update: "spec: {policy: {overrideRules: [{overrideType: Delete}]}}"},
		"no rules":                    {Create: in("", "", selector, "  policy: {overrideRules: []}\n"), Refused: "should have at least 1 items"},
		"20 rules":                    {Create: in("", "", selector, policyOf(strings.Split(strings.Repeat(rule+"\n", 20)[:20*len(rule)+19], "\n")...))},
		"21 rules":                    {Create: in("", "", selector, policyOf(strings.Split(strings.Repeat(rule+"\n", 21)[:21*len(rule)+20], "\n")...)), Refused: "must have at most 20 items"},
		"10 terms":                    {Create: in("", "", selector, policyOf("{clusterSelector: {clusterSelectorTerms: ["+strings.Repeat("{labelSelector: {}},", 10)+"]}, overrideType: Delete}"))},
		"11 terms":                    {Create: in("", "", selector, policyOf("{clusterSelector: {clusterSelectorTerms: ["+strings.Repeat("{labelSelector: {}},", 11)+"]}, overrideType: Delete}")), Refused: "must have at most 10 items"},
		"a term without a selector":   {Create: in("", "", selector, policyOf("{clusterSelector: {clusterSelectorTerms: [{}]}, overrideType: Delete}")), Refused: "labelSelector: Required value"},
		"a term by property":          {Create: in("", "", selector, policyOf("{clusterSelector: {clusterSelectorTerms: [{labelSelector: {}, propertySelector: {}}]}, overrideType: Delete}")), Refused: `unknown field "spec.policy.overrideRules[0].clusterSelector.clusterSelectorTerms[0].propertySelector"`},
		"a selector that cannot be read": {
			Create:  in("", "", selector, policyOf("{clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchExpressions: [{key: a, operator: In}]}}]}, overrideType: Delete}")),
			Refused: "values must be given for the operators In and NotIn",
		},
		"an override type that is not known": {Create: in("", "", selector, policyOf("{overrideType: Merge}")), Refused: `Unsupported value: "Merge"`},
		"JSONPatch is the default, and needs patches": {
			Create: in("", "", selector, policyOf("{clusterSelector: {}}")), Refused: "jsonPatchOverrides must be given with overrideType JSONPatch",
		},
		"Delete with patches": {
			Create: in("", "", selector, policyOf("{overrideType: Delete, jsonPatchOverrides: ["+aPatch+"]}")), Refused: "left out with Delete",
		},
		"no patches":                      {Create: in("", "", selector, policyOf("{jsonPatchOverrides: []}")), Refused: "should have at least 1 items"},
		"20 patches":                      {Create: in("", "", selector, policyOf("{jsonPatchOverrides: ["+strings.Repeat(aPatch+",", 20)+"]}"))},
		"21 patches":                      {Create: in("", "", selector, policyOf("{jsonPatchOverrides: ["+strings.Repeat(aPatch+",", 21)+"]}")), Refused: "must have at most 20 items"},
		"an operation that is not known":  {Create: in("", "", selector, policyOf("{jsonPatchOverrides: [{op: move, path: /a}]}")), Refused: `Unsupported value: "move"`},
		"a value that is an object":       {Create: in("", "", selector, policyOf("{jsonPatchOverrides: [{op: add, path: /a, value: {b: [1, {c: d}]}}]}"))},
		"remove without a value":          {Create: in("", "", selector, policyOf("{jsonPatchOverrides: [{op: remove, path: /a}]}"))},
		"a path of 1024 characters":       {Create: in("", "", selector, policyOf(patching("/"+strings.Repeat("a", 1023))))},
		"a path of 1025 characters":       {Create: in("", "", selector, policyOf(patching("/"+strings.Repeat("a", 1024)))), Refused: "may not be more than 1024"},
		"two selectors of the same kind":  {Create: in("", "", twice(selector), policyOf(rule))},
		"no selectors":                    {Create: in("", "", none(selector), policyOf(rule)), Refused: "should have at least 1 items"},
		"21 selectors":                    {Create: in("", "", many(selector, 21), policyOf(rule)), Refused: "must have at most 20 items"},
		"20 selectors":                    {Create: in("", "", many(selector, 20), policyOf(rule))},
		"a selector that names no object": {Create: in("", "", strings.ReplaceAll(selector, ", name: web", ""), policyOf(rule)), Refused: "name"},
	}
	for path, refused := range map[string]string{
		"":                             "path must be a JSON pointer",
		"/":                            "path must be a JSON pointer",
		"spec/replicas":                "path must be a JSON pointer",
		"/kind":                        "path cannot be apiVersion or kind",
		"/apiVersion":                  "path cannot be apiVersion or kind",
		"/metadata":                    "labels and annotations alone",
		"/metadata/name":               "labels and annotations alone",
		"/metadata/namespace":          "labels and annotations alone",
		"/metadata/labelsx":            "labels and annotations alone",
		"/metadata/finalizers/-":       "labels and annotations alone",
		"/status":                      "path cannot be in status",
		"/status/phase":                "path cannot be in status",
		"/metadata/labels":             "",
		"/metadata/labels/a":           "",
		"/metadata/annotations/a~1b":   "",
		"/spec/replicas":               "",
		"/spec/status":                 "",
		"/kinds":                       "",
		"/data/${MEMBER-CLUSTER-NAME}": "",
	} {
		cases["the path "+path] = apitest.Case{Create: in("", "", selector, policyOf(patching(path))), Refused: refused}
	}
	return cases
}

// none, twice and many change a line of selectors with one in it.
func none(selector string) string  { return many(selector, 0) }
func twice(selector string) string { return many(selector, 2) }

func many(selector string, n int) string {
	field, item, _ := strings.Cut(strings.TrimSuffix(selector, "]\n"), "[")
	return field + "[" + strings.Repeat(item+",", n) + "]\n"
}

func TestClusterResourceOverride(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		cases := overrideCases(func(name, placement, selectors, policy string) string {
			text := fmt.Sprintf(clusterOverrideHead, version)
			if name != "" {
				text += "metadata: {name: " + version + name[len(version):] + "}\n"
			}
			return text + "spec:\n" + placement + selectors + policy
		}, theNamespace)
		rule := policyOf("{clusterSelector: {}, jsonPatchOverrides: [" + aPatch + "]}")
		head := fmt.Sprintf(clusterOverrideHead, version) + "spec:\n"
		cases["a placement in a namespace"] = apitest.Case{
			Create:  head + "  placement: {name: web, scope: Namespaced}\n" + theNamespace + rule,
			Refused: "clusterResourceOverride placement reference cannot be Namespaced scope",
		}
		cases["a selector by label"] = apitest.Case{
			Create:  head + "  clusterResourceSelectors: [{group: \"\", version: v1, kind: Namespace, labelSelector: {matchLabels: {a: b}}}]\n" + rule,
			Refused: "each of clusterResourceSelectors must name its object",
		}
		t.Run(version, func(t *testing.T) { apitest.Run(t, hub, cases) })
	}
}

func TestResourceOverride(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		cases := overrideCases(func(name, placement, selectors, policy string) string {
			text := fmt.Sprintf(overrideHead, version) + "metadata: {namespace: default"
			if name != "" {
				text += ", name: " + version + name[len(version):]
			}
			return text + "}\nspec:\n" + placement + selectors + policy
		}, theConfigMap)
		cases["a placement in its namespace"] = apitest.Case{
			Create: fmt.Sprintf(overrideHead, version) + "metadata: {namespace: default}\nspec:\n  placement: {name: web, scope: Namespaced}\n" + theConfigMap +
				policyOf("{overrideType: Delete}"),
		}
		t.Run(version, func(t *testing.T) { apitest.Run(t, hub, cases) })
	}
}

// Snapshots cannot be changed, but for their labels.
func TestOverrideSnapshots(t *testing.T) {
	const content = "  overrideHash: YWJj\n  overrideSpec:\n    policy: {overrideRules: [{overrideType: Delete}]}\n"
	cluster := "\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourceOverrideSnapshot\nspec:\n" + content +
		"    clusterResourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: web}]\n"
	namespaced := "\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverrideSnapshot\nmetadata: {namespace: default}\nspec:\n" + content +
		"    resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: web}]\n"
	cases := map[string]apitest.Case{}
	for kind, text := range map[string]string{"cluster-wide": cluster, "of a namespace": namespaced} {
		cases[kind] = apitest.Case{Create: text}
		cases[kind+", labelled"] = apitest.Case{Create: text, Update: "metadata: {labels: {a: b}}"}
		cases[kind+", changed"] = apitest.Case{Create: text, Update: "spec: {overrideHash: YWJk}", Refused: "spec is immutable"}
	}
	apitest.Run(t, hub, cases)
}
