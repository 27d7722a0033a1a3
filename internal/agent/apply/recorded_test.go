package apply

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// memberThatSays is a member that answers some paths. To all others it says what an API server says of a path that it does
// not serve.
func memberThatSays(t *testing.T, answers map[string]any) *Applier {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, served := answers[r.URL.Path]
		if !served {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if status, ok := answer.(metav1.Status); ok {
			w.WriteHeader(int(status.Code))
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	a, err := New(Options{Member: &rest.Config{Host: server.URL}, Namespace: "fleet-member-a", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestReadRecorded(t *testing.T) {
	t.Parallel()
	things := schema.GroupResource{Group: "example.com", Resource: "things"}
	notThere := func(resource schema.GroupResource, name string) metav1.Status {
		status := apierrors.NewNotFound(resource, name).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return status
	}
	groups := func(versions ...string) metav1.APIGroupList {
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{{Name: "apps"}}}
		if len(versions) > 0 {
			group := metav1.APIGroup{Name: "example.com"}
			for _, v := range versions {
				group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: "example.com/" + v, Version: v})
			}
			list.Groups = append(list.Groups, group)
		}
		return list
	}
	const (
		beta, v1, core, crd = "/apis/example.com/v1beta1", "/apis/example.com/v1", "/api", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com"
		thing               = "/namespaces/app/things/a"
	)
	versions := metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}, Versions: []string{"v1"}}
	resources := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "things", Kind: "Thing", Namespaced: true}, {Name: "things/status", Kind: "Thing", Namespaced: true},
	}}
	object := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "namespace": "app"}}
	definition := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.example.com"}}
	gone := notThere(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "things.example.com")
	busy := apierrors.NewServiceUnavailable("busy").Status()
	for name, tc := range map[string]struct {
		answers map[string]any
		found   bool
		fails   string
	}{
		"is there":                             {map[string]any{beta + thing: object}, true, ""},
		"is gone":                              {map[string]any{beta + thing: notThere(things, "a")}, false, ""},
		"in another version":                   {map[string]any{core: versions, "/apis": groups("v1"), v1: resources, v1 + thing: object}, true, ""},
		"gone, in another version":             {map[string]any{core: versions, "/apis": groups("v1"), v1: resources, v1 + thing: notThere(things, "a")}, false, ""},
		"no version, no definition":            {map[string]any{core: versions, "/apis": groups(), crd: gone}, false, ""},
		"no version of the kind, but a group":  {map[string]any{core: versions, "/apis": groups("v2"), "/apis/example.com/v2": metav1.APIResourceList{GroupVersion: "example.com/v2"}, crd: gone}, false, ""},
		"no version, but a definition":         {map[string]any{core: versions, "/apis": groups(), crd: definition}, false, "in no version, but has its CustomResourceDefinition"},
		"no version, definition cannot be had": {map[string]any{core: versions, "/apis": groups(), crd: busy}, false, "find out whether the member knows"},
		"a version that does not answer":       {map[string]any{core: versions, "/apis": groups("v1"), v1: busy}, false, "ask the member what it serves"},
		"listed, and not served":               {map[string]any{core: versions, "/apis": groups("v1"), v1: resources}, false, "could not find the requested resource"},
		"no groups are told":                   {map[string]any{core: versions, "/apis": apierrors.NewForbidden(schema.GroupResource{}, "", nil).Status()}, false, "ask the member which API groups"},
		"nothing is served":                    {map[string]any{}, false, "ask the member which API groups"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := memberThatSays(t, tc.answers)
			id := &placementv1.WorkResourceIdentifier{Group: "example.com", Version: "v1beta1", Kind: "Thing", Resource: "things", Namespace: "app", Name: "a"}
			_, live, err := a.readRecorded(t.Context(), id)
			if (live != nil) != tc.found || (err != nil) != (tc.fails != "") || (err != nil && !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("found: %t, error %v; want %t and an error that says %q", live != nil, err, tc.found, tc.fails)
			}
		})
	}
}

func TestReplaced(t *testing.T) {
	t.Parallel()
	invalid := func(name string) error {
		at := field.NewPath("metadata").Child(name)
		return fmt.Errorf("write it: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", field.ErrorList{field.Invalid(at, "2", "field is immutable")}))
	}
	if !replaced(invalid("uid")) {
		t.Error("an object with another UID is not known for another one")
	}
	if replaced(invalid("name")) || replaced(errorText("metadata.uid")) {
		t.Error("another refusal is taken for that of a UID")
	}
}
