package v1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

func TestEnvelopes(t *testing.T) {
	cluster := "\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourceEnvelope\n"
	namespaced := "\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceEnvelope\n"
	role := "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: default}, rules: []}"
	config := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}, data: {a: b}}"
	entries := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "e%d.yaml: %s, ", i, config)
		}
		return "data: {" + text.String() + "}"
	}
	in := "metadata: {namespace: default}\n"
	apitest.Run(t, hub, map[string]apitest.Case{
		"any object":                {Create: namespaced + in + entries(1), Want: map[string]any{"data": map[string]any{"e0.yaml": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "default"}, "data": map[string]any{"a": "b"}}}}},
		"50 entries":                {Create: namespaced + in + entries(50)},
		"51 entries":                {Create: namespaced + in + entries(51), Refused: "must have at most 50 items"},
		"no entries":                {Create: namespaced + in + entries(0), Refused: "should have at least 1 properties"},
		"no object":                 {Create: namespaced + in + "data: {a: {b: c}}", Refused: "apiVersion: Required value"},
		"rights":                    {Create: namespaced + in + "data: {a: " + role + "}", Refused: "cannot carry objects that give rights"},
		"rights, cluster-wide":      {Create: cluster + "data: {a: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}}"},
		"no entries, cluster-wide":  {Create: cluster + "data: {}", Refused: "should have at least 1 properties"},
		"51 entries, cluster-wide":  {Create: cluster + entries(51), Refused: "must have at most 50 items"},
		"a long name":               {Create: namespaced + "metadata: {namespace: default, name: " + strings.Repeat("e", 64) + "}\n" + entries(1), Refused: "metadata.name max length is 63"},
		"a long name, cluster-wide": {Create: cluster + "metadata: {name: " + strings.Repeat("e", 64) + "}\n" + entries(1), Refused: "metadata.name max length is 63"},
	})
}
