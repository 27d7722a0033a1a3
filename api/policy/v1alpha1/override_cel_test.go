package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

const (
	overriding        = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: OverridePolicy\nmetadata: {namespace: default}\n"
	clusterOverriding = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: ClusterOverridePolicy\n"
)

// rule is a spec with one rule for every cluster.
func rule(overriders string) string { return "overrideRules: [{overriders: {" + overriders + "}}]" }

func TestOverrideRules(t *testing.T) {
	const (
		aRule    = "{overriders: {}}"
		aPatch   = "{path: /data/a, operator: remove}"
		anImage  = "{component: Tag, operator: replace, value: v2}"
		aField   = "{fieldPath: /data/a, json: [{subPath: /a, operator: remove}]}"
		labels   = "{operator: add, value: {a: b}}"
		commands = "{containerName: web, operator: add, value: [a]}"
	)
	onBoth(t, overriding, clusterOverriding, map[string]apitest.Case{
		"of every object":                   {Create: "overrideRules: [" + aRule + "]", Want: map[string]any{"metadata.generation": int64(1), "spec.resourceSelectors": nil}},
		"50 selectors":                      {Create: "resourceSelectors: [" + repeat(aSelector, 50) + "], " + rule("")},
		"51 selectors":                      {Create: "resourceSelectors: [" + repeat(aSelector, 51) + "], " + rule(""), Refused: "must have at most 50 items"},
		"a selector of name and labels":     {Create: "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: a, labelSelector: {}}], " + rule(""), Refused: "name and labelSelector exclude each other"},
		"no rules":                          {Create: "", Refused: "give overrideRules: without any nothing is changed"},
		"clusters alone, in the older form": {Create: "targetCluster: {}", Refused: "give overrideRules: without any nothing is changed"},
		"an empty list of rules":            {Create: "overrideRules: []", Refused: "should have at least 1 items"},
		"30 rules":                          {Create: "overrideRules: [" + repeat(aRule, 30) + "]"},
		"31 rules":                          {Create: "overrideRules: [" + repeat(aRule, 31) + "]", Refused: "must have at most 30 items"},
		"the older form":                    {Create: "targetCluster: {clusterNames: [a]}, overriders: {plaintext: [" + aPatch + "]}"},
		"the older form, and rules":         {Create: "overriders: {}, overrideRules: [" + aRule + "]", Refused: "overrideRules and the older targetCluster and overriders exclude each other"},
		"the older clusters, and rules":     {Create: "targetCluster: {}, overrideRules: [" + aRule + "]", Refused: "overrideRules and the older targetCluster and overriders exclude each other"},
		"a rule without overriders":         {Create: "overrideRules: [{targetCluster: {}}]", Refused: "overriders: Required value"},
		"50 of each": {Create: rule("imageOverrider: [" + repeat(anImage, 50) + "], commandOverrider: [" + repeat(commands, 50) + "], argsOverrider: [" + repeat(commands, 50) +
			"], labelsOverrider: [" + repeat(labels, 50) + "], annotationsOverrider: [" + repeat(labels, 50) + "], fieldOverrider: [" + repeat(aField, 50) + "], plaintext: [" + repeat(aPatch, 50) + "]")},
		"51 images":              {Create: rule("imageOverrider: [" + repeat(anImage, 51) + "]"), Refused: "must have at most 50 items"},
		"51 commands":            {Create: rule("commandOverrider: [" + repeat(commands, 51) + "]"), Refused: "must have at most 50 items"},
		"51 arguments":           {Create: rule("argsOverrider: [" + repeat(commands, 51) + "]"), Refused: "must have at most 50 items"},
		"51 labels":              {Create: rule("labelsOverrider: [" + repeat(labels, 51) + "]"), Refused: "must have at most 50 items"},
		"51 annotations":         {Create: rule("annotationsOverrider: [" + repeat(labels, 51) + "]"), Refused: "must have at most 50 items"},
		"51 texts":               {Create: rule("fieldOverrider: [" + repeat(aField, 51) + "]"), Refused: "must have at most 50 items"},
		"51 fields":              {Create: rule("plaintext: [" + repeat(aPatch, 51) + "]"), Refused: "must have at most 50 items"},
		"an image replaced":      {Create: rule("imageOverrider: [{predicate: {path: /spec/image}, component: Registry, operator: replace, value: \"localhost:5000\"}]")},
		"a registry removed":     {Create: rule("imageOverrider: [{component: Registry, operator: remove}]")},
		"added without a value":  {Create: rule("imageOverrider: [{component: Tag, operator: add}]"), Refused: "value is needed to add or replace a part of an image"},
		"replaced by nothing":    {Create: rule(`imageOverrider: [{component: Tag, operator: replace, value: ""}]`), Refused: "value is needed to add or replace a part of an image"},
		"another part":           {Create: rule("imageOverrider: [{component: Digest, operator: remove}]"), Refused: `Unsupported value: "Digest"`},
		"another operator":       {Create: rule("imageOverrider: [{component: Tag, operator: set, value: v2}]"), Refused: `Unsupported value: "set"`},
		"a command":              {Create: rule("commandOverrider: [{containerName: web, operator: remove, value: [a, b]}]")},
		"a command replaced":     {Create: rule("commandOverrider: [{containerName: web, operator: replace, value: [a]}]"), Refused: "operator must be add or remove"},
		"arguments replaced":     {Create: rule("argsOverrider: [{containerName: web, operator: replace, value: [a]}]"), Refused: "operator must be add or remove"},
		"of no container":        {Create: rule(`argsOverrider: [{containerName: "", operator: add, value: [a]}]`), Refused: "should be at least 1 chars long"},
		"no arguments":           {Create: rule("argsOverrider: [{containerName: web, operator: add, value: []}]"), Refused: "should have at least 1 items"},
		"101 arguments":          {Create: rule("argsOverrider: [{containerName: web, operator: add, value: [" + repeat("a", 101) + "]}]"), Refused: "must have at most 100 items"},
		"labels, and no others":  {Create: rule("labelsOverrider: [{operator: remove, value: {a: \"\"}}, {operator: replace, value: {b: c}}], annotationsOverrider: [{operator: add, value: {a: b}}]")},
		"no labels":              {Create: rule("labelsOverrider: [{operator: add}]"), Refused: "value: Required value"},
		"an empty set of labels": {Create: rule("labelsOverrider: [{operator: add, value: {}}]"), Refused: "should have at least 1 properties"},
		"JSON and YAML":          {Create: rule("fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /a, operator: remove}], yaml: [{subPath: /a, operator: remove}]}]"), Refused: "give either json or yaml"},
		"neither JSON nor YAML":  {Create: rule("fieldOverrider: [{fieldPath: /data/a}]"), Refused: "give either json or yaml"},
		"YAML":                   {Create: rule("fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /a/0, operator: add, value: {b: [1, null]}}]}]")},
		"a path in JSON":         {Create: rule("fieldOverrider: [{fieldPath: /data/a, json: [{subPath: a, operator: remove}]}]"), Refused: "subPath must be a JSON pointer into the text"},
		"a path in YAML":         {Create: rule("fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: a.b, operator: remove}]}]"), Refused: "subPath must be a JSON pointer into the text"},
		"51 changes of a text":   {Create: rule("fieldOverrider: [{fieldPath: /data/a, yaml: [" + repeat("{subPath: /a, operator: remove}", 51) + "]}]"), Refused: "must have at most 50 items"},
		"a value that is an object": {
			Create: rule("plaintext: [{path: /spec/x, operator: add, value: {b: [1, {c: d}], e: 1.5}}]"),
			Want: map[string]any{"spec.overrideRules": []any{map[string]any{"overriders": map[string]any{"plaintext": []any{
				map[string]any{"path": "/spec/x", "operator": "add", "value": map[string]any{"b": []any{int64(1), map[string]any{"c": "d"}}, "e": 1.5}},
			}}}}},
		},
		"another operation": {Create: rule("plaintext: [{path: /spec/x, operator: move}]"), Refused: `Unsupported value: "move"`},
		"clusters by label that cannot be read": {Create: "overrideRules: [{targetCluster: {labelSelector: {matchExpressions: [{key: a, operator: In}]}}, overriders: {}}]",
			Refused: "values must be given for the operators In and NotIn"},
	})
}

// TestOverridePaths: wherever a path leads to a field of an object, it leads to none that makes another object of it.
func TestOverridePaths(t *testing.T) {
	cases := map[string]apitest.Case{}
	for path, refused := range map[string]string{
		"":                             "must be a JSON pointer to a field of the object",
		"/":                            "must be a JSON pointer to a field of the object",
		"spec/replicas":                "must be a JSON pointer to a field of the object",
		"/kind":                        "cannot lead to apiVersion or kind",
		"/apiVersion":                  "cannot lead to apiVersion or kind",
		"/metadata":                    "of the metadata an override can change labels and annotations alone",
		"/metadata/name":               "of the metadata an override can change labels and annotations alone",
		"/metadata/namespace":          "of the metadata an override can change labels and annotations alone",
		"/metadata/labelsx":            "of the metadata an override can change labels and annotations alone",
		"/metadata/finalizers/-":       "of the metadata an override can change labels and annotations alone",
		"/status":                      "cannot lead into the status",
		"/status/phase":                "cannot lead into the status",
		"/" + strings.Repeat("a", 512): "may not be more than 512",
		"/" + strings.Repeat("a", 511): "",
		"/metadata/labels":             "",
		"/metadata/annotations/a~1b":   "",
		"/spec/status":                 "",
		"/kinds":                       "",
	} {
		for kind, text := range map[string]string{
			"plaintext":      `plaintext: [{operator: remove, path: "` + path + `"}]`,
			"fieldOverrider": `fieldOverrider: [{json: [{operator: remove, subPath: /a}], fieldPath: "` + path + `"}]`,
			"imageOverrider": `imageOverrider: [{component: Tag, operator: remove, predicate: {path: "` + path + `"}}]`,
		} {
			cases[fmt.Sprintf("%s %.30s, %d long", kind, path, len(path))] = apitest.Case{Create: rule(text), Refused: refused}
		}
	}
	onBoth(t, overriding, clusterOverriding, cases)
}
