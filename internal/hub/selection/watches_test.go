package selection_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// told counts what placements were told.
type told struct {
	mu     sync.Mutex
	counts map[string]int
}

func (n *told) of(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[name]
}

func startWatches(t *testing.T) (*selection.Watches, *told) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(hub)
	if err != nil {
		t.Fatal(err)
	}
	m, err := metadata.NewForConfig(hub)
	if err != nil {
		t.Fatal(err)
	}
	n := &told{counts: map[string]int{}}
	w := selection.NewWatches(d, m, clock.RealClock{})
	w.OnChange(placement.ClusterKinds(), func(key placement.Key) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.counts[key.Name]++
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w, n
}

func interest(t *testing.T, roots []string, selectors ...placementv1.ResourceSelector) selection.Interest {
	t.Helper()
	p := &placementv1.ClusterResourcePlacement{}
	p.Spec.ResourceSelectors = selectors
	parsed, err := placement.ParseSelectors(p, placement.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return selection.Interest{Selectors: parsed, Watch: true, Roots: map[schema.GroupKind][]string{placement.NamespaceKind: roots}}
}

// settled waits until the watches of what is selected are there and have told what they found in the beginning.
func settled(t *testing.T, w *selection.Watches, n *told, name string) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func() bool { return slices.Contains(w.Watched(), "configmaps") }).WithTimeout(time.Minute).Should(BeTrue())
	before := -1
	g.Eventually(func() bool {
		now := n.of(name)
		same := now == before && now > 0
		before = now
		return same
	}).WithTimeout(time.Minute).WithPolling(time.Second).Should(BeTrue())
}

func TestWatches(t *testing.T) {
	c := newClient(t)
	create(t, c,
		`{apiVersion: v1, kind: Namespace, metadata: {name: mine, labels: {pick: "yes"}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: theirs}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: nobodys}}`,
	)
	w, n := startWatches(t)
	byLabel := placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "yes"}}}
	w.Set(placement.Key{Name: "mine"}, interest(t, []string{"mine"}, byLabel))
	w.Set(placement.Key{Name: "theirs"}, interest(t, []string{"theirs"}, namespaceSelector("theirs")))
	idle := interest(t, []string{"mine"}, byLabel)
	idle.Watch = false
	w.Set(placement.Key{Name: "external"}, idle)
	settled(t, w, n, "mine")
	if slices.Contains(w.Watched(), "leases.coordination.k8s.io") || slices.Contains(w.Watched(), "pods") {
		t.Errorf("kinds that are never placed are watched: %v", w.Watched())
	}
	namespace := func(name string) *corev1.Namespace {
		o := &corev1.Namespace{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	label := func(name, value string) {
		o := namespace(name)
		o.Labels["pick"] = value
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		what      string
		do        func()
		mine, not bool
	}{
		{what: "an object in the namespace appears", do: func() { create(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: mine}}`) }, mine: true},
		{what: "a namespace gets the label", do: func() { label("nobodys", "yes") }, mine: true},
		{what: "the namespace loses the label", do: func() { label("mine", "no") }, mine: true},
		{what: "an object appears elsewhere", do: func() { create(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nobodys}}`) }},
	}
	for _, tc := range cases {
		before, theirs := n.of("mine"), n.of("theirs")
		tc.do()
		if tc.mine {
			NewWithT(t).Eventually(func() int { return n.of("mine") }).WithTimeout(time.Minute).Should(BeNumerically(">", before), tc.what)
		}
		// What came before it on the same watch was seen before it.
		create(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: mark-, namespace: theirs}}`)
		NewWithT(t).Eventually(func() int { return n.of("theirs") }).WithTimeout(time.Minute).Should(BeNumerically(">", theirs), tc.what)
		if !tc.mine && n.of("mine") != before {
			t.Errorf("%s: told, though it does not matter", tc.what)
		}
	}
	if n.of("external") != 0 {
		t.Error("a placement that watches nothing was told of a change")
	}
	w.Forget(placement.Key{Name: "mine"})
	w.Forget(placement.Key{Name: "theirs"})
	NewWithT(t).Eventually(w.Watched).WithTimeout(time.Minute).Should(BeEmpty(), "watches that nobody needs end")
}

// TestChangeWhileSelecting: what changes after it was read, and before the watches know that it is selected, is not lost.
func TestChangeWhileSelecting(t *testing.T) {
	c := newClient(t)
	create(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: late}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: marker}}`)
	w, n := startWatches(t)
	w.Set(placement.Key{Name: "marker"}, interest(t, []string{"marker"}, namespaceSelector("marker")))
	settled(t, w, n, "marker")
	key := placement.Key{Name: "late"}
	selecting := interest(t, nil, namespaceSelector("late"))
	selecting.Selecting = true
	w.Set(key, selecting)
	create(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: late}}`)
	before := n.of("marker")
	create(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: marker}}`)
	NewWithT(t).Eventually(func() int { return n.of("marker") }).WithTimeout(time.Minute).Should(BeNumerically(">", before))
	before = n.of("late")
	w.Set(key, interest(t, []string{"late"}, namespaceSelector("late")))
	if n.of("late") == before {
		t.Error("the change was lost")
	}
}

const widgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.selection.example.com},
  spec: {group: selection.example.com, scope: Cluster, names: {kind: Widget, plural: widgets},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// TestKindAddedLater: a placement of an unknown kind is told when the kind is served, and then of its objects; and when it
// vanishes.
func TestKindAddedLater(t *testing.T) {
	c := newClient(t)
	w, n := startWatches(t)
	key := placement.Key{Name: "widgets"}
	p := placementOf(placementv1.ResourceSelector{Group: "selection.example.com", Version: "v1", Kind: "Widget"})
	selector := newSelector(t, hub)
	look := func() error {
		selected, err := selector.Select(t.Context(), p)
		i := interest(t, nil, p.PlacementSpec().ResourceSelectors...)
		i.Unresolved, i.Catalogue, i.Roots = err != nil, selected.Catalogue, selected.Roots
		w.Set(key, i)
		return err
	}
	if err := look(); !placement.IsUserError(err) {
		t.Fatalf("got %v, want a UserError", err)
	}
	seen := n.of("widgets")
	create(t, c, widgets)
	g := NewWithT(t)
	g.Eventually(func() error {
		if n.of("widgets") == seen {
			return context.DeadlineExceeded
		}
		seen = n.of("widgets")
		return look()
	}).WithTimeout(time.Minute).Should(Succeed(), "told that there is something new, until the kind can be used")
	g.Eventually(w.Watched).WithTimeout(time.Minute).Should(ContainElement("widgets.selection.example.com"))
	seen = n.of("widgets")
	create(t, c, `{apiVersion: selection.example.com/v1, kind: Widget, metadata: {name: a}}`)
	g.Eventually(func() int { return n.of("widgets") }).WithTimeout(time.Minute).Should(BeNumerically(">", seen))
	if err := look(); err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("widgets.selection.example.com")
	if err := c.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	g.Eventually(look).WithTimeout(time.Minute).Should(MatchError(ContainSubstring("does not know this kind")))
	g.Eventually(w.Watched).WithTimeout(time.Minute).ShouldNot(ContainElement("widgets.selection.example.com"))
}
