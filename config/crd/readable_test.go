// Package crd_test looks at the definitions themselves.
package crd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// TestEveryValueIsReadable: one object with a value that Go cannot read keeps every client from listing its kind, so no
// schema lets one through. That the API server holds itself to formats and patterns is for api/placement/v1 to see.
func TestEveryValueIsReadable(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("list the definitions: %v, %d found", err, len(files))
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			t.Fatalf("parse %s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			walk(t, crd.Spec.Names.Kind+" "+version.Name, version.Schema.OpenAPIV3Schema)
		}
	}
}

func walk(t *testing.T, path string, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	switch {
	case schema.Type == "number":
		t.Errorf("%s is a number with fractions", path)
	case schema.Type == "integer" && schema.Format != "int32" && schema.Format != "int64":
		t.Errorf("%s is an integer of any size: give it the format int32 or int64", path)
	case schema.XIntOrString && !(isQuantity(schema) || isBounded(schema)):
		t.Errorf("%s is a number or text of any size: give it a rule with the most that it may be", path)
	case schema.Format == "date-time":
		readsOnly(t, path, schema.Pattern, []string{
			"2026-01-02T03:04:05Z", "2026-01-02T23:59:59.123456789+01:00",
			"2026-01-02t03:04:05z", "2026-01-02T03:04:60Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05x1Z", "2026-01-02T03:04:05+99:99", "2026-01-02T03:04:05",
		}, func(text string) error {
			_, err := time.Parse(time.RFC3339, text)
			return err
		})
	case isQuantity(schema):
		readsOnly(t, path, schema.Pattern, []string{"1", "1.5", "-1", "16Gi", "100m", "1e3", "12E6", "1E", "1e1.5", "1e", "1Kii", "", "1 "}, func(text string) error {
			_, err := resource.ParseQuantity(text)
			return err
		})
	}
	for name := range schema.Properties {
		property := schema.Properties[name]
		walk(t, path+"."+name, &property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(t, path+"[]", schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(t, path+"{}", schema.AdditionalProperties.Schema)
	}
}

// isQuantity tells whether it is an amount, which may be a number of any size since Go reads it as text.
func isQuantity(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.XIntOrString && regexp.MustCompile(`KMGTPE`).MatchString(schema.Pattern)
}

// isBounded tells whether a rule says how large a number may be.
func isBounded(schema *apiextensionsv1.JSONSchemaProps) bool {
	for _, rule := range schema.XValidations {
		if regexp.MustCompile(`type\(self\) != int \|\| self <= [0-9]{1,9}$`).MatchString(rule.Rule) {
			return true
		}
	}
	return false
}

// readsOnly sees to it that a pattern lets through just those texts that can be read.
func readsOnly(t *testing.T, path, pattern string, texts []string, read func(string) error) {
	t.Helper()
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	for _, text := range texts {
		if err := read(text); compiled.MatchString(text) != (err == nil) {
			t.Errorf("%s lets %q through: %t, but reading it: %v", path, text, compiled.MatchString(text), err)
		}
	}
}
