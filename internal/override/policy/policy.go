// Package policy says what override policies change of objects in a cluster. It does no I/O.
package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/schedule/clusteraffinity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// The kinds of override policies.
const (
	Namespaced = "OverridePolicy"
	Cluster    = "ClusterOverridePolicy"
)

// Policy is an override policy of either kind.
type Policy struct {
	// Kind, Namespace and Name name it; a ClusterOverridePolicy has no namespace.
	Kind, Namespace, Name string
	// UID and Generation tell one edition of it from another.
	UID        types.UID
	Generation int64
	// Spec is what it says. It is not changed.
	Spec *policyv1alpha1.OverrideSpec
}

// Of is an OverridePolicy.
func Of(p *policyv1alpha1.OverridePolicy) Policy {
	return Policy{Kind: Namespaced, Namespace: p.Namespace, Name: p.Name, UID: p.UID, Generation: p.Generation, Spec: &p.Spec}
}

// OfCluster is a ClusterOverridePolicy.
func OfCluster(p *policyv1alpha1.ClusterOverridePolicy) Policy {
	return Policy{Kind: Cluster, Name: p.Name, UID: p.UID, Generation: p.Generation, Spec: &p.Spec}
}

func (p *Policy) String() string {
	if p.Namespace == "" {
		return p.Kind + " " + p.Name
	}
	return p.Kind + " " + p.Namespace + "/" + p.Name
}

// Object is what selectors look at.
type Object struct {
	// APIVersion, Kind, Namespace and Name name it.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Labels are its labels.
	Labels map[string]string `json:"labels,omitempty"`
}

func (o *Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Look reads of an object, as JSON, what selectors look at.
func Look(raw []byte) (Object, error) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Namespace string            `json:"namespace"`
			Name      string            `json:"name"`
			Labels    map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return Object{}, fmt.Errorf("read an object: %w", err)
	}
	m := &head.Metadata
	return Object{APIVersion: head.APIVersion, Kind: head.Kind, Namespace: m.Namespace, Name: m.Name, Labels: m.Labels}, nil
}

// precision is how closely a policy says which objects it means: of two the more precise is applied later, and wins.
type precision int

const (
	unmatched precision = iota
	byScope
	byKind
	byLabel
	byName
)

// Selects tells whether a policy is for an object. One of which that cannot be told counts as if it were: see Set.Apply.
func (p *Policy) Selects(o *Object) bool {
	how, err := p.matches(o)
	return err != nil || how > unmatched
}

// matches tells how closely a policy means an object. An error names the selector that cannot be understood.
func (p *Policy) matches(o *Object) (precision, error) {
	if p.Kind == Namespaced && p.Namespace != o.Namespace {
		return unmatched, nil
	}
	if len(p.Spec.ResourceSelectors) == 0 {
		return byScope, nil
	}
	best := unmatched
	for i := range p.Spec.ResourceSelectors {
		how, err := matches(&p.Spec.ResourceSelectors[i], o)
		if err != nil {
			return unmatched, fmt.Errorf("spec.resourceSelectors[%d].labelSelector cannot be understood: %w; correct it", i, err)
		}
		best = max(best, how)
	}
	return best, nil
}

func matches(s *policyv1alpha1.ResourceSelector, o *Object) (precision, error) {
	switch {
	case s.APIVersion != o.APIVersion || s.Kind != o.Kind, s.Namespace != "" && s.Namespace != o.Namespace, s.Name != "" && s.Name != o.Name:
		return unmatched, nil
	case s.Name != "":
		return byName, nil
	case s.LabelSelector == nil:
		return byKind, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		return unmatched, err //nolint:wrapcheck // the caller says which selector it is of
	}
	if !selector.Matches(labels.Set(o.Labels)) {
		return unmatched, nil
	}
	return byLabel, nil
}

// Set are the policies that concern some objects in one cluster.
type Set struct {
	cluster  string
	policies []inForce
}

// inForce is a policy with those of its rules that are for the cluster.
type inForce struct {
	Policy
	rules []rule
}

// rule is a rule that is for the cluster, or of which it cannot be told whether it is.
type rule struct {
	*policyv1alpha1.RuleWithCluster
	index   int
	unclear error
}

// Match finds, among policies, those that change something of one of some objects in a cluster.
func Match(policies []Policy, objects []Object, c *clusteraffinity.Cluster) Set {
	set := Set{cluster: c.Name}
	for _, p := range policies {
		if !slices.ContainsFunc(objects, func(o Object) bool { return p.Selects(&o) }) {
			continue
		}
		found := inForce{Policy: p}
		rules := p.Spec.Rules()
		for i := range rules {
			field := "spec.targetCluster"
			if p.Spec.Overriders == nil {
				field = fmt.Sprintf("spec.overrideRules[%d].targetCluster", i)
			}
			matches, err := clusteraffinity.Matches(rules[i].TargetCluster, c, field)
			if matches || err != nil {
				found.rules = append(found.rules, rule{RuleWithCluster: &rules[i], index: i, unclear: err})
			}
		}
		if len(found.rules) > 0 {
			set.policies = append(set.policies, found)
		}
	}
	slices.SortFunc(set.policies, func(a, b inForce) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return set
}

// Empty tells whether nothing is changed.
func (s *Set) Empty() bool { return len(s.policies) == 0 }

// Key stands for all that is changed. It is empty where nothing is, and another one wherever a policy that concerns the objects in the
// cluster is edited, comes or goes, or other rules of it are for the cluster.
func (s *Set) Key() string {
	type edition struct {
		Kind, Namespace, Name string
		UID                   types.UID
		Generation            int64
		Rules                 []int
		Unclear               []string
	}
	if s.Empty() {
		return ""
	}
	all := make([]edition, 0, len(s.policies))
	for i := range s.policies {
		p := &s.policies[i]
		e := edition{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, UID: p.UID, Generation: p.Generation}
		for _, r := range p.rules {
			e.Rules = append(e.Rules, r.index)
			if r.unclear != nil {
				e.Unclear = append(e.Unclear, r.unclear.Error())
			}
		}
		all = append(all, e)
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("encode the names of policies: " + err.Error()) // strings and numbers, which can be encoded
	}
	return string(text)
}

// order returns the policies that are for an object, in the order in which they are applied.
func (s *Set) order(o *Object) ([]*inForce, *Failure) {
	type candidate struct {
		*inForce
		how precision
	}
	var all []candidate
	for i := range s.policies {
		p := &s.policies[i]
		how, err := p.matches(o)
		if err != nil {
			return nil, &Failure{Policy: p.String(), Problem: err.Error()}
		}
		if how > unmatched {
			all = append(all, candidate{inForce: p, how: how})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.how, b.how), cmp.Compare(a.Name, b.Name)) // ClusterOverridePolicy is before OverridePolicy
	})
	ordered := make([]*inForce, 0, len(all))
	for _, c := range all {
		ordered = append(ordered, c.inForce)
	}
	return ordered, nil
}
