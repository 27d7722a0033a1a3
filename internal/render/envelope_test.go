package render

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	namespacedBox = `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"name":"box","namespace":"ns"},"data":{`
	clusterBox    = `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourceEnvelope","metadata":{"name":"box"},"data":{`
	inNamespace   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}}`
	clusterRole   = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"}}`
)

func TestUnwrap(t *testing.T) {
	t.Parallel()
	rules := placement.Rules{SkippedNamespaces: []string{"platform"}}
	tests := map[string]struct {
		box     string
		want    []placementv1.ResourceContent
		refused []string
	}{
		"in order":                     {box: namespacedBox + `"z":{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"s","namespace":"ns"}},"a":` + inNamespace + `}}`, want: raws(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"s","namespace":"ns"}}`, inNamespace)},
		"cluster-scoped":               {box: clusterBox + `"r":` + clusterRole + `}}`, want: raws(clusterRole)},
		"namespaced, in the wrong":     {box: clusterBox + `"a":` + inNamespace + `,"r":` + clusterRole + `}}`, want: raws(clusterRole), refused: []string{`entry "a" of ClusterResourceEnvelope box`, "ResourceEnvelope in namespace ns"}},
		"cluster-scoped, in the wrong": {box: namespacedBox + `"p":{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"p"}},"a":` + inNamespace + `}}`, want: raws(inNamespace), refused: []string{`entry "p" of ResourceEnvelope ns/box`, "ClusterResourceEnvelope"}},
		"another namespace":            {box: namespacedBox + `"a":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"other"}}}}`, want: raws(), refused: []string{"another namespace", "in namespace other"}},
		"rights":                       {box: namespacedBox + `"r":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"ns"}}}}`, want: raws(), refused: []string{`entry "r"`, "gives rights", "administrator"}},
		"rights for all, disguised":    {box: namespacedBox + `"r":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r","namespace":"ns"}}}}`, want: raws(), refused: []string{"gives rights"}},
		"every cluster's own":          {box: clusterBox + `"r":` + clusterRole + `,"v":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"view"}}}}`, want: raws(clusterRole), refused: []string{`entry "v"`, "ClusterRole view is never placed", "Kubernetes makes it in every cluster", "under another name"}},
		"every cluster's own, marked":  {box: clusterBox + `"v":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"v","labels":{"kubernetes.io/bootstrapping":"rbac-defaults"}}}}}`, want: raws(), refused: []string{`entry "v"`, "never placed"}},
		"labels that are none":         {box: clusterBox + `"v":{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v","labels":[]}}}}`, want: raws(), refused: []string{`entry "v"`, "metadata cannot be read"}},
		"a namespace of the hub's":     {box: clusterBox + `"n":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"platform"}},"r":` + clusterRole + `}}`, want: raws(clusterRole), refused: []string{`entry "n"`, "namespace platform is reserved"}},
		"no name":                      {box: namespacedBox + `"n":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns"}}}}`, want: raws(), refused: []string{"metadata.name"}},
		"no object":                    {box: namespacedBox + `"n":1}}`, want: raws(), refused: []string{"no Kubernetes object"}},
		"an envelope in one":           {box: clusterBox + `"b":` + clusterBox + `}}}}`, want: raws(), refused: []string{"an envelope cannot be in an envelope"}},
		"a kind that is not placed":    {box: namespacedBox + `"p":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ns"}}}}`, want: raws(), refused: []string{"never placed"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, err := Identify([]byte(tc.box))
			if err != nil {
				t.Fatal(err)
			}
			w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
			content := raws(inNamespace, tc.box, "1")
			if diff := cmp.Diff(tc.want, Unwrap(w, placement.EnvelopeID(box.Kind, box.Namespace, box.Name), content, rules)); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			refused := w.Annotations[placementv1.AnnotationEnvelopeRefused]
			if (refused != "") != (tc.refused != nil) {
				t.Errorf("refused %q, want %q", refused, tc.refused)
			}
			for _, part := range tc.refused {
				if !strings.Contains(refused, part) {
					t.Errorf("refused %q does not name %s", refused, part)
				}
			}
			if diff := cmp.Diff(raws(inNamespace, "1"), Unwrap(w, "", content, rules)); diff != "" {
				t.Errorf("without the envelope (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvelopeWorks(t *testing.T) {
	t.Parallel()
	envelopes, err := ParseEnvelopes("1:abc,0:def", 2)
	if err != nil {
		t.Fatal(err)
	}
	target := Target{Placement: placement.Key{Namespace: "ns", Name: "app"}, Binding: "b", Cluster: "c", PlacementUID: "u"}
	r := Revision{Index: "0", Hash: "h", Parts: []string{"app-0-snapshot", "app-0-0"}, Envelopes: envelopes}
	works := map[string]*placementv1.Work{}
	var names, parts []string
	for _, w := range Works(target, r) {
		names, parts = append(names, w.Name), append(parts, w.Annotations[placementv1.AnnotationParentSnapshotName])
		works[w.Name] = w
		if w.Annotations[placementv1.AnnotationWorkCount] != "4" {
			t.Errorf("%s: count %s", w.Name, w.Annotations[placementv1.AnnotationWorkCount])
		}
	}
	if diff := cmp.Diff([]string{"ns.app.work", "ns.app.0", "ns.app.envelope-abc", "ns.app.envelope-def"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"app-0-snapshot", "app-0-0", "app-0-0", "app-0-snapshot"}, parts); diff != "" {
		t.Errorf("snapshot parts (-want +got):\n%s", diff)
	}
	if got := Carried(target, works); len(got) != 4 || got[0].Name != "ns.app.work" {
		t.Errorf("carried by %d Works", len(got))
	}
	delete(works, "ns.app.envelope-abc")
	if got := Carried(target, works); got != nil {
		t.Errorf("carried by %d Works, though one is missing", len(got))
	}
	for _, text := range []string{"x", "2:abc", "-1:abc", "0"} {
		if _, err := ParseEnvelopes(text, 2); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
