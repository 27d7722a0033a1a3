package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkHubWorkloads looks whether Pods are refused on the hub until the switch lets them in. A value that the switch does not
// know lets nothing in.
func checkHubWorkloads(t *testing.T, hub client.Client, namespace string) {
	t.Helper()
	run := func(namespace string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
		return hub.Create(t.Context(), pod, client.DryRunAll)
	}
	refused := func(when string) {
		t.Helper()
		if err := run(namespace); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "hub-workloads") {
			t.Errorf("run a Pod on the hub, %s: %v", when, err)
		}
	}
	// What the switch is set to takes effect a moment later, and nothing but trying tells when.
	until := func(what string, done func(error) bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, framework.Patience, true, func(context.Context) (bool, error) { return done(run(namespace)), nil })
		if err != nil {
			t.Fatalf("wait until Pods are %s: %v", what, err)
		}
	}
	refused("as it comes")
	if err := run("fleetwright-system"); apierrors.IsForbidden(err) && strings.Contains(err.Error(), "hub-workloads") {
		t.Errorf("run a Pod in a namespace of the system: %v", err)
	}
	rails := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleetwright-system", Name: "fleetwright-guard-rails"}}
	t.Cleanup(func() {
		off := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"hub-workloads":null}}`))
		if err := hub.Patch(framework.CleanupContext(t), rails, off); err != nil {
			t.Errorf("set the switch back: %v", err)
		}
	})
	change(t, hub, rails, `{"data":{"hub-workloads":"allowed, please"}}`)
	refused("with a value that the switch does not know")
	change(t, hub, rails, `{"data":{"hub-workloads":"Allowed"}}`)
	until("let in", func(err error) bool { return err == nil || !strings.Contains(err.Error(), "hub-workloads") })
	change(t, hub, rails, `{"data":{"hub-workloads":"Refused"}}`)
	until("refused again", apierrors.IsForbidden)
}
