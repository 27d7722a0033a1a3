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

func inNamespace(namespace string, selectors ...placementv1.ResourceSelector) placementv1.PlacementObject {
	p := &placementv1.ResourcePlacement{}
	p.Name, p.Namespace = "web", namespace
	p.Spec.ResourceSelectors = selectors
	return p
}

func TestInNamespace(t *testing.T) {
	c := newClient(t)
	create(t, c,
		`{apiVersion: v1, kind: Namespace, metadata: {name: team}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: neighbours}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: team, labels: {pick: "yes"}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: team}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: neighbours, labels: {pick: "yes"}}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: team}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: svc, namespace: team}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Endpoints, metadata: {name: svc, namespace: team}}`,
		`{apiVersion: v1, kind: Endpoints, metadata: {name: external, namespace: team}}`,
	)
	configMaps := placementv1.ResourceSelector{Version: "v1", Kind: "ConfigMap"}
	named, labelled := configMaps, configMaps
	named.Name = "a"
	labelled.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "yes"}}
	for name, tc := range map[string]struct {
		selectors []placementv1.ResourceSelector
		want      []string
	}{
		"by name":              {[]placementv1.ResourceSelector{named}, []string{"v1 ConfigMap team/a"}},
		"by label":             {[]placementv1.ResourceSelector{labelled}, []string{"v1 ConfigMap team/b"}},
		"all of a kind":        {[]placementv1.ResourceSelector{configMaps}, []string{"v1 ConfigMap team/a", "v1 ConfigMap team/b"}},
		"two kinds":            {[]placementv1.ResourceSelector{named, {Version: "v1", Kind: "Secret", Name: "a"}}, []string{"v1 Secret team/a", "v1 ConfigMap team/a"}},
		"what is nobody's":     {[]placementv1.ResourceSelector{{Version: "v1", Kind: "Endpoints"}}, []string{"v1 Endpoints team/external"}},
		"what lives elsewhere": {[]placementv1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "c"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := newSelector(t, hub).Select(t.Context(), inNamespace("team", tc.selectors...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, described(selected)); diff != "" {
				t.Errorf("unexpected selection (-want +got):\n%s", diff)
			}
			if len(selected.Namespaces) > 0 {
				t.Errorf("whole namespaces are selected: %v", selected.Namespaces)
			}
		})
	}
	for name, tc := range map[string]struct {
		p    placementv1.PlacementObject
		want string
	}{
		"a cluster-scoped kind":  {inNamespace("team", namespaceSelector("team")), "a ResourcePlacement selects only objects of its own namespace, team; use a ClusterResourcePlacement"},
		"the same twice":         {inNamespace("team", named, configMaps), "which resourceSelectors[0]"},
		"a reserved namespace":   {inNamespace("default", named), "it selects in namespace default, which is reserved"},
		"a kind in a namespace":  {placementOf(named), "or use a ResourcePlacement in that namespace"},
		"a kind that is not any": {inNamespace("team", placementv1.ResourceSelector{Version: "v1", Kind: "Widget"}), "the hub does not know this kind"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSelector(t, hub).Select(t.Context(), tc.p)
			if !placement.IsUserError(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want a UserError with %q", err, tc.want)
			}
		})
	}
}

// TestNamespaceOnly: the Namespace object goes, and nothing of what is in it.
func TestNamespaceOnly(t *testing.T) {
	c := newClient(t)
	create(t, c,
		`{apiVersion: v1, kind: Namespace, metadata: {name: shell}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shell}}`,
	)
	only := namespaceSelector("shell")
	only.SelectionScope = placementv1.SelectionScopeNamespaceOnly
	selected, err := newSelector(t, hub).Select(t.Context(), placementOf(only))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1 Namespace shell"}, described(selected)); diff != "" {
		t.Errorf("unexpected selection (-want +got):\n%s", diff)
	}
	if len(selected.Namespaces) > 0 {
		t.Errorf("selected along with their content: %v", selected.Namespaces)
	}
}

// TestWatchesInNamespace: a placement is told of what it selects in its own namespace, and of nothing else.
func TestWatchesInNamespace(t *testing.T) {
	c := newClient(t)
	create(t, c,
		`{apiVersion: v1, kind: Namespace, metadata: {name: own}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: foreign}}`,
	)
	w, n := startWatches(t)
	w.OnChange(placement.NamespacedKinds(), func(key placement.Key) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.counts[key.String()]++
	})
	set := func(key placement.Key, selector placementv1.ResourceSelector) {
		parsed, err := placement.ParseSelectors(inNamespace(key.Namespace, selector), placement.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		w.Set(key, selection.Interest{Selectors: parsed, Watch: true, Roots: map[schema.GroupKind][]string{}})
	}
	own := placement.Key{Namespace: "own", Name: "web"}
	set(own, placementv1.ResourceSelector{Version: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "yes"}}})
	foreign := placement.Key{Namespace: "foreign", Name: "web"}
	set(foreign, placementv1.ResourceSelector{Version: "v1", Kind: "ConfigMap"})
	settled(t, w, n, foreign.String())
	if diff := cmp.Diff([]string{"configmaps"}, w.Watched()); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		document string
		told     bool
	}{
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: picked, namespace: own, labels: {pick: "yes"}}}`, true},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: own}}`, false},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: picked, namespace: foreign, labels: {pick: "yes"}}}`, false},
	} {
		before := n.of(own.String())
		create(t, c, tc.document)
		if tc.told {
			NewWithT(t).Eventually(func() int { return n.of(own.String()) }).WithTimeout(time.Minute).Should(BeNumerically(">", before), tc.document)
		}
		// What came before it on the same watch was seen before it.
		mark := n.of(foreign.String())
		create(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: mark-, namespace: foreign}}`)
		NewWithT(t).Eventually(func() int { return n.of(foreign.String()) }).WithTimeout(time.Minute).Should(BeNumerically(">", mark))
		if !tc.told && n.of(own.String()) != before {
			t.Errorf("told of %s", tc.document)
		}
	}
}
