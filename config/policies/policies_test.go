package policies_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	propagation        = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: PropagationPolicy\nmetadata: {namespace: default, generateName: p-}\n"
	clusterPropagation = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {generateName: p-}\n"
	overriding         = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: OverridePolicy\nmetadata: {namespace: default, generateName: o-}\n"
	clusterOverriding  = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {generateName: o-}\n"

	elsewhere = "spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: ConfigMap, namespace: shop}]"
)

// TestPolicies: a policy of a namespace is about that namespace, and a change of an override has the value that it needs.
func TestPolicies(t *testing.T) {
	install(t)
	c := as(t, "anna")
	inForce(t, c, propagation+elsewhere+"}", overriding+rules("plaintext: [{path: /data/a, operator: add}]"))
	for name, tc := range map[string]struct{ object, refused string }{
		"its own namespace, not said":     {propagation + "spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}", ""},
		"its own namespace, said":         {propagation + "spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default}]}", ""},
		"an empty one":                    {propagation + "spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: \"\"}]}", ""},
		"another namespace":               {propagation + elsewhere + "}", "selects in namespace shop, and this policy is for objects of namespace default alone: leave the selector's namespace out, or make a ClusterPropagationPolicy"},
		"another, of the whole hub":       {clusterPropagation + elsewhere + "}", ""},
		"an override elsewhere":           {overriding + elsewhere + ", overrideRules: [{overriders: {}}]}", "or make a ClusterOverridePolicy"},
		"an override of the whole hub":    {clusterOverriding + elsewhere + ", overrideRules: [{overriders: {}}]}", ""},
		"an override of every object":     {overriding + "spec: {overrideRules: [{overriders: {}}]}", ""},
		"add with a value":                {overriding + rules("plaintext: [{path: /data/a, operator: add, value: {a: [1]}}]"), ""},
		"a value of no or nothing":        {overriding + rules("plaintext: [{path: /data/a, operator: add, value: false}, {path: /data/a, operator: replace, value: 0}, {path: /data/a, operator: replace, value: \"\"}]"), ""},
		"remove without a value":          {overriding + rules("plaintext: [{path: /data/a, operator: remove}]"), ""},
		"add without a value":             {overriding + rules("plaintext: [{path: /data/b, operator: remove}, {path: /data/a, operator: add}]"), "plaintext for path /data/a: value is needed to add"},
		"replace by null":                 {clusterOverriding + rules("plaintext: [{path: /data/a, operator: replace, value: null}]"), "plaintext for path /data/a: value is needed to replace"},
		"remove with a value":             {overriding + rules("plaintext: [{path: /data/a, operator: remove, value: 1}]"), "plaintext for path /data/a: remove takes no value; leave value out"},
		"in the older form":               {overriding + "spec: {overriders: {plaintext: [{path: /data/a, operator: add}]}}", "value is needed to add"},
		"in the second rule":              {overriding + "spec: {overrideRules: [{overriders: {}}, {overriders: {plaintext: [{path: /data/a, operator: add}]}}]}", "value is needed to add"},
		"a field with a value":            {overriding + rules("fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /a, operator: add, value: 1}]}]"), ""},
		"a field, removed":                {overriding + rules("fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /a, operator: remove}]}]"), ""},
		"a field of JSON without value":   {overriding + rules("fieldOverrider: [{fieldPath: /data/a, json: [{subPath: /a, operator: add}]}]"), "fieldOverrider for fieldPath /data/a: value is needed"},
		"a field of YAML without value":   {clusterOverriding + rules("fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /a, operator: replace}]}]"), "must be left out to remove"},
		"a field, removed with a value":   {overriding + rules("fieldOverrider: [{fieldPath: /data/a, yaml: [{subPath: /a, operator: remove, value: 1}]}]"), "must be left out to remove"},
		"as many changes as there can be": {overriding + "spec: {overrideRules: [" + strings.Repeat("{overriders: {plaintext: ["+strings.Repeat("{path: /data/a, operator: add, value: 1},", 50)+"]}},", 30) + "]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), apitest.Parse(t, tc.object), client.DryRunAll)
			if tc.refused == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("%v, want it to be invalid, and to say %q", err, tc.refused)
			}
		})
	}
}

// A policy that was there before is let alone in all but what it says: its finalizers must come off, whatever it says.
func TestPoliciesThatWereThereBefore(t *testing.T) {
	install(t)
	c := as(t, "anna")
	inForce(t, c, propagation+elsewhere+"}")
	o := apitest.Parse(t, propagation+"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(framework.CleanupContext(t), o); err != nil {
			t.Errorf("delete the policy: %v", err)
		}
	})
	patch := func(text string) error {
		return c.Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
	}
	if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("a label: %v", err)
	}
	if err := patch(`{"spec":{"resourceSelectors":[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop"}]}}`); !apierrors.IsInvalid(err) {
		t.Errorf("another namespace: %v, want it to be invalid", err)
	}
}

func rules(overriders string) string {
	return "spec: {overrideRules: [{overriders: {" + overriders + "}}]}"
}

// inForce waits until each of the objects is refused, which is the first sign of a policy.
func inForce(t *testing.T, c client.Client, objects ...string) {
	t.Helper()
	for _, text := range objects {
		gomega.NewWithT(t).Eventually(func() error {
			return c.Create(t.Context(), apitest.Parse(t, text), client.DryRunAll)
		}, framework.Patience).ShouldNot(gomega.Succeed())
	}
}
