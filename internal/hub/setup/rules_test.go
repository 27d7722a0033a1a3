package setup

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

func TestNegativeForceLeaveAfter(t *testing.T) {
	t.Parallel()
	_, err := Manager(&rest.Config{}, Options{ForceLeaveAfter: -time.Second})
	if err == nil || !strings.Contains(err.Error(), "--force-leave-after=-1s: it must not be less than 0") {
		t.Errorf("got error %v", err)
	}
}

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
