package apitest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Served is how a kind is served.
type Served struct {
	// Kind is the kind's name.
	Kind string
	// Namespaced tells whether its objects live in namespaces.
	Namespaced bool
	// ShortNames are what kubectl knows it by as well.
	ShortNames []string
	// Categories are the groups of kinds, such as all, in which kubectl lists it.
	Categories []string
	// Status tells whether it has a status subresource.
	Status bool
}

// Kinds returns, by plural name, what the API server serves of a group and version.
func Kinds(t testing.TB, config *rest.Config, groupVersion string) map[string]Served {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatalf("make a discovery client: %v", err)
	}
	list, err := d.ServerResourcesForGroupVersion(groupVersion)
	if err != nil {
		t.Fatalf("read what is served of %s: %v", groupVersion, err)
	}
	kinds := map[string]Served{}
	for _, r := range list.APIResources {
		plural, subresource, isSub := strings.Cut(r.Name, "/")
		kind := kinds[plural]
		if isSub {
			kind.Status = kind.Status || subresource == "status"
		} else {
			kind.Kind, kind.Namespaced, kind.ShortNames, kind.Categories = r.Kind, r.Namespaced, r.ShortNames, r.Categories
		}
		kinds[plural] = kind
	}
	return kinds
}

// age matches an age of less than 100 seconds and fills the column's three characters.
var age = regexp.MustCompile(`\b(\d\ds|\ds ?)`)

// Printed returns what `kubectl get` prints for the path, such as /apis/GROUP/VERSION/PLURAL, with each age as AGE. Wide
// is `kubectl get -o wide`.
func Printed(t testing.TB, config *rest.Config, path string, wide bool) string {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	answer, err := d.RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatalf("read %s as a table: %v", path, err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(answer, table); err != nil {
		t.Fatalf("parse the table of %s: %v", path, err)
	}
	var text bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(table, &text); err != nil {
		t.Fatalf("print the table of %s: %v", path, err)
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = age.ReplaceAllString(strings.TrimRight(lines[i], " "), "AGE")
	}
	return strings.Join(lines, "\n")
}
