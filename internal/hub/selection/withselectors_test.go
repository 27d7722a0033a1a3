package selection_test

import (
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// opening selects a namespace along with what other selectors find there.
func opening(namespace string) placementv1.ResourceSelector {
	s := namespaceSelector(namespace)
	s.SelectionScope = placementv1.SelectionScopeNamespaceWithResourceSelectors
	return s
}

func TestNamespaceWithResourceSelectors(t *testing.T) {
	c := newClient(t)
	create(t, c,
		`{apiVersion: v1, kind: Namespace, metadata: {name: opened}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: beside}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: opened}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: opened, labels: {pick: "yes"}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: beside, labels: {pick: "yes"}}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: opened}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: opened-role}}`,
	)
	picked := placementv1.ResourceSelector{Version: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "yes"}}}
	role := placementv1.ResourceSelector{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "opened-role"}
	for name, tc := range map[string]struct {
		selectors []placementv1.ResourceSelector
		want      []string
		refused   string
	}{
		"nothing of what is in it": {selectors: []placementv1.ResourceSelector{opening("opened")}, want: []string{"v1 Namespace opened"}},
		"what others find in it": {
			selectors: []placementv1.ResourceSelector{picked, opening("opened"), role},
			want:      []string{"v1 Namespace opened", "v1 ConfigMap opened/b", "v1 ClusterRole.rbac.authorization.k8s.io opened-role"},
		},
		"one of another namespace": {
			selectors: []placementv1.ResourceSelector{opening("opened"), {Version: "v1", Kind: "ConfigMap", Name: "c"}},
			want:      []string{"v1 Namespace opened"},
		},
		"a namespace that is not there": {selectors: []placementv1.ResourceSelector{opening("nowhere"), picked}, refused: "the hub has no such namespace"},
		"one object twice": {
			selectors: []placementv1.ResourceSelector{opening("opened"), picked, {Version: "v1", Kind: "ConfigMap", Name: "b"}},
			refused:   "which resourceSelectors[1]",
		},
		"a reserved namespace":             {selectors: []placementv1.ResourceSelector{opening("kube-system"), picked}, refused: "the namespace is reserved"},
		"without a namespace to select in": {selectors: []placementv1.ResourceSelector{picked}, refused: "with selectionScope NamespaceWithResourceSelectors"},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := newSelector(t, hub).Select(t.Context(), placementOf(tc.selectors...))
			switch {
			case tc.refused != "":
				if !placement.IsUserError(err) || !strings.Contains(err.Error(), tc.refused) || len(selected.Objects) > 0 {
					t.Errorf("got %v, error %v, want a UserError with %q", described(selected), err, tc.refused)
				}
			case err != nil:
				t.Fatal(err)
			default:
				if diff := cmp.Diff(tc.want, described(selected)); diff != "" {
					t.Errorf("unexpected selection (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestWatchesWithResourceSelectors: a placement is told of what it selects in the namespace that it opens, and of nothing else.
func TestWatchesWithResourceSelectors(t *testing.T) {
	c := newClient(t)
	create(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: watched}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: unwatched}}`)
	w, n := startWatches(t)
	set := func(name string, selectors ...placementv1.ResourceSelector) {
		parsed, err := placement.ParseSelectors(placementOf(selectors...), placement.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		w.Set(placement.Key{Name: name}, selection.Interest{Selectors: parsed, Watch: true, Roots: map[schema.GroupKind][]string{}})
	}
	configMaps := placementv1.ResourceSelector{Version: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "yes"}}}
	set("own", opening("watched"), configMaps)
	all := configMaps
	all.LabelSelector = nil
	set("foreign", opening("unwatched"), all)
	settled(t, w, n, "foreign")
	if diff := cmp.Diff([]string{"configmaps", "namespaces"}, w.Watched()); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		document string
		told     bool
	}{
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: picked, namespace: watched, labels: {pick: "yes"}}}`, true},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: watched}}`, false},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: picked, namespace: unwatched, labels: {pick: "yes"}}}`, false},
	} {
		before := n.of("own")
		create(t, c, tc.document)
		if tc.told {
			NewWithT(t).Eventually(func() int { return n.of("own") }).WithTimeout(time.Minute).Should(BeNumerically(">", before), tc.document)
		}
		// What came before it on the same watch was seen before it.
		mark := n.of("foreign")
		create(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: mark-, namespace: unwatched}}`)
		NewWithT(t).Eventually(func() int { return n.of("foreign") }).WithTimeout(time.Minute).Should(BeNumerically(">", mark))
		if got := n.of("own"); !tc.told && got != before {
			t.Errorf("told %d times of %s", got-before, tc.document)
		}
	}
}
