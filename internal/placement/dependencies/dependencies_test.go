package dependencies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const podSpec = `
serviceAccountName: robot
imagePullSecrets: [{name: pull}]
initContainers:
- name: init
  envFrom: [{configMapRef: {name: settings, optional: true}}, {secretRef: {name: both, optional: true}}]
containers:
- name: main
  env:
  - {name: A, valueFrom: {configMapKeyRef: {name: keys, key: a}}}
  - {name: B, valueFrom: {secretKeyRef: {name: both, key: b}}}
  - {name: C, value: c}
volumes:
- {name: v1, configMap: {name: files}}
- {name: v2, secret: {secretName: certificate, optional: true}}
- {name: v3, persistentVolumeClaim: {claimName: data}}
- {name: v4, projected: {sources: [{configMap: {name: projected}}, {secret: {name: projected}}, {configMap: {name: kube-root-ca.crt}}]}}
- {name: v5, emptyDir: {}}
`

func TestOf(t *testing.T) {
	t.Parallel()
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(podSpec), &spec); err != nil {
		t.Fatal(err)
	}
	template := map[string]any{"spec": spec}
	want := []string{
		"ConfigMap files", "ConfigMap keys", "ConfigMap projected", "ConfigMap settings, optional", "PersistentVolumeClaim data",
		"Secret both", "Secret certificate, optional", "Secret projected", "Secret pull, optional", "ServiceAccount robot",
	}
	tests := map[string]struct {
		object map[string]any
		want   []string
	}{
		"a Deployment":    {object: map[string]any{"kind": "Deployment", "spec": map[string]any{"template": template}}, want: want},
		"a CronJob":       {object: map[string]any{"kind": "CronJob", "spec": map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}}, want: want},
		"no pod template": {object: map[string]any{"kind": "Service", "spec": map[string]any{"selector": map[string]any{}}}},
		"nothing needed": {object: map[string]any{"kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"serviceAccountName": "default", "containers": []any{map[string]any{"name": "a"}},
		}}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := Of(&unstructured.Unstructured{Object: tc.object})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range found {
				text := r.String()
				if r.Optional {
					text += ", optional"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	broken := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": "none"}}}}}
	if _, err := Of(broken); err == nil {
		t.Error("a pod template that is none is read")
	}
}
