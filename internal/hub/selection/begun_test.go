package selection

import (
	"slices"
	"testing"

	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestBegun: who may have missed the deletion of the last object of a kind is told, and nobody whom that cannot concern.
func TestBegun(t *testing.T) {
	t.Parallel()
	widget := resource{gvr: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, kind: "Widget"}
	gadget := resource{gvr: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, kind: "Gadget", namespaced: true}
	ofWidgets := []placement.Selector{{Kind: widget.gvr.GroupVersion().WithKind("Widget"), Labels: labels.Everything()}}
	ofNamespaces := []placement.Selector{{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Labels: labels.Everything()}}
	interests := map[string]Interest{
		"has widgets": {Watch: true, Selectors: ofWidgets, Roots: map[schema.GroupKind][]string{widget.groupKind(): {"last"}}},
		"has none":    {Watch: true, Selectors: ofWidgets},
		"unwatched":   {Selectors: ofWidgets, Roots: map[schema.GroupKind][]string{widget.groupKind(): {"last"}}},
		"content":     {Watch: true, Selectors: ofNamespaces, Roots: map[schema.GroupKind][]string{placement.NamespaceKind: {"demo"}}},
	}
	for name, tc := range map[string]struct {
		r             resource
		first, exists bool
		want          []string
	}{
		"again, none is left":            {r: widget, want: []string{"has none", "has widgets"}},
		"again, some are left":           {r: widget, exists: true, want: []string{"has none", "has widgets"}},
		"first, there is one":            {r: widget, first: true, exists: true, want: []string{"has none", "has widgets"}},
		"first, none is left":            {r: widget, first: true, want: []string{"has widgets"}},
		"again, none in namespaces":      {r: gadget, want: []string{"content"}},
		"first, none left in namespaces": {r: gadget, first: true, want: []string{"content"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := NewWatches(nil, nil, nil)
			var told []string
			w.OnChange(placement.ClusterKinds(), func(key placement.Key) { told = append(told, key.Name) })
			for name, i := range interests {
				w.interests[placement.Key{Name: name}] = newInterest(i)
			}
			w.begun(tc.r, tc.first, tc.exists)
			slices.Sort(told)
			if diff := cmp.Diff(tc.want, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
