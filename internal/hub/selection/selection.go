// Package selection finds out, by live reads of the hub's API, what a placement selects, and learns by watches when that
// may have changed. When something cannot be read it says so, rather than taking it for absent.
package selection

import (
	"context"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// parallel is how many reads of one selection are under way at a time.
const parallel = 10

// Selector finds out what placements select. Its fields are not changed once it is in use.
type Selector struct {
	// Discovery and Client talk to the hub's API server, without a cache between.
	Discovery Discovery
	Client    dynamic.Interface
	// Rules say what is never placed.
	Rules placement.Rules
}

// Selection is what a placement selects, at one moment.
type Selection struct {
	// Objects are the selected objects without what only the hub knows of them, in the order in which they are applied.
	Objects []snapshot.Object
	// Roots are the names of the objects that selectors found, by kind: cluster-scoped objects and namespaces, but not
	// what is in those; or the objects in the placement's own namespace.
	Roots map[schema.GroupKind][]string
	// Namespaces are the namespaces that are selected along with what is in them.
	Namespaces []string
	// Unmatched are the selectors that found nothing.
	Unmatched []placement.Selector
	// Catalogue stands for the state of the hub's API that the selection was made on.
	Catalogue uint64

	served func(schema.GroupKind) bool
}

// Serves tells whether the hub's API served a kind when the selection was made. While it does, an object of that kind
// which is not in the selection is confirmed to be gone, or not to be selected any more.
func (s *Selection) Serves(kind schema.GroupKind) bool { return s.served != nil && s.served(kind) }

// found is an object with the selector that found it.
type found struct {
	*unstructured.Unstructured
	selector placement.Selector
}

// Validate checks a placement's selectors without reading what they select. The error is a placement.UserError or an
// IncompleteError. The selection that it returns, with the error or without, has no more than Catalogue.
func (s *Selector) Validate(ctx context.Context, p placementv1.PlacementObject) (*Selection, error) {
	_, selection, err := s.resolve(ctx, p)
	if selection == nil {
		selection = &Selection{}
	}
	return selection, err
}

// Select finds out what a placement selects by reads that show everything written before the call. An error is a
// placement.UserError or an IncompleteError; the selection is never nil, but with an error it has no objects, and only as
// much of the rest as had been found.
func (s *Selector) Select(ctx context.Context, p placementv1.PlacementObject) (*Selection, error) {
	targets, selection, err := s.resolve(ctx, p)
	if err != nil {
		if selection == nil {
			selection = &Selection{}
		}
		return selection, err
	}
	roots, err := s.readRoots(ctx, targets)
	if err != nil {
		return selection, err
	}
	for _, root := range roots {
		kind := root.GroupVersionKind().GroupKind()
		selection.Roots[kind] = append(selection.Roots[kind], root.GetName())
		if root.selector.TakesContent() {
			selection.Namespaces = append(selection.Namespaces, root.GetName())
		}
	}
	selection.Unmatched = unmatched(targets.selectors, roots)
	for _, selector := range selection.Unmatched {
		if selector.OpensNamespace() {
			return selection, selector.Mistake("the hub has no such namespace, or it is being deleted", "create the namespace, which is then noticed by itself, or select another")
		}
	}
	objects := roots
	if len(selection.Namespaces) > 0 {
		content, err := s.readContent(ctx, targets.catalogue, roots)
		if err != nil {
			return selection, err
		}
		objects = append(objects, content...)
	}
	selection.Objects, err = contents(objects)
	return selection, err
}

// targets are the selectors of a placement with the resources that they select from.
type targets struct {
	catalogue *catalogue
	selectors []placement.Selector
	resources []resource
}

func (s *Selector) resolve(ctx context.Context, p placementv1.PlacementObject) (*targets, *Selection, error) {
	selectors, err := placement.ParseSelectors(p, s.Rules)
	if err != nil {
		return nil, nil, err
	}
	c, err := discover(ctx, s.Discovery)
	if err != nil {
		return nil, nil, &IncompleteError{Unread: "the hub's API", Err: err}
	}
	selection := &Selection{Roots: map[schema.GroupKind][]string{}, Catalogue: c.print, served: c.serves}
	t := &targets{catalogue: c, selectors: selectors, resources: make([]resource, len(selectors))}
	for i, selector := range selectors {
		if t.resources[i], err = c.resolve(selector); err != nil {
			return nil, selection, err
		}
		if t.resources[i].namespaced && selector.Within != "" {
			t.selectors[i].Namespace = selector.Within
		}
		if selector.TakesContent() {
			if err := c.contentKnown(); err != nil {
				return nil, selection, err
			}
		}
	}
	return t, selection, nil
}

// readRoots reads what the selectors themselves find. An object that two of them find is an error.
func (s *Selector) readRoots(ctx context.Context, t *targets) ([]found, error) {
	results := make([][]found, len(t.selectors))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, selector := range t.selectors {
		group.Go(func() (err error) {
			results[i], err = s.readRoot(ctx, selector, t.resources[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	type identity struct {
		kind schema.GroupKind
		name string
	}
	foundBy := map[identity]placement.Selector{}
	var roots []found
	for _, objects := range results {
		for _, o := range objects {
			id := identity{o.GroupVersionKind().GroupKind(), o.GetName()}
			if other, twice := foundBy[id]; twice {
				return nil, o.selector.Mistake(
					fmt.Sprintf("it selects %s %q, which resourceSelectors[%d] (%s) selects too", id.kind.Kind, id.name, other.Index, other),
					"let one selector select it")
			}
			foundBy[id] = o.selector
			roots = append(roots, o)
		}
	}
	return roots, nil
}

// unmatched returns the selectors that none of the roots was found by.
func unmatched(selectors []placement.Selector, roots []found) []placement.Selector {
	matched := map[int]bool{}
	for _, root := range roots {
		matched[root.selector.Index] = true
	}
	return slices.DeleteFunc(slices.Clone(selectors), func(s placement.Selector) bool { return matched[s.Index] })
}

func (s *Selector) readRoot(ctx context.Context, selector placement.Selector, r resource) ([]found, error) {
	var objects []unstructured.Unstructured
	if selector.Name != "" {
		object, err := s.get(ctx, r, selector.Namespace, selector.Name)
		if err != nil {
			return nil, err
		}
		if object != nil {
			objects = append(objects, *object)
		}
	} else {
		var err error
		if objects, err = s.list(ctx, r, selector.Namespace, selector.Labels.String()); err != nil {
			return nil, err
		}
	}
	isService, err := s.servicesBeside(ctx, r, selector.Namespace)
	if err != nil {
		return nil, err
	}
	var roots []found
	for i := range objects {
		o := &objects[i]
		if s.Rules.Skips(o, isService) || (selector.IsNamespace() && s.Rules.Reserved(o.GetName())) {
			continue
		}
		roots = append(roots, found{Unstructured: o, selector: selector})
	}
	return roots, nil
}

// readContent reads what is in the namespaces among the roots.
func (s *Selector) readContent(ctx context.Context, c *catalogue, roots []found) ([]found, error) {
	var namespaces []found
	for _, root := range roots {
		if root.selector.TakesContent() {
			namespaces = append(namespaces, root)
		}
	}
	results := make([][]unstructured.Unstructured, len(namespaces)*len(c.content))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, namespace := range namespaces {
		for j, r := range c.content {
			group.Go(func() (err error) {
				results[i*len(c.content)+j], err = s.list(ctx, r, namespace.GetName(), "")
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var content []found
	for i, namespace := range namespaces {
		lists := results[i*len(c.content) : (i+1)*len(c.content)]
		isService := serviceNames(lists)
		for _, list := range lists {
			for k := range list {
				if !s.Rules.Skips(&list[k], isService) {
					content = append(content, found{Unstructured: &list[k], selector: namespace.selector})
				}
			}
		}
	}
	return content, nil
}

// servicesBeside tells which names the Services of a namespace have, where it matters: to objects that Kubernetes makes
// for Services of their name.
func (s *Selector) servicesBeside(ctx context.Context, r resource, namespace string) (func(string) bool, error) {
	if r.groupKind() != (schema.GroupKind{Kind: "Endpoints"}) {
		return nil, nil //nolint:nilnil // not asked by objects of other kinds
	}
	services := resource{gvr: schema.GroupVersionResource{Version: "v1", Resource: "services"}, kind: "Service"}
	list, err := s.list(ctx, services, namespace, "")
	if err != nil {
		return nil, err
	}
	return serviceNames([][]unstructured.Unstructured{list}), nil
}

// serviceNames tells which names the Services in the lists of one namespace have.
func serviceNames(lists [][]unstructured.Unstructured) func(string) bool {
	var names []string
	for _, list := range lists {
		if len(list) == 0 || list[0].GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Service"}) {
			continue
		}
		for i := range list {
			names = append(names, list[i].GetName())
		}
	}
	return func(name string) bool { return slices.Contains(names, name) }
}

// contents makes what is placed of what was found.
func contents(objects []found) ([]snapshot.Object, error) {
	contents := make([]snapshot.Object, 0, len(objects))
	for _, o := range objects {
		placement.Sanitize(o.Unstructured)
		content, err := snapshot.NewObject(o.Unstructured)
		if err != nil {
			return nil, err // what came as JSON can be written as JSON
		}
		if size := len(content.Content); size > snapshot.MaxObject {
			return nil, o.selector.Mistake(
				fmt.Sprintf("it selects %s, which has %d KiB: more than the %d KiB that one object can have to be placed",
					snapshot.Describe(content.ResourceIdentifier), size/1024, snapshot.MaxObject/1024),
				"make the object smaller, or move it out of what is selected")
		}
		contents = append(contents, content)
	}
	snapshot.Sort(contents)
	return contents, nil
}
