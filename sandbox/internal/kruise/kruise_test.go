package kruise

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

const rendered = `
apiVersion: v1
kind: Namespace
metadata: {name: kruise-rollout}
---
# A comment alone is no object.
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kruise-rollout-controller-manager}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.rollouts.kruise.io}
status: {conditions: [{type: Established, status: "True"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating}
`

func TestSelectManifests(t *testing.T) {
	selected, err := SelectManifests([]byte(rendered))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(selected)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	want := []string{"kruise-rollout", "rollouts.rollouts.kruise.io", "mutating", "validating"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}

	_, err = SelectManifests([]byte(strings.Replace(rendered, "kind: MutatingWebhook", "kind: OtherWebhook", 1)))
	if err == nil || !strings.Contains(err.Error(), "MutatingWebhookConfiguration") {
		t.Errorf("got %v, want an error that names the missing kind", err)
	}
	if _, err := SelectManifests([]byte("a: [")); err == nil {
		t.Error("no error for what is no YAML")
	}
}

func TestInstallKeepsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), ManifestsFile)
	selected, err := SelectManifests([]byte(rendered))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, selected, 0o600); err != nil {
		t.Fatal(err)
	}
	existing := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       "MutatingWebhookConfiguration",
		"metadata":   map[string]any{"name": "mutating", "labels": map[string]any{"written-by": "kruise"}},
	}}
	lists := map[schema.GroupVersionResource]string{}
	for kind, resource := range needed {
		lists[resource] = kind + "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, existing)
	if err := Install(t.Context(), client, path); err != nil {
		t.Fatal(err)
	}
	got, err := client.Resource(needed["MutatingWebhookConfiguration"]).Get(t.Context(), "mutating", metav1.GetOptions{})
	if err != nil || got.GetLabels()["written-by"] != "kruise" {
		t.Errorf("an existing webhook configuration was changed: %v, %v", got, err)
	}
	for kind, name := range map[string]string{"Namespace": "kruise-rollout", "ValidatingWebhookConfiguration": "validating"} {
		if _, err := client.Resource(needed[kind]).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s %s was not created: %v", kind, name, err)
		}
	}
}

func TestProcessHasItsOwnPorts(t *testing.T) {
	p := Process("member1", "/bin/kruise", "/dir", "/logs", "/kubeconfig", Ports{Webhook: 1, Health: 2, Metrics: 3})
	for _, want := range []string{"KUBECONFIG=/kubeconfig", "WEBHOOK_PORT=1", "WEBHOOK_CERT_DIR=/dir/kruise-webhook"} {
		if !slices.Contains(p.Env, want) {
			t.Errorf("environment %v lacks %s", p.Env, want)
		}
	}
	if p.Ready != "http://127.0.0.1:2/readyz" {
		t.Errorf("ready at %s", p.Ready)
	}
}
