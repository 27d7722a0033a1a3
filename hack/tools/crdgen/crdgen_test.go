package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  names: {kind: KIND}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Gen}]
    subresources: SUBRESOURCES
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              items:
                items:
                  properties:
                    labelSelector:
                      properties:
                        matchLabels: {additionalProperties: {type: string}}
                        matchExpressions:
                          items: {properties: {key: {}, operator: {}, values: {items: {}}}}
`

func define(kind, subresources string) string {
	return strings.NewReplacer("KIND", kind, "SUBRESOURCES", subresources).Replace(definition)
}

// TestFinishLeavesForeignVersions: an API that is not ours gets no version that its owners do not know.
func TestFinishLeavesForeignVersions(t *testing.T) {
	text := strings.Replace(define("ClusterProfile", "{status: {}}"), "name: v1\n", "name: v1alpha1\n", 1)
	text = strings.Replace(text, "\nspec:\n", "\nspec:\n  group: multicluster.x-k8s.io\n", 1)
	_, content, err := finish([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatalf("parse what was made: %v", err)
	}
	versions := object(crd, "spec")["versions"].([]any)
	if len(versions) != 1 || versions[0].(map[string]any)["name"] != "v1alpha1" {
		t.Errorf("the versions are %v", versions)
	}
	if _, _, err := finish([]byte(strings.Replace(text, "multicluster.x-k8s.io", "cluster.kubernetes-fleet.io", 1))); err == nil {
		t.Error("a kind of ours in another version than v1 is taken")
	}
}

func TestFinish(t *testing.T) {
	side, content, err := finish([]byte(define("Work", "{status: {}}")))
	if err != nil || side != "hub" {
		t.Fatalf("finish: %v, on side %q, want hub", err, side)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatalf("parse what was made: %v", err)
	}
	versions := object(crd, "spec")["versions"].([]any)
	if len(versions) != 2 {
		t.Fatalf("%d versions, want 2", len(versions))
	}
	v1, beta := versions[0].(map[string]any), versions[1].(map[string]any)
	if beta["name"] != "v1beta1" || beta["served"] != true || beta["storage"] != false || v1["storage"] != true {
		t.Errorf("v1beta1 is %v served %v stored %v, v1 stored %v", beta["name"], beta["served"], beta["storage"], v1["storage"])
	}
	for _, part := range []string{"schema", "additionalPrinterColumns", "subresources"} {
		one, _ := yaml.Marshal(v1[part])
		other, _ := yaml.Marshal(beta[part])
		if string(one) != string(other) || v1[part] == nil {
			t.Errorf("%s differs:\n%s\n%s", part, one, other)
		}
	}
	if object(crd, "spec", "conversion")["strategy"] != "None" {
		t.Error("conversion is not None")
	}
	selector := object(v1, "schema", "openAPIV3Schema", "properties", "spec", "properties", "items", "items", "properties", "labelSelector", "properties")
	for field, part := range map[string]map[string]any{
		"maxProperties": object(selector, "matchLabels"),
		"pattern":       object(selector, "matchLabels", "additionalProperties"),
		"maxItems":      object(selector, "matchExpressions"),
		"enum":          object(selector, "matchExpressions", "items", "properties", "operator"),
	} {
		if part[field] == nil {
			t.Errorf("a label selector has no %s", field)
		}
	}
}

func TestFinishBetaKind(t *testing.T) {
	_, content, err := finish([]byte(define("ResourceBinding", "{status: {}}")))
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatalf("parse what was made: %v", err)
	}
	versions := object(crd, "spec")["versions"].([]any)
	only := versions[0].(map[string]any)
	if len(versions) != 1 || only["name"] != "v1beta1" || only["served"] != true || only["storage"] != true {
		t.Errorf("versions are %v, want v1beta1 alone, served and stored", versions)
	}
}

func TestFinishRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"two versions":    strings.Replace(definition, "  - name: v1", "  - name: v1beta1\n  - name: v1", 1),
		"another version": strings.Replace(definition, "name: v1", "name: v2", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := finish([]byte(content)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestRun(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	files := map[string]string{
		filepath.Join(from, "works.yaml"):          define("Work", "{}"),
		filepath.Join(from, "appliedworks.yaml"):   define("AppliedWork", "{}"),
		filepath.Join(to, "hub", "forgotten.yaml"): "a kind that is no more",
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(from, to); err != nil {
		t.Fatal(err)
	}
	got, err := filepath.Glob(filepath.Join(to, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(to, "hub", "works.yaml") + " " + filepath.Join(to, "member", "appliedworks.yaml")
	if strings.Join(got, " ") != want {
		t.Errorf("wrote %v, want %s", got, want)
	}
	content, err := os.ReadFile(filepath.Join(to, "hub", "works.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), "subresources") {
		t.Error("keeps subresources that are none")
	}
}
