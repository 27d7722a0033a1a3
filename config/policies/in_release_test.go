package policies_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Rollout stays while it is in release somewhere, unless somebody means it or its namespace goes.
func TestRolloutsInRelease(t *testing.T) {
	install(t)
	admin := framework.Client(t, hub)
	namespace := func(name string) {
		t.Helper()
		if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	rollout := func(namespace, name string, annotations map[string]string) *unstructured.Unstructured {
		t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
			"strategy":    map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"replicas": "100%"}}}},
		}}}
		o.SetGroupVersionKind(kruise.Rollouts)
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetAnnotations(annotations)
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	namespace("releases")
	c := as(t, "anna")
	for name, tc := range map[string]struct {
		annotations map[string]string
		refused     bool
	}{
		"at-rest":      {},
		"in-release":   {map[string]string{"fleetwright.io/in-release": "member1,member2"}, true},
		"meant":        {map[string]string{"fleetwright.io/in-release": "member1", "fleetwright.io/delete-in-release": "true"}, false},
		"not-meant":    {map[string]string{"fleetwright.io/in-release": "member1,member2", "fleetwright.io/delete-in-release": "false"}, true},
		"of-no-moment": {map[string]string{"fleetwright.io/in-release": ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := rollout("releases", name, tc.annotations)
			err := c.Delete(t.Context(), o)
			if tc.refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "in release") && !strings.Contains(err.Error(), "a release in member1,member2")) {
				t.Errorf("got %v, want it forbidden and the clusters named", err)
			}
			if !tc.refused && err != nil {
				t.Errorf("got %v, want it deleted", err)
			}
		})
	}
	namespace("releases-going")
	o := rollout("releases-going", "web", map[string]string{"fleetwright.io/in-release": "member1"})
	if err := admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "releases-going"}}); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "releases-going"}, ns); err != nil || ns.DeletionTimestamp == nil {
		t.Fatalf("the namespace is not going: %+v, %v", ns.ObjectMeta, err)
	}
	if err := c.Delete(t.Context(), o); err != nil {
		t.Errorf("with its namespace: %v", err)
	}
}
