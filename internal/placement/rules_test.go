package placement_test

import (
	"slices"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNeverPlaced(t *testing.T) {
	cases := map[schema.GroupKind]bool{
		{Kind: "Pod"}:                                                              true,
		{Kind: "Node"}:                                                             true,
		{Kind: "Event"}:                                                            true,
		{Group: "events.k8s.io", Kind: "Event"}:                                    true,
		{Group: "coordination.k8s.io", Kind: "Lease"}:                              true,
		{Group: "metrics.k8s.io", Kind: "PodMetrics"}:                              true,
		{Group: "cluster.kubernetes-fleet.io", Kind: "MemberCluster"}:              true,
		{Group: "placement.kubernetes-fleet.io", Kind: "Work"}:                     true,
		{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:               true,
		{Group: "networking.fleet.azure.com", Kind: "TrafficManagerProfile"}:       true,
		{Group: "networking.fleet.azure.com", Kind: "ServiceExport"}:               false,
		{Kind: "ConfigMap"}:                                                        false,
		{Group: "apps", Kind: "Deployment"}:                                        false,
		{Group: "rollouts.kruise.io", Kind: "Rollout"}:                             false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:          false,
		{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:                         false,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                  false,
		{Group: "placement.kubernetes-fleet.io", Kind: "ClusterResourcePlacement"}: true,
	}
	for kind, want := range cases {
		if got := placement.NeverPlaced(kind); (got != "") != want {
			t.Errorf("%s: never placed %t, want %t (%q)", kind, got != "", want, got)
		}
	}
}

func TestReserved(t *testing.T) {
	rules := placement.Rules{SkippedNamespaces: []string{"platform"}}
	cases := map[string]bool{
		"default": true, "kube-system": true, "kube-public": true, "fleet-system": true, "fleet-member-a": true,
		"fleetwright-system": true, "platform": true, "platform-a": false, "demo": false, "fleet": false, "kube": false, "defaults": false,
	}
	for namespace, want := range cases {
		if got := rules.Reserved(namespace); got != want {
			t.Errorf("%s: reserved %t, want %t", namespace, got, want)
		}
	}
}

func TestSkips(t *testing.T) {
	cases := map[string]struct {
		object string
		rules  placement.Rules
		want   bool
	}{
		"an ordinary object":             {object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`},
		"an object being deleted":        {object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, want: true},
		"the root CA":                    {object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}`, want: true},
		"a secret of that name":          {object: `{apiVersion: v1, kind: Secret, metadata: {name: kube-root-ca.crt}}`},
		"the default service account":    {object: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`, want: true},
		"another service account":        {object: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`},
		"a token secret":                 {object: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a}}`, want: true},
		"another secret":                 {object: `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a}}`},
		"an owned ReplicaSet":            {object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: u}]}}`, want: true},
		"a ReplicaSet of its own":        {object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}}`},
		"an owned ControllerRevision":    {object: `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: a, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u}]}}`, want: true},
		"an owned ConfigMap":             {object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: X, name: d, uid: u}]}}`},
		"a volume claim":                 {object: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}`},
		"a volume claim that is bound":   {object: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}`, rules: placement.Rules{HubRunsWorkloads: true}, want: true},
		"endpoints of a service":         {object: `{apiVersion: v1, kind: Endpoints, metadata: {name: svc}}`, want: true},
		"endpoints of nothing":           {object: `{apiVersion: v1, kind: Endpoints, metadata: {name: a}}`},
		"a managed endpoint slice":       {object: `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, labels: {endpointslice.kubernetes.io/managed-by: x}}}`, want: true},
		"an endpoint slice of an author": {object: `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			isService := func(name string) bool { return name == "svc" }
			if got := tc.rules.Skips(fromYAML(t, tc.object), isService); got != tc.want {
				t.Errorf("skipped %t, want %t", got, tc.want)
			}
		})
	}
}

func TestParseSelectors(t *testing.T) {
	cases := map[string]struct {
		spec placementv1.ResourceSelector
		want string // in the error; none where empty
	}{
		"a namespace by name": {spec: placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "demo"}},
		"namespaces by label": {spec: placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
		"a reserved namespace by name": {
			spec: placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "kube-system"},
			want: `resourceSelectors[1] (v1 Namespace "kube-system"): the namespace is reserved and cannot be placed; put the resources into a namespace of their own`,
		},
		"a skipped namespace by name": {spec: placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "platform"}, want: "is reserved"},
		"a kind that is never placed": {
			spec: placementv1.ResourceSelector{Version: "v1", Kind: "Node"},
			want: `resourceSelectors[1] (all of v1 Node): objects of this kind are never placed, because it says something about one cluster only; remove the selector`,
		},
		"a name that none can have": {
			spec: placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "web/50%"},
			want: `no object can have this name: it may not contain '/', may not contain '%'; correct the name`,
		},
		"a label selector that cannot be read": {
			spec: placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}},
			want: "its labelSelector cannot be read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "other"}
			p := &placementv1.ClusterResourcePlacement{}
			p.Spec.ResourceSelectors = []placementv1.ResourceSelector{first, tc.spec}
			got, err := placement.ParseSelectors(p, placement.Rules{SkippedNamespaces: []string{"platform"}})
			if tc.want == "" {
				if err != nil || len(got) != 2 {
					t.Fatalf("got %v, %v", got, err)
				}
				return
			}
			if !placement.IsUserError(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want a UserError with %q", err, tc.want)
			}
		})
	}
}

func TestParseSelectorsInNamespace(t *testing.T) {
	p := &placementv1.ResourcePlacement{}
	p.Namespace = "team"
	p.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "settings"}}
	got, err := placement.ParseSelectors(p, placement.Rules{})
	if err != nil || len(got) != 1 || got[0].Namespace != "team" {
		t.Fatalf("got %v, %v, want one selector in namespace team", got, err)
	}
	for namespace, found := range map[string]bool{"team": true, "other": false, "": false} {
		id := placementv1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "settings", Namespace: namespace}
		if got[0].MayHaveFound(id) != found {
			t.Errorf("may have found one in namespace %q: %t, want %t", namespace, !found, found)
		}
	}
	for _, namespace := range []string{"kube-system", "default", "fleet-member-a", "platform"} {
		p.Namespace = namespace
		_, err := placement.ParseSelectors(p, placement.Rules{SkippedNamespaces: []string{"platform"}})
		if want := "it selects in namespace " + namespace + ", which is reserved"; !placement.IsUserError(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want a UserError with %q", err, want)
		}
	}
}

func TestTakesContent(t *testing.T) {
	for scope, want := range map[placementv1.SelectionScope]bool{"": true, "NamespaceWithResources": true, "NamespaceOnly": false} {
		p := &placementv1.ClusterResourcePlacement{}
		p.Spec.ResourceSelectors = []placementv1.ResourceSelector{
			{Version: "v1", Kind: "Namespace", Name: "demo", SelectionScope: scope},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "demo", SelectionScope: scope},
		}
		got, err := placement.ParseSelectors(p, placement.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].TakesContent() != want || got[1].TakesContent() {
			t.Errorf("scope %q: the namespace is taken with its content: %t, want %t; a ClusterRole: %t, want false",
				scope, got[0].TakesContent(), want, got[1].TakesContent())
		}
	}
}

func TestApplyOrder(t *testing.T) {
	id := func(group, version, kind, namespace, name string) placementv1.ResourceIdentifier {
		return placementv1.ResourceIdentifier{Group: group, Version: version, Kind: kind, Namespace: namespace, Name: name}
	}
	want := []placementv1.ResourceIdentifier{
		id("scheduling.k8s.io", "v1", "PriorityClass", "", "z"),
		id("", "v1", "Namespace", "", "a"),
		id("", "v1", "Namespace", "", "b"),
		id("", "v1", "Secret", "b", "a"),
		id("", "v1", "ConfigMap", "a", "z"),
		id("", "v1", "ConfigMap", "b", "a"),
		id("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "a"),
		id("", "v1", "Service", "a", "a"),
		id("apps", "v1", "Deployment", "a", "a"),
		id("batch", "v1", "Job", "a", "a"),
		id("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "", "a"),
		id("example.com", "v1", "Alpha", "a", "a"),
		id("example.com", "v1", "Beta", "", "a"),
		id("serving.knative.dev", "v1", "Service", "a", "a"), // not the Service that has a fixed place
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, placement.CompareIdentifiers)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected order (-want +got):\n%s", diff)
	}
}

func TestResourceSnapshotIndex(t *testing.T) {
	for name, want := range map[string]int{"web-0-snapshot": 0, "web-17-snapshot": 17, "web-1-snapshot-2-snapshot": -1, "web-01-snapshot": -1, "web--1-snapshot": -1, "other-1-snapshot": -1, "web-1": -1, "": -1} {
		got, ok := placement.ResourceSnapshotIndex("web", name)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
}
