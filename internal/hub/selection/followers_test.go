package selection_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetwright/fleetwright/internal/hub/selection"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFollowers(t *testing.T) {
	c := newClient(t)
	w, _ := startWatches(t)
	begun, changed := make(chan schema.GroupVersionKind, 100), make(chan string, 1000)
	w.AddFollower(selection.Follower{
		Begun: func(kind schema.GroupVersionKind) { begun <- kind },
		Changed: func(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) {
			if o.Namespace == "default" {
				changed <- fmt.Sprintf("%s %s %s", kind.Kind, o.Name, o.Labels["round"])
			}
		},
	})
	g := NewWithT(t)
	maps, later := corev1.SchemeGroupVersion.WithKind("ConfigMap"), schema.GroupVersionKind{Group: "followers.example.com", Version: "v1", Kind: "Gadget"}
	w.Follow(maps, later)
	g.Eventually(begun).WithTimeout(time.Minute).Should(Receive(Equal(maps)))

	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "followed", Labels: map[string]string{"round": "1"}}}
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.Eventually(changed).WithTimeout(time.Minute).Should(Receive(Equal("ConfigMap followed 1")))
	o.Labels["round"] = "2"
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.Eventually(changed).WithTimeout(time.Minute).Should(Receive(Equal("ConfigMap followed 2")))
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.Eventually(changed).WithTimeout(time.Minute).Should(Receive(Equal("ConfigMap followed 2")), "told of its deletion")

	create(t, c, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.followers.example.com},
  spec: {group: followers.example.com, scope: Namespaced, names: {kind: Gadget, plural: gadgets},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`)
	g.Eventually(begun).WithTimeout(time.Minute).Should(Receive(Equal(later)), "followed once the API serves it")
	create(t, c, `{apiVersion: followers.example.com/v1, kind: Gadget, metadata: {name: g, namespace: default}}`)
	g.Eventually(changed).WithTimeout(time.Minute).Should(Receive(Equal("Gadget g ")))

	w.Follow(maps)
	g.Eventually(w.Watched).WithTimeout(time.Minute).ShouldNot(ContainElement("gadgets.followers.example.com"))
}
