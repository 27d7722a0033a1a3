package setup

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRules: what an operator sets reaches the rules of what is placed.
func TestRules(t *testing.T) {
	t.Parallel()
	claim := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}}
	for _, runs := range []bool{false, true} {
		options := Options{HubRunsWorkloads: runs, SkippedNamespaces: Namespaces{"platform"}}
		if got := options.rules().Skips(claim, nil); got != runs {
			t.Errorf("hub runs workloads: %t, and a claim is left out: %t", runs, got)
		}
		if !options.rules().Reserved("platform") {
			t.Error("a namespace that is to be skipped is not")
		}
	}
}
