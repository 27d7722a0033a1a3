package claim

import (
	"testing"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

var deployment = Object{
	Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"},
}

func selector(change func(*policyv1alpha1.ResourceSelector)) policyv1alpha1.ResourceSelector {
	s := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	if change != nil {
		change(&s)
	}
	return s
}

func named(s *policyv1alpha1.ResourceSelector) { s.Name = "web" }

func labelled(s *policyv1alpha1.ResourceSelector) {
	s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func policy(kind, name string, priority int32, preemption policyv1alpha1.PreemptionBehavior, change func(*policyv1alpha1.ResourceSelector)) *Policy {
	p := &Policy{Kind: kind, Name: name, Spec: &policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{selector(change)}, Preemption: preemption,
	}}
	if priority != 0 {
		p.Spec.Priority = ptr.To(priority)
	}
	if kind == Namespaced {
		p.Namespace = "shop"
	}
	return p
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const never, always = policyv1alpha1.PreemptNever, policyv1alpha1.PreemptAlways
	other := func(s *policyv1alpha1.ResourceSelector) { s.Name = "api" }
	elsewhere := policy(Namespaced, "elsewhere", 0, never, named)
	elsewhere.Namespace = "other"
	tests := map[string]struct {
		policies []*Policy
		current  string // the name of the PropagationPolicy that has it; one that begins with c/ is a cluster's
		want     string
		unsure   bool
	}{
		"none":                                 {want: ""},
		"another object":                       {policies: []*Policy{policy(Namespaced, "a", 0, never, other)}, want: ""},
		"another namespace":                    {policies: []*Policy{elsewhere}, want: ""},
		"another version":                      {policies: []*Policy{policy(Namespaced, "a", 0, never, func(s *policyv1alpha1.ResourceSelector) { s.APIVersion = "apps/v1beta1" })}, want: ""},
		"the whole kind":                       {policies: []*Policy{policy(Namespaced, "a", 0, never, nil)}, want: "a"},
		"a name beats a label":                 {policies: []*Policy{policy(Namespaced, "a", 0, never, labelled), policy(Namespaced, "b", 0, never, named)}, want: "b"},
		"a label beats a kind":                 {policies: []*Policy{policy(Namespaced, "a", 0, never, nil), policy(Namespaced, "b", 0, never, labelled)}, want: "b"},
		"priority beats a name":                {policies: []*Policy{policy(Namespaced, "a", 1, never, nil), policy(Namespaced, "b", 0, never, named)}, want: "a"},
		"the first by name":                    {policies: []*Policy{policy(Namespaced, "b", 0, never, named), policy(Namespaced, "a", 0, never, named)}, want: "a"},
		"the namespace's own beats the hub's":  {policies: []*Policy{policy(Cluster, "a", 9, never, named), policy(Namespaced, "b", 0, never, nil)}, want: "b"},
		"a claim stays":                        {policies: []*Policy{policy(Namespaced, "a", 0, never, named), policy(Namespaced, "b", 0, never, nil)}, current: "b", want: "b"},
		"a claim stays, whatever the priority": {policies: []*Policy{policy(Namespaced, "a", 9, never, named), policy(Namespaced, "b", 0, never, nil)}, current: "b", want: "b"},
		"taken by a higher priority":           {policies: []*Policy{policy(Namespaced, "a", 9, always, named), policy(Namespaced, "b", 0, never, nil)}, current: "b", want: "a"},
		"not taken by the same priority":       {policies: []*Policy{policy(Namespaced, "a", 0, always, named), policy(Namespaced, "b", 0, never, nil)}, current: "b", want: "b"},
		"taken by the namespace's own":         {policies: []*Policy{policy(Namespaced, "a", 0, always, named), policy(Cluster, "b", 9, never, nil)}, current: "c/b", want: "a"},
		"not taken by the hub's":               {policies: []*Policy{policy(Cluster, "a", 9, always, named), policy(Namespaced, "b", 0, never, nil)}, current: "b", want: "b"},
		"let go":                               {policies: []*Policy{policy(Namespaced, "b", 0, never, other)}, current: "b", want: ""},
		"let go and found again":               {policies: []*Policy{policy(Namespaced, "a", 0, never, nil), policy(Namespaced, "b", 0, never, other)}, current: "b", want: "a"},
		"deleted and found again":              {policies: []*Policy{policy(Namespaced, "a", 0, never, nil)}, current: "b", want: "a"},
		"the holder cannot be understood": {policies: []*Policy{policy(Namespaced, "a", 9, always, named), policy(Namespaced, "b", 0, never, func(s *policyv1alpha1.ResourceSelector) {
			s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}}
		})}, current: "b", unsure: true},
		"another cannot be understood": {policies: []*Policy{policy(Namespaced, "a", 0, never, func(s *policyv1alpha1.ResourceSelector) {
			s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}}
		}), policy(Namespaced, "b", 0, never, nil)}, want: "b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(deployment, reference(tc.current), tc.policies)
			if (got.Unsure != nil) != tc.unsure {
				t.Fatalf("unsure: %v", got.Unsure)
			}
			chosen := ""
			if got.Policy != nil {
				chosen = got.Policy.Name
			}
			if chosen != tc.want {
				t.Errorf("got %q, want %q", chosen, tc.want)
			}
		})
	}
}

func reference(name string) *policyv1alpha1.PolicyReference {
	switch {
	case name == "":
		return nil
	case len(name) > 2 && name[:2] == "c/":
		return &policyv1alpha1.PolicyReference{Kind: Cluster, Name: name[2:]}
	default:
		return &policyv1alpha1.PolicyReference{Kind: Namespaced, Name: name}
	}
}

// TestDecideProperties: the order of policies does not matter, and a decision, made again on what it led to, is the same.
func TestDecideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		selectors := []func(*policyv1alpha1.ResourceSelector){nil, labelled, named, func(s *policyv1alpha1.ResourceSelector) { s.Name = "api" }}
		var policies []*Policy
		for i, n := 0, rapid.IntRange(0, 6).Draw(t, "policies"); i < n; i++ {
			policies = append(policies, policy(rapid.SampledFrom([]string{Namespaced, Cluster}).Draw(t, "kind"), string(rune('a'+i)), rapid.Int32Range(-1, 2).Draw(t, "priority"),
				rapid.SampledFrom([]policyv1alpha1.PreemptionBehavior{policyv1alpha1.PreemptAlways, policyv1alpha1.PreemptNever}).Draw(t, "preemption"),
				rapid.SampledFrom(selectors).Draw(t, "selector")))
		}
		var current *policyv1alpha1.PolicyReference
		if len(policies) > 0 && rapid.Bool().Draw(t, "held") {
			current = rapid.SampledFrom(policies).Draw(t, "holder").Reference()
		}
		first := Decide(deployment, current, policies)
		shuffled := Decide(deployment, current, rapid.Permutation(policies).Draw(t, "order"))
		if first.Policy != shuffled.Policy {
			t.Fatalf("the order matters: %v and %v", first.Policy, shuffled.Policy)
		}
		if first.Policy == nil {
			return
		}
		if again := Decide(deployment, first.Policy.Reference(), policies); again.Policy != first.Policy {
			t.Fatalf("%v gives the object up to %v at once", first.Policy, again.Policy)
		}
	})
}
