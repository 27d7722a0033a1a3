package selection_test

import (
	"os"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// hub leads to the API server that the tests share. They run one after the other.
var hub *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // that an old API is deprecated
	os.Exit(framework.RunWithAPIServer(m, &hub))
}

func newSelector(t *testing.T, config *rest.Config) *selection.Selector {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &selection.Selector{Discovery: d, Client: objects, Rules: placement.Rules{SkippedNamespaces: []string{"platform"}}}
}

// create creates objects given as YAML documents, and removes them when the test ends.
func create(t *testing.T, c client.WithWatch, documents ...string) {
	t.Helper()
	for _, document := range documents {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("parse %s: %v", document, err)
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		t.Cleanup(func() { remove(t, c, o) })
	}
}

func remove(t *testing.T, c client.WithWatch, o *unstructured.Unstructured) {
	t.Helper()
	if len(o.GetFinalizers()) > 0 && o.GetKind() != "CustomResourceDefinition" {
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Patch(framework.CleanupContext(t), o, free); client.IgnoreNotFound(err) != nil {
			t.Errorf("let %s %s go: %v", o.GetKind(), o.GetName(), err)
		}
	}
	framework.Remove(t, c, o)
}

func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(hub, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func placementOf(selectors ...placementv1.ResourceSelector) placementv1.PlacementObject {
	p := &placementv1.ClusterResourcePlacement{}
	p.Name = "web"
	p.Spec.ResourceSelectors = selectors
	return p
}

func namespaceSelector(name string) placementv1.ResourceSelector {
	return placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: name}
}

func described(s *selection.Selection) []string {
	var all []string
	for _, o := range s.Objects {
		all = append(all, o.Version+" "+snapshot.Describe(o.ResourceIdentifier))
	}
	return all
}
