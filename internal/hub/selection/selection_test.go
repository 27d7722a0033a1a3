package selection_test

import (
	"fmt"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNamespaceWithContent(t *testing.T) {
	c := newClient(t)
	create(t, c,
		`{apiVersion: v1, kind: Namespace, metadata: {name: content, labels: {team: a}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: z, namespace: content}, data: {key: value}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: content}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: content}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: going, namespace: content, finalizers: [example.com/hold]}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: content}, stringData: {k: v}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: worker, namespace: content}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: svc, namespace: content}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Endpoints, metadata: {name: svc, namespace: content}}`,
		`{apiVersion: v1, kind: Endpoints, metadata: {name: external, namespace: content}}`,
		`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a, namespace: content}}`,
		`{apiVersion: v1, kind: Event, metadata: {name: a, namespace: content}, involvedObject: {namespace: content}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: content}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
		`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: content}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: default}}`,
	)
	going := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "going", Namespace: "content"}}
	if err := c.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"v1 Namespace content",
		"v1 ServiceAccount content/worker",
		"v1 Secret content/a",
		"v1 ConfigMap content/a",
		"v1 ConfigMap content/z",
		"v1 Service content/svc",
		"v1 Deployment.apps content/web",
		"v2 HorizontalPodAutoscaler.autoscaling content/web",
		"v1 Endpoints content/external",
	}
	byName := namespaceSelector("content")
	byLabel := placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	for name, selector := range map[string]placementv1.ResourceSelector{"by name": byName, "by label": byLabel} {
		t.Run(name, func(t *testing.T) {
			selected, err := newSelector(t, hub).Select(t.Context(), placementOf(selector))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, described(selected)); diff != "" {
				t.Errorf("unexpected selection (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"content"}, selected.Namespaces); diff != "" {
				t.Errorf("unexpected namespaces (-want +got):\n%s", diff)
			}
			const content = `{"apiVersion":"v1","data":{"key":"value"},"kind":"ConfigMap","metadata":{"name":"z","namespace":"content"}}`
			if diff := cmp.Diff(content, string(selected.Objects[4].Content)); diff != "" {
				t.Errorf("unexpected content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyObjects(t *testing.T) {
	c := newClient(t)
	create(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: many}}`)
	const n = 600
	for i := range n {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%03d", i), Namespace: "many"}}
		if err := c.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
	selected, err := newSelector(t, hub).Select(t.Context(), placementOf(namespaceSelector("many")))
	if err != nil {
		t.Fatal(err)
	}
	if len(selected.Objects) != n+1 {
		t.Errorf("%d objects, want %d", len(selected.Objects), n+1)
	}
	if err := c.DeleteAllOf(framework.CleanupContext(t), &corev1.ConfigMap{}, client.InNamespace("many")); err != nil {
		t.Error(err)
	}
}

func TestSelectors(t *testing.T) {
	c := newClient(t)
	create(t, c,
		`{apiVersion: v1, kind: Namespace, metadata: {name: one, labels: {pick: "yes"}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: platform, labels: {pick: "yes"}}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader, labels: {pick: "yes"}}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: going, labels: {pick: "yes"}, finalizers: [example.com/hold]}}`,
		`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}`,
	)
	going := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
	going.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("ClusterRole"))
	going.APIVersion = "rbac.authorization.k8s.io/v1"
	if err := c.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	role := placementv1.ResourceSelector{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	pick := &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "yes"}}
	with := func(s placementv1.ResourceSelector, name string, labels *metav1.LabelSelector) placementv1.ResourceSelector {
		s.Name, s.LabelSelector = name, labels
		return s
	}
	cases := map[string]struct {
		selectors []placementv1.ResourceSelector
		want      []string
		unmatched []string // the selectors that found nothing
		wantError string   // a UserError with this text
	}{
		"cluster-scoped objects by name and label": {
			selectors: []placementv1.ResourceSelector{with(role, "", pick), {Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass", Name: "high"}},
			want:      []string{"v1 PriorityClass.scheduling.k8s.io high", "v1 ClusterRole.rbac.authorization.k8s.io reader"},
		},
		"an object that is being deleted": {
			selectors: []placementv1.ResourceSelector{with(role, "going", nil)},
			unmatched: []string{`resourceSelectors[0] (rbac.authorization.k8s.io/v1 ClusterRole "going")`},
		},
		"an object that does not exist": {
			selectors: []placementv1.ResourceSelector{with(role, "nobody", nil), namespaceSelector("nowhere")},
			unmatched: []string{`resourceSelectors[0] (rbac.authorization.k8s.io/v1 ClusterRole "nobody")`, `resourceSelectors[1] (v1 Namespace "nowhere")`},
		},
		"labels that no object has, beside some that one has": {
			selectors: []placementv1.ResourceSelector{with(role, "", pick), with(role, "", &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "no"}})},
			want:      []string{"v1 ClusterRole.rbac.authorization.k8s.io reader"},
			unmatched: []string{"resourceSelectors[1] (rbac.authorization.k8s.io/v1 ClusterRole with labels pick=no)"},
		},
		"reserved namespaces among those with a label": {
			selectors: []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", LabelSelector: pick}},
			want:      []string{"v1 Namespace one"},
		},
		"a reserved namespace by name": {selectors: []placementv1.ResourceSelector{namespaceSelector("kube-system")}, wantError: "is reserved"},
		"an object selected twice": {
			selectors: []placementv1.ResourceSelector{with(role, "reader", nil), with(role, "", pick)},
			wantError: `resourceSelectors[1] (rbac.authorization.k8s.io/v1 ClusterRole with labels pick=yes): it selects ClusterRole "reader", which resourceSelectors[0] (rbac.authorization.k8s.io/v1 ClusterRole "reader") selects too; let one selector select it`,
		},
		"a kind that lives in namespaces": {
			selectors: []placementv1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}},
			wantError: "select the Namespace that the objects are in",
		},
		"an unknown kind": {
			selectors: []placementv1.ResourceSelector{{Group: "example.com", Version: "v1", Kind: "Widget"}},
			wantError: `resourceSelectors[0] (all of example.com/v1 Widget): the hub does not know this kind; correct group, version and kind, or install its CustomResourceDefinition on the hub`,
		},
		"a version that is not served": {
			selectors: []placementv1.ResourceSelector{{Group: "rbac.authorization.k8s.io", Version: "v1beta1", Kind: "ClusterRole"}},
			wantError: "the hub does not serve the kind in this version; use version v1",
		},
		"a kind that can only be read": {
			selectors: []placementv1.ResourceSelector{{Version: "v1", Kind: "ComponentStatus"}},
			wantError: "cannot be created",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selected, err := newSelector(t, hub).Select(t.Context(), placementOf(tc.selectors...))
			switch {
			case tc.wantError == "" && err != nil:
				t.Fatal(err)
			case tc.wantError != "" && (!placement.IsUserError(err) || !strings.Contains(err.Error(), tc.wantError)):
				t.Errorf("got error %v, want a UserError with %q", err, tc.wantError)
			}
			if diff := cmp.Diff(tc.want, described(selected)); diff != "" {
				t.Errorf("unexpected selection (-want +got):\n%s", diff)
			}
			var unmatched []string
			for _, s := range selected.Unmatched {
				unmatched = append(unmatched, s.Where())
			}
			if diff := cmp.Diff(tc.unmatched, unmatched); diff != "" {
				t.Errorf("unexpected selectors that found nothing (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooLarge: an object that no snapshot could hold is the author's to make smaller.
func TestTooLarge(t *testing.T) {
	c := newClient(t)
	create(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: large}}`)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: "large"}, Data: map[string][]byte{"k": make([]byte, 1<<20)}}
	secret.Annotations = map[string]string{"filler": strings.Repeat("<", 100_000)}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	_, err := newSelector(t, hub).Select(t.Context(), placementOf(namespaceSelector("large")))
	if !placement.IsUserError(err) || !strings.Contains(err.Error(), "it selects Secret large/large, which has") {
		t.Errorf("got error %v, want a UserError that names the object", err)
	}
	if err := c.Delete(framework.CleanupContext(t), secret); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeReadIsNotAbsent(t *testing.T) {
	c := newClient(t)
	create(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: unread}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: some}, rules: [{apiGroups: [""], resources: [namespaces, configmaps], verbs: [get, list]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: some}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: some}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: somebody}]}`,
	)
	cases := map[string]struct {
		config   func(t *testing.T) *rest.Config
		selector placementv1.ResourceSelector
		want     string // in the IncompleteError; no error where empty
	}{
		"a list that is forbidden": {
			config:   func(*testing.T) *rest.Config { return as("somebody") },
			selector: namespaceSelector("unread"),
			want:     "cannot read the ",
		},
		"an object that is forbidden": {
			config:   func(*testing.T) *rest.Config { return as("somebody") },
			selector: placementv1.ResourceSelector{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "some"},
			want:     "cannot read ClusterRole some: ",
		},
		"an API server that does not answer": {
			config: func(*testing.T) *rest.Config {
				nowhere := rest.CopyConfig(hub)
				nowhere.Host = "https://127.0.0.1:1"
				return nowhere
			},
			selector: namespaceSelector("unread"),
			want:     "cannot read the hub's API: ",
		},
		"an API group that cannot be discovered, of which there may be objects in a namespace": {
			config:   func(t *testing.T) *rest.Config { return withDeadAPI(t, c, "dead.example.com") },
			selector: namespaceSelector("unread"),
			want:     "cannot read which kinds the API group dead.example.com has, of which there may be objects in the selected namespaces: ",
		},
		"an API group that cannot be discovered, of which a selector selects": {
			config:   func(t *testing.T) *rest.Config { return withDeadAPI(t, c, "dead.example.com") },
			selector: placementv1.ResourceSelector{Group: "dead.example.com", Version: "v1", Kind: "Widget"},
			want:     "cannot read which kinds the API group dead.example.com has: ",
		},
		"an API group that cannot be discovered, which does not matter": {
			config:   func(t *testing.T) *rest.Config { return withDeadAPI(t, c, "dead.example.com") },
			selector: placementv1.ResourceSelector{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "some"},
		},
		"metrics that cannot be discovered": {
			config:   func(t *testing.T) *rest.Config { return withDeadAPI(t, c, "metrics.k8s.io") },
			selector: namespaceSelector("unread"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selected, err := newSelector(t, tc.config(t)).Select(t.Context(), placementOf(tc.selector))
			if tc.want == "" {
				if err != nil || len(selected.Objects) != 1 {
					t.Errorf("got %v, %v, want one object", described(selected), err)
				}
				return
			}
			if !selection.IsIncomplete(err) || !strings.Contains(err.Error(), tc.want) || len(selected.Objects) > 0 {
				t.Errorf("got %v, %v, want an IncompleteError with %q", described(selected), err, tc.want)
			}
		})
	}
}

func as(user string) *rest.Config {
	config := rest.CopyConfig(hub)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

// TestAllClusterRoles: of all roles of the hub, those that every cluster has are not selected.
func TestAllClusterRoles(t *testing.T) {
	c := newClient(t)
	create(t, c, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: of-the-fleet}}`)
	everything := placementv1.ResourceSelector{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	selected, err := newSelector(t, hub).Select(t.Context(), placementOf(everything))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1 ClusterRole.rbac.authorization.k8s.io of-the-fleet"}, described(selected)); diff != "" {
		t.Errorf("unexpected selection (-want +got):\n%s", diff)
	}
}
