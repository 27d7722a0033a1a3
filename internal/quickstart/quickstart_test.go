package quickstart

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server leads to an API server that is hub and member at once.
var server *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &server)) }

func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(server, client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// define installs a definition, and removes it when the test ends.
func define(t *testing.T, c client.WithWatch, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatalf("create definition %s: %v", crd.Name, err)
	}
	t.Cleanup(func() { framework.Remove(t, c, crd) })
}

// An agent that is started again, however late, finds a bootstrap token that is new, and the kubeconfig that it had.
func TestNewTokenEachTime(t *testing.T) {
	c := newClient(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: placementv1.MemberNamespacePrefix}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: clusterv1.BootstrapServiceAccount}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(namespace.Name, placementv1.MemberNamespacePrefix)
	f := &Fleet{Root: framework.Root(), Dir: t.TempDir(), Out: io.Discard}
	files := filepath.Join(f.Dir, "agents", name)
	read := func(file string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(files, file))
		if err != nil || len(content) == 0 {
			t.Fatalf("read %s: %v, %d bytes", file, err, len(content))
		}
		return string(content)
	}
	var tokens, kubeconfigs [2]string
	for i := range tokens {
		if err := f.installAgent(t.Context(), c, server, files); err != nil {
			t.Fatal(err)
		}
		if err := f.handOver(t.Context(), c, server, name, files); err != nil {
			t.Fatal(err)
		}
		tokens[i], kubeconfigs[i] = read("bootstrap-token"), read("member.kubeconfig")
		read("hub-ca.crt")
	}
	if tokens[0] == tokens[1] {
		t.Error("the second start is given the token of the first")
	}
	if kubeconfigs[0] != kubeconfigs[1] {
		t.Error("the second start is given another kubeconfig")
	}
}

// A definition of somebody else's that can never be served is not waited for.
func TestForeignDefinition(t *testing.T) {
	c := newClient(t)
	define(t, c, definition("gadgets", "Gadget"))
	inTheWay := definition("gizmos", "Gadget") // of a kind that is taken
	define(t, c, inTheWay)
	framework.Await(t, c, inTheWay, "is refused", func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return len(crd.Status.Conditions) > 0 && !established(crd)
	})
	if err := waitForCRDs(t.Context(), c); err != nil {
		t.Errorf("wait for the product's kinds: %v", err)
	}
}

func definition(plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}
}
