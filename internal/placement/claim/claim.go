// Package claim decides which policy an object on the hub belongs to. An object has one policy at most, and keeps it: another
// one takes its place only where it is allowed to, or where the first lets go.
package claim

import (
	"cmp"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// The kinds of policies.
const (
	Namespaced = "PropagationPolicy"
	Cluster    = "ClusterPropagationPolicy"
)

// Policy is a policy of either kind.
type Policy struct {
	// Kind, Namespace and Name name it; a ClusterPropagationPolicy has no namespace.
	Kind, Namespace, Name string
	// Annotations are its annotations.
	Annotations map[string]string
	// Spec is what it says.
	Spec *policyv1alpha1.PropagationSpec
}

// Reference names the policy to the objects that it claims.
func (p *Policy) Reference() *policyv1alpha1.PolicyReference {
	return &policyv1alpha1.PolicyReference{Kind: p.Kind, Name: p.Name}
}

// String names the policy for a person.
func (p *Policy) String() string { return p.Kind + " " + p.Name }

func (p *Policy) is(r *policyv1alpha1.PolicyReference) bool {
	return r != nil && p.Kind == r.Kind && p.Name == r.Name
}

func (p *Policy) priority() int32 { return ptr.Deref(p.Spec.Priority, 0) }

// Object is what a policy looks at.
type Object struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Labels          map[string]string
}

// precision tells how closely a selector names an object; the more, the better.
type precision int

const (
	unmatched precision = iota
	byKind
	byLabel
	byName
)

// match is a policy that selects an object.
type match struct {
	*Policy
	precision
}

// SelectorError says that a policy's selector cannot be understood, so that nobody knows what it selects.
type SelectorError struct {
	// Index is the selector's position in spec.resourceSelectors.
	Index int
	Err   error
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("spec.resourceSelectors[%d].labelSelector: %v; correct it", e.Index, e.Err)
}

func (e *SelectorError) Unwrap() error { return e.Err }

// Validate tells whether all of a policy's selectors can be understood.
func (p *Policy) Validate() error {
	for i := range p.Spec.ResourceSelectors {
		if _, err := metav1.LabelSelectorAsSelector(p.Spec.ResourceSelectors[i].LabelSelector); err != nil {
			return &SelectorError{Index: i, Err: err}
		}
	}
	return nil
}

// Selects tells whether a policy selects an object. It is false of one that cannot be understood.
func (p *Policy) Selects(o Object) bool { return p.matches(o) > unmatched }

func (p *Policy) matches(o Object) precision {
	if p.Kind == Namespaced && p.Namespace != o.Namespace {
		return unmatched
	}
	best := unmatched
	for i := range p.Spec.ResourceSelectors {
		best = max(best, matches(&p.Spec.ResourceSelectors[i], o))
	}
	return best
}

func matches(s *policyv1alpha1.ResourceSelector, o Object) precision {
	switch {
	case s.APIVersion != o.Kind.GroupVersion().String() || s.Kind != o.Kind.Kind, s.Namespace != "" && s.Namespace != o.Namespace:
		return unmatched
	case s.Name == o.Name:
		return byName
	case s.Name != "":
		return unmatched
	case s.LabelSelector == nil:
		return byKind
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(o.Labels)) {
		return unmatched
	}
	return byLabel
}

// Decision is whose an object is.
type Decision struct {
	// Policy claims the object; nil where none does.
	Policy *Policy
	// Unsure is why the claim that there is stays as it is, whatever the policies say: that policy cannot be understood.
	Unsure error
}

// Decide tells which policy an object belongs to from now on, where current names the one that it has belonged to; nil where
// it has none. The order of the policies does not matter.
func Decide(o Object, current *policyv1alpha1.PolicyReference, policies []*Policy) Decision {
	var candidates []match
	var holder *match
	for _, p := range policies {
		if p.is(current) {
			if err := p.Validate(); err != nil {
				return Decision{Unsure: err}
			}
		}
		m := match{Policy: p, precision: p.matches(o)}
		if m.precision == unmatched {
			continue
		}
		candidates = append(candidates, m)
		if p.is(current) {
			holder = &m
		}
	}
	if holder != nil {
		candidates = slices.DeleteFunc(candidates, func(m match) bool { return !m.is(current) && !preempts(m, *holder) })
	}
	if len(candidates) == 0 {
		return Decision{}
	}
	return Decision{Policy: slices.MinFunc(candidates, compare).Policy}
}

// preempts tells whether a policy may take an object from another that holds it: it says so, and has the higher priority, or is
// the one of the object's own namespace against one of the whole hub.
func preempts(m, holder match) bool {
	if m.Spec.Preemption != policyv1alpha1.PreemptAlways {
		return false
	}
	if m.Kind != holder.Kind {
		return m.Kind == Namespaced
	}
	return m.priority() > holder.priority()
}

// compare orders policies, the one that an object goes to first: those of its namespace before those of the whole hub, then by
// priority, then by how closely they name it, then by name.
func compare(a, b match) int {
	return cmp.Or(
		-cmp.Compare(rank(a.Kind), rank(b.Kind)),
		-cmp.Compare(a.priority(), b.priority()),
		-cmp.Compare(a.precision, b.precision),
		cmp.Compare(a.Name, b.Name),
	)
}

func rank(kind string) int {
	if kind == Namespaced {
		return 1
	}
	return 0
}
