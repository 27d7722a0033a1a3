package crd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestScopesAgree: a kind in namespaces has the fields, defaults, rules and columns of its cluster-scoped twin, so that what
// is tested of one holds of the other.
func TestScopesAgree(t *testing.T) {
	// renamed are the columns whose names the first seed prints in another way.
	renamed := map[string]string{"Staged-Update-Run": "Update-Run"}
	for plural, version := range map[string]string{
		"resourceplacements": "v1", "stagedupdatestrategies": "v1", "stagedupdateruns": "v1", "approvalrequests": "v1",
		"schedulingpolicysnapshots": "v1beta1", "resourcesnapshots": "v1beta1", "resourcebindings": "v1beta1",
	} {
		t.Run(plural, func(t *testing.T) {
			cluster, namespaced := read(t, "cluster"+plural), read(t, plural)
			if namespaced.Spec.Scope != apiextensionsv1.NamespaceScoped || cluster.Spec.Scope != apiextensionsv1.ClusterScoped {
				t.Errorf("scopes are %s and %s", cluster.Spec.Scope, namespaced.Spec.Scope)
			}
			var storage []string
			for _, v := range namespaced.Spec.Versions {
				if v.Storage {
					storage = append(storage, v.Name)
				}
			}
			if diff := cmp.Diff([]string{version}, storage); diff != "" {
				t.Errorf("versions that are stored (-want +got):\n%s", diff)
			}
			one, other := cluster.Spec.Versions[0], namespaced.Spec.Versions[0]
			withoutRulesOfOneScope(one.Schema.OpenAPIV3Schema)
			one.Schema.OpenAPIV3Schema.Description, other.Schema.OpenAPIV3Schema.Description = "", ""
			if diff := cmp.Diff(one.Schema, other.Schema); diff != "" {
				t.Errorf("schema (-cluster +namespaced):\n%s", diff)
			}
			for i := range other.AdditionalPrinterColumns {
				c := &other.AdditionalPrinterColumns[i]
				if name, ok := renamed[c.Name]; ok {
					c.Name = name
				}
			}
			for i := range one.AdditionalPrinterColumns {
				c := &one.AdditionalPrinterColumns[i]
				c.JSONPath = strings.ReplaceAll(c.JSONPath, "ClusterResourcePlacement", "ResourcePlacement")
			}
			if diff := cmp.Diff(one.AdditionalPrinterColumns, other.AdditionalPrinterColumns); diff != "" {
				t.Errorf("columns (-cluster +namespaced):\n%s", diff)
			}
			if diff := cmp.Diff(one.Subresources, other.Subresources); diff != "" {
				t.Errorf("subresources (-cluster +namespaced):\n%s", diff)
			}
		})
	}
}

// withoutRulesOfOneScope leaves out the rules on statusReportingScope: a placement in a namespace passes over that field.
func withoutRulesOfOneScope(schema *apiextensionsv1.JSONSchemaProps) {
	spec, ok := schema.Properties["spec"]
	if !ok {
		return
	}
	spec.XValidations = slices.DeleteFunc(slices.Clone(spec.XValidations), func(r apiextensionsv1.ValidationRule) bool {
		return strings.Contains(r.Message, "statusReportingScope")
	})
	schema.Properties["spec"] = spec
}

func read(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("hub", "placement.kubernetes-fleet.io_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		t.Fatalf("parse the definition of %s: %v", plural, err)
	}
	return crd
}
