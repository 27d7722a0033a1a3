package clusteraffinity_test

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/schedule/clusteraffinity"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func field(key string, op corev1.NodeSelectorOperator, values ...string) *policyv1alpha1.FieldSelector {
	return &policyv1alpha1.FieldSelector{MatchExpressions: []policyv1alpha1.FieldRequirement{{Key: key, Operator: op, Values: values}}}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"env": "prod", clusteraffinity.LabelProvider: "metal", corev1.LabelTopologyRegion: "north", corev1.LabelTopologyZone: "n1"}
	unreadable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}
	for name, tc := range map[string]struct {
		affinity *policyv1alpha1.ClusterAffinity
		want     bool
		err      string
	}{
		"none":                   {want: true},
		"empty":                  {affinity: &policyv1alpha1.ClusterAffinity{}, want: true},
		"named":                  {affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b", "a"}}, want: true},
		"another is named":       {affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
		"excluded":               {affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}, ExcludeClusters: []string{"a"}}},
		"another is excluded":    {affinity: &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"b"}}, want: true},
		"label":                  {affinity: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}, want: true},
		"other label":            {affinity: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}}},
		"named, other label":     {affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}}},
		"in the region":          {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("region", "In", "south", "north")}, want: true},
		"not in the region":      {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("region", "NotIn", "north")}},
		"in the zone":            {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("zone", "In", "n1")}, want: true},
		"not in the zones":       {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("zone", "NotIn", "n2", "n3")}, want: true},
		"provider":               {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("provider", "In", "metal")}, want: true},
		"other provider":         {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("provider", "In", "cloud")}},
		"unreadable":             {affinity: &policyv1alpha1.ClusterAffinity{LabelSelector: unreadable}, err: "spec.x.labelSelector cannot be understood"},
		"unreadable, excluded":   {affinity: &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"a"}, LabelSelector: unreadable}},
		"unknown field":          {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("country", "In", "x")}, err: `spec.x.fieldSelector.matchExpressions[0].key is "country"`},
		"unknown field operator": {affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: field("zone", "Gt", "x")}, err: `spec.x.fieldSelector.matchExpressions[0].operator is "Gt"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clusteraffinity.Locate("a", labels)
			got, err := clusteraffinity.Matches(tc.affinity, &c, "spec.x")
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.err)) {
				t.Fatalf("the error is %v, want %q", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("matches: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUnknownPlace(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"provider", "region", "zone"} {
		for op, want := range map[corev1.NodeSelectorOperator]bool{"In": false, "NotIn": true} {
			c := clusteraffinity.Locate("a", nil)
			a, err := clusteraffinity.Read(&policyv1alpha1.ClusterAffinity{FieldSelector: field(key, op, "", "x")}, "spec")
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Matches(&c); got != want {
				t.Errorf("%s %s of a cluster that says nothing: %v, want %v", key, op, got, want)
			}
		}
	}
	c := clusteraffinity.Cluster{Name: "a", Zones: []string{"n1", "n2"}}
	for op, want := range map[corev1.NodeSelectorOperator]bool{"In": true, "NotIn": false} {
		a, err := clusteraffinity.Read(&policyv1alpha1.ClusterAffinity{FieldSelector: field("zone", op, "n2")}, "spec")
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Matches(&c); got != want {
			t.Errorf("zone %s n2 of a cluster in n1 and n2: %v, want %v", op, got, want)
		}
	}
}
