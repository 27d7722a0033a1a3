// Package apitest asks a real API server what it makes of our kinds: which writes it accepts, with which defaults, under
// which names it serves them, and what kubectl prints of them.
package apitest

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Case is a write and what the API server is to make of it. Writes are strict about unknown fields, as kubectl's are.
type Case struct {
	// Create is the object, in YAML. One without a name is given one.
	Create string
	// Update, where given, is a merge patch, in YAML, of the object once it exists; null removes a field. The expectations
	// are then for the update.
	Update string
	// UpdateStatus is Update for the status subresource.
	UpdateStatus string
	// Refused is what the refusal says; empty where the write is accepted.
	Refused string
	// Want is, by path such as spec.strategy.type, what is read back from the answer; nil for what must be absent.
	Want map[string]any
}

const strict = client.FieldValidation(metav1.FieldValidationStrict)

// Run runs the cases, each as a test of its own.
func Run(t *testing.T, config *rest.Config, cases map[string]Case) {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { run(t, c, tc) })
	}
}

func run(t *testing.T, c client.Client, tc Case) {
	t.Helper()
	object := Parse(t, tc.Create)
	if object.GetName() == "" {
		object.SetGenerateName("case-")
	}
	err := c.Create(t.Context(), object, strict)
	if err == nil {
		made := object.DeepCopy()
		t.Cleanup(func() { // another run may need the name
			if err := client.IgnoreNotFound(c.Delete(framework.CleanupContext(t), made)); err != nil {
				t.Errorf("delete what the case made: %v", err)
			}
		})
	}
	if tc.Update != "" || tc.UpdateStatus != "" {
		if err != nil {
			t.Fatalf("create the object that is to be updated: %v", err)
		}
		err = update(t, c, object, tc)
	}
	switch {
	case tc.Refused == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case tc.Refused != "" && err == nil:
		t.Fatalf("accepted, want it refused with %q", tc.Refused)
	case tc.Refused != "" && !strings.Contains(err.Error(), tc.Refused):
		t.Fatalf("refused with %q, want it to say %q", err, tc.Refused)
	case tc.Refused != "":
		noteRefusal(err)
	}
	for path, want := range tc.Want {
		got, _, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
		if err != nil {
			t.Errorf("read %s: %v", path, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func update(t *testing.T, c client.Client, object *unstructured.Unstructured, tc Case) error {
	t.Helper()
	text := tc.Update + tc.UpdateStatus
	patch, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("parse the update: %v\n%s", err, text)
	}
	if tc.UpdateStatus != "" {
		return c.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch), strict)
	}
	return c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch), strict)
}

// Parse reads one object from YAML.
func Parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("parse an object: %v\n%s", err, text)
	}
	return object
}
