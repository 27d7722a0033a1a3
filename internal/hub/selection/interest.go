package selection

import (
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Interest is what a placement wants to be told of.
type Interest struct {
	// Selectors are the placement's selectors.
	Selectors []placement.Selector
	// Watch tells whether it wants to know of changes of what it selects. If not, it is told of kinds that appear and
	// disappear alone.
	Watch bool
	// Unresolved tells that its selection failed on the state of the hub's API that Catalogue stands for. It is told of any
	// other state.
	Unresolved bool
	// Catalogue is the state that it last saw.
	Catalogue uint64
	// Roots are what its selectors found last, as in Selection.
	Roots map[schema.GroupKind][]string
	// Selecting tells that a selection is being made. What changes under way is held against what it finds.
	Selecting bool
}

// interest is an Interest, ready to be asked.
type interest struct {
	Interest
	roots   map[schema.GroupKind]sets.Set[string]
	content bool   // one of its selectors takes what is in namespaces
	own     string // the namespace that it selects in; empty where it selects cluster-scoped objects
	within  string // the one namespace in which it selects besides cluster-scoped objects; empty where it takes whole ones
	// changed are the objects, and the namespaces of objects, that have changed since a selection was begun.
	changed map[schema.GroupKind]sets.Set[string]
}

func newInterest(i Interest) *interest {
	prepared := &interest{
		Interest: i,
		roots:    map[schema.GroupKind]sets.Set[string]{},
		changed:  map[schema.GroupKind]sets.Set[string]{},
	}
	for kind, names := range i.Roots {
		prepared.roots[kind] = sets.New(names...)
	}
	for _, selector := range i.Selectors {
		prepared.content = prepared.content || selector.TakesContent()
		prepared.own, prepared.within = selector.Namespace, selector.Within
	}
	return prepared
}

// wants tells whether a change of an object may change the selection: the object matches now, or did when it was last
// looked at.
func (i *interest) wants(r resource, o *metav1.PartialObjectMetadata) bool {
	if !i.Watch {
		return false
	}
	kind, name := r.groupKind(), o.GetName()
	content := r.namespaced && i.own == "" && i.within == ""
	switch {
	case r.namespaced && i.within != "":
		if o.GetNamespace() != i.within {
			return false
		}
	case o.GetNamespace() != i.own && !content, content && !i.content:
		return false
	case content:
		kind, name = placement.NamespaceKind, o.GetNamespace()
	}
	if i.roots[kind].Has(name) {
		return true
	}
	if i.Selecting {
		if i.changed[kind] == nil {
			i.changed[kind] = sets.New[string]()
		}
		i.changed[kind].Insert(name)
	}
	if content {
		return false
	}
	for _, selector := range i.Selectors {
		if selector.Kind.GroupKind() == kind && selector.Matches(name, o.GetLabels()) {
			return true
		}
	}
	return false
}

// missed tells whether something that a selection found has changed while the selection was being made, and passed for
// something that nobody selects.
func (i *interest) missed(found map[schema.GroupKind][]string) bool {
	for kind, names := range found {
		if i.changed[kind].HasAny(names...) {
			return true
		}
	}
	return false
}

// mayHold tells whether objects of a kind may be selected.
func (i *interest) mayHold(r resource) bool {
	if r.namespaced && i.own == "" && i.within == "" {
		return i.Watch && i.content
	}
	return i.Watch && i.selects(r.groupKind())
}

// held tells whether there may have been objects of a kind among what was selected last.
func (i *interest) held(r resource) bool { return i.content || len(i.roots[r.groupKind()]) > 0 }

func (i *interest) selects(kind schema.GroupKind) bool {
	for _, selector := range i.Selectors {
		if selector.Kind.GroupKind() == kind {
			return true
		}
	}
	return false
}

// affected tells whether it is to be told that the hub's API has changed from one state to another.
func (i *interest) affected(before, after *catalogue) bool {
	if i.Unresolved {
		return i.Catalogue != after.print
	}
	for _, selector := range i.Selectors {
		_, was := before.kinds[selector.Kind]
		if _, is := after.kinds[selector.Kind]; was != is {
			return true
		}
	}
	if i.Watch && i.content {
		for _, r := range before.content {
			if !after.serves(r.groupKind()) {
				return true
			}
		}
	}
	return false
}

// resources are those that have to be watched for it.
func (i *interest) resources(c *catalogue) []resource {
	if !i.Watch {
		return nil
	}
	var wanted []resource
	for _, selector := range i.Selectors {
		if r, served := c.kinds[selector.Kind]; served && r.placeable && (i.within != "" || r.namespaced == (i.own != "")) {
			wanted = append(wanted, r)
		}
	}
	if i.content {
		wanted = append(wanted, c.content...)
	}
	return wanted
}
