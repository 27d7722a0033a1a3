package division

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/override/policy"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/claim"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	isScheduled = "True/" + policyv1alpha1.ReasonScheduled
	isAwaiting  = "False/" + policyv1alpha1.ReasonAwaitingOverrides
)

// Nothing is decided, and no revision made, before the overrides exist that the policy names, of the policy's own scope.
func TestAwaitsOverrides(t *testing.T) {
	anything := policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{}}}
	for kind, make := range map[string]struct {
		other, own func(name string) client.Object
	}{
		claim.Namespaced: {
			other: func(name string) client.Object {
				return &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: anything}
			},
			own: func(name string) client.Object {
				return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: anything}
			},
		},
		claim.Cluster: {
			other: func(name string) client.Object {
				return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: anything}
			},
			own: func(name string) client.Object {
				return &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: anything}
			},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			f.join("east", nil)
			f.Make(make.other(f.Name + "-a"))
			p := f.claim(kind, func(s *policyv1alpha1.ObjectPlacementSpec) {
				s.DependentOverrides = []string{f.Name + "-a", f.Name + "-b"}
			})
			if got := f.scheduled(p, isAwaiting); !strings.Contains(got, f.Name+"-a, "+f.Name+"-b") {
				t.Errorf("it does not say what is waited for: %s", got)
			}
			f.Make(make.own(f.Name + "-a"))
			framework.Await(t, f, p, "waits for the other alone", func(p *policyv1alpha1.ObjectPlacement) bool {
				c := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionScheduled)
				return !strings.Contains(c.Message, f.Name+"-a") && strings.Contains(c.Message, f.Name+"-b")
			})
			var s placementv1.ResourceSnapshotList
			if err := f.List(t.Context(), &s, client.MatchingLabels{placementv1.LabelParentObject: f.Name}); err != nil || len(s.Items)+len(f.bindings()) > 0 {
				t.Errorf("there are %d revisions and %d bindings (%v)", len(s.Items), len(f.bindings()), err)
			}
			b := make.own(f.Name + "-b")
			f.Make(b)
			f.scheduled(p, isScheduled)
			if err := f.Delete(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			f.scheduled(p, isAwaiting)
			if got := f.bindings(); len(got) != 1 || !got[0].DeletionTimestamp.IsZero() || got[0].Spec.State != placementv1.BindingStateBound {
				t.Errorf("what was decided did not stay: %v", got)
			}
		})
	}
}

// A selector that cannot be understood changes nothing; one that can selects by labels and by where clusters are.
func TestAffinities(t *testing.T) {
	f := newFixture(t)
	f.join("east", map[string]string{"env": "prod", "topology.kubernetes.io/region": "here"})
	f.join("west", map[string]string{"env": "prod", "topology.kubernetes.io/region": "there"})
	p := f.claim(claim.Namespaced, func(s *policyv1alpha1.ObjectPlacementSpec) {
		s.Placement.ClusterAffinity.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
		s.Placement.ClusterAffinity.FieldSelector = &policyv1alpha1.FieldSelector{MatchExpressions: []policyv1alpha1.FieldRequirement{
			{Key: "region", Operator: "In", Values: []string{"there"}}}}
	})
	f.scheduled(p, isScheduled)
	if len(p.Status.Clusters) != 1 || p.Status.Clusters[0].Name != f.Cluster("west") {
		t.Fatalf("the clusters are %v", p.Status.Clusters)
	}
	s := &placementv1.ResourceSnapshot{}
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: placement.ResourceSnapshotName(f.Name, 0)}, s); err != nil {
		t.Fatal(err)
	}
	if objects, _ := policy.Described(s.Annotations[policyv1alpha1.AnnotationObjects]); len(objects) != 1 || objects[0].Labels["app"] != f.Name || objects[0].Kind != "ConfigMap" {
		t.Errorf("the revision says that it holds %v", objects)
	}
	f.Change(p, `{"spec":{"placement":{"clusterAffinity":{"labelSelector":{"matchExpressions":[{"key":"env","operator":"Near"}]}}}}}`)
	if got := f.scheduled(p, "False/"+policyv1alpha1.ReasonInvalidPolicy); !strings.Contains(got, "spec.placement.clusterAffinity.labelSelector") {
		t.Errorf("it does not name the field: %s", got)
	}
	if got := f.bindings(); len(got) != 1 || !got[0].DeletionTimestamp.IsZero() || got[0].Spec.TargetCluster != f.Cluster("west") {
		t.Errorf("the bindings are %v", got)
	}
}
