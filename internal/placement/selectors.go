package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// UserError is a mistake in a placement's selectors that only the person who wrote them, or what they select, can put
// right.
type UserError struct {
	// Selector is the index of the selector in the placement.
	Selector int
	// About describes that selector or the object in question.
	About string
	// Problem is what is wrong, Remedy what to do about it.
	Problem, Remedy string
}

// Error names the selector, the problem and the remedy.
func (e *UserError) Error() string {
	return fmt.Sprintf("%s: %s; %s", where(e.Selector, e.About), e.Problem, e.Remedy)
}

func where(index int, about string) string {
	return fmt.Sprintf("resourceSelectors[%d] (%s)", index, about)
}

// IsUserError tells whether err is, or wraps, a UserError.
func IsUserError(err error) bool {
	var mistake *UserError
	return errors.As(err, &mistake)
}

// Selector is a resource selector of a placement, ready for use.
type Selector struct {
	// Index is its position in the placement.
	Index int
	// Kind is what it selects.
	Kind schema.GroupVersionKind
	// Name is the one object that it selects; empty where it selects by label.
	Name string
	// Labels are what selected objects match; everything where it has neither name nor labels.
	Labels labels.Selector
	// Namespace is where it selects; empty for a selector of cluster-scoped objects.
	Namespace string
	// Within is where it selects if its kind turns out to live in namespaces, though the placement does not: the namespace that
	// the placement selects along with what its other selectors find there. Empty where there is none.
	Within string
	// Scope says what it takes of the namespaces that it selects.
	Scope placementv1.SelectionScope
}

// IsNamespace tells whether the selector selects namespaces.
func (s Selector) IsNamespace() bool { return s.Kind.GroupKind() == NamespaceKind }

// TakesContent tells whether it selects namespaces along with what is in them.
func (s Selector) TakesContent() bool {
	return s.IsNamespace() && s.Scope != placementv1.SelectionScopeNamespaceOnly && s.Scope != placementv1.SelectionScopeNamespaceWithResourceSelectors
}

// OpensNamespace tells whether it selects a namespace along with what the placement's other selectors find there.
func (s Selector) OpensNamespace() bool {
	return s.IsNamespace() && s.Namespace == "" && s.Scope == placementv1.SelectionScopeNamespaceWithResourceSelectors
}

// Matches tells whether the selector selects an object of its kind that has this name and these labels.
func (s Selector) Matches(name string, set map[string]string) bool {
	if s.Name != "" {
		return s.Name == name
	}
	return s.Labels.Matches(labels.Set(set))
}

// MayHaveFound tells whether an object could have been found by the selector, going by all that is known of it once it is
// in a snapshot: its labels are not.
func (s Selector) MayHaveFound(id placementv1.ResourceIdentifier) bool {
	there := id.Namespace == s.Namespace || (s.Within != "" && id.Namespace == s.Within)
	return there && id.Group == s.Kind.Group && id.Kind == s.Kind.Kind && (s.Name == "" || s.Name == id.Name)
}

// Mistake makes a UserError about the selector.
func (s Selector) Mistake(problem, remedy string) *UserError {
	return &UserError{Selector: s.Index, About: s.String(), Problem: problem, Remedy: remedy}
}

// Where says which selector of the placement it is, and describes it for a person.
func (s Selector) Where() string { return where(s.Index, s.String()) }

// String describes the selector for a person.
func (s Selector) String() string {
	kind := s.Kind.Version + " " + s.Kind.Kind
	if s.Kind.Group != "" {
		kind = s.Kind.Group + "/" + kind
	}
	switch {
	case s.Name != "":
		return fmt.Sprintf("%s %q", kind, s.Name)
	case s.Labels == nil || s.Labels.Empty():
		return "all of " + kind
	default:
		return kind + " with labels " + s.Labels.String()
	}
}

// ParseSelectors checks what can be checked of a placement's selectors without asking an API server. A placement in a
// namespace selects in that namespace. The error is a UserError.
func ParseSelectors(p placementv1.PlacementObject, rules Rules) ([]Selector, error) {
	specs := p.PlacementSpec().ResourceSelectors
	selectors := make([]Selector, 0, len(specs))
	for i := range specs {
		selector, err := parseSelector(i, p.GetNamespace(), &specs[i], rules)
		if err != nil {
			return nil, err
		}
		selectors = append(selectors, selector)
	}
	if i := slices.IndexFunc(selectors, Selector.OpensNamespace); i >= 0 {
		for j := range selectors {
			selectors[j].Within = selectors[i].Name
		}
	}
	return selectors, nil
}

func parseSelector(index int, namespace string, spec *placementv1.ResourceSelector, rules Rules) (Selector, error) {
	s := Selector{
		Index:     index,
		Kind:      schema.GroupVersionKind{Group: spec.Group, Version: spec.Version, Kind: spec.Kind},
		Name:      spec.Name,
		Labels:    labels.Everything(),
		Namespace: namespace,
		Scope:     spec.SelectionScope,
	}
	if spec.LabelSelector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(spec.LabelSelector)
		if err != nil {
			return s, s.Mistake("its labelSelector cannot be read: "+err.Error(), "correct the label selector")
		}
		s.Labels = parsed
	}
	if mistakes := content.IsPathSegmentName(s.Name); len(mistakes) > 0 {
		return s, s.Mistake("no object can have this name: it "+strings.Join(mistakes, ", "), "correct the name")
	}
	if why := NeverPlaced(s.Kind.GroupKind()); why != "" {
		return s, s.Mistake("objects of this kind are never placed, because "+why, "remove the selector")
	}
	if namespace != "" && rules.Reserved(namespace) {
		return s, s.Mistake(fmt.Sprintf("it selects in namespace %s, which is reserved: nothing in it can be placed", namespace),
			"put the resources and their ResourcePlacement into a namespace of their own, whose name does not begin with kube-, fleet- or fleetwright-"+except(rules))
	}
	if s.IsNamespace() && s.Name != "" && rules.Reserved(s.Name) {
		return s, s.Mistake("the namespace is reserved and cannot be placed",
			"put the resources into a namespace of their own, whose name does not begin with kube-, fleet- or fleetwright-"+except(rules))
	}
	if why := OwnOfCluster(s.Kind.GroupKind(), &metav1.ObjectMeta{Name: s.Name}); why != "" {
		return s, s.Mistake("it is never placed, because "+why, "remove the selector, or place a copy of the object under another name")
	}
	return s, nil
}

func except(rules Rules) string {
	names := append([]string{"default"}, rules.SkippedNamespaces...)
	return " and is not " + strings.Join(names, ", ")
}
