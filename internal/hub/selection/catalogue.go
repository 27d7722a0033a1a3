package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Discovery asks the hub's API server which kinds it serves. A discovery client does.
type Discovery interface {
	ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// resource is a kind in one version, as the API serves it.
type resource struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	// placeable tells whether objects of the kind can be listed here and created elsewhere.
	placeable bool
	// watchable tells whether the API tells of their changes.
	watchable bool
}

func (r resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.gvr.Group, Kind: r.kind}
}

// catalogue is what the hub's API serves at one moment.
type catalogue struct {
	// kinds are all kinds in all versions.
	kinds map[schema.GroupVersionKind]resource
	// versions are the versions of each kind, the preferred one first.
	versions map[schema.GroupKind][]string
	// content are the namespaced kinds that may be placed, each in its preferred version, sorted.
	content []resource
	// failed are the groups whose kinds could not be learnt, with the reason. Groups of which nothing is ever placed are
	// not in it.
	failed map[string]error
	// print is the same for the same answer of the API.
	print uint64
}

// discover asks for the catalogue. The error means that nothing at all is known.
func discover(ctx context.Context, d Discovery) (*catalogue, error) {
	groups, lists, err := d.ServerGroupsAndResourcesWithContext(ctx)
	failures, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("discover the kinds that the hub serves: %w", err)
	}
	c := &catalogue{
		kinds:    map[schema.GroupVersionKind]resource{},
		versions: map[schema.GroupKind][]string{},
		failed:   map[string]error{},
	}
	for gv, failure := range failures {
		if placement.NeverPlacedGroup(gv.Group) == "" {
			c.failed[gv.Group] = fmt.Errorf("%s: %w", gv, failure)
		}
	}
	byVersion := make(map[string]*metav1.APIResourceList, len(lists))
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	for _, group := range groups {
		c.addGroup(group, byVersion)
	}
	if _, served := c.kinds[schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}]; !served {
		return nil, errors.New("discover the kinds that the hub serves: the answer lacks the core API")
	}
	slices.SortFunc(c.content, func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.gvr.Group, b.gvr.Group), cmp.Compare(a.gvr.Resource, b.gvr.Resource))
	})
	c.print = c.fingerprint()
	return c, nil
}

// addGroup adds the kinds of a group. Its versions come in the order of the server's preference.
func (c *catalogue) addGroup(group *metav1.APIGroup, byVersion map[string]*metav1.APIResourceList) {
	for _, version := range group.Versions {
		list := byVersion[version.GroupVersion]
		if list == nil {
			continue // it is among the failed ones
		}
		for i := range list.APIResources {
			if api := &list.APIResources[i]; !strings.Contains(api.Name, "/") {
				c.addResource(schema.GroupVersion{Group: group.Name, Version: version.Version}, api)
			}
		}
	}
}

func (c *catalogue) addResource(gv schema.GroupVersion, api *metav1.APIResource) {
	r := resource{
		gvr:        gv.WithResource(api.Name),
		kind:       api.Kind,
		namespaced: api.Namespaced,
		watchable:  slices.Contains(api.Verbs, "watch"),
		placeable:  slices.Contains(api.Verbs, "list") && slices.Contains(api.Verbs, "create"),
	}
	gvk := gv.WithKind(api.Kind)
	if known, twice := c.kinds[gvk]; twice && known.placeable {
		return
	}
	c.kinds[gvk] = r
	kind := r.groupKind()
	preferred := len(c.versions[kind]) == 0
	if !slices.Contains(c.versions[kind], gv.Version) {
		c.versions[kind] = append(c.versions[kind], gv.Version)
	}
	if preferred && r.namespaced && r.placeable && placement.NeverPlaced(kind) == "" {
		c.content = append(c.content, r)
	}
}

// serves tells whether a kind is served in any version.
func (c *catalogue) serves(kind schema.GroupKind) bool { return len(c.versions[kind]) > 0 }

func (c *catalogue) fingerprint() uint64 {
	sum := fnv.New64a()
	kinds := make([]string, 0, len(c.kinds))
	for gvk := range c.kinds {
		kinds = append(kinds, gvk.String())
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		fmt.Fprintln(sum, kind)
	}
	for _, group := range slices.Sorted(maps.Keys(c.failed)) {
		fmt.Fprintln(sum, "failed", group)
	}
	return sum.Sum64()
}

// resolve finds the kind of a selector. The error is a UserError, or an IncompleteError where it is not known whether
// there is such a kind.
func (c *catalogue) resolve(s placement.Selector) (resource, error) {
	r, served := c.kinds[s.Kind]
	switch kind := s.Kind.GroupKind(); {
	case !served && c.failed[s.Kind.Group] != nil:
		return r, &IncompleteError{Unread: "which kinds the API group " + s.Kind.Group + " has", Err: c.failed[s.Kind.Group]}
	case !served && c.serves(kind):
		return r, s.Mistake("the hub does not serve the kind in this version",
			"use version "+strings.Join(c.versions[kind], " or "))
	case !served:
		return r, s.Mistake("the hub does not know this kind",
			"correct group, version and kind, or install its CustomResourceDefinition on the hub, which is then noticed by itself")
	case r.namespaced && s.Namespace == "" && s.Within == "":
		return r, s.Mistake("the kind lives in namespaces, and a ClusterResourcePlacement selects only cluster-scoped objects and whole namespaces",
			"select the Namespace that the objects are in, with selectionScope NamespaceWithResourceSelectors to take no more of it than this selector finds, "+
				"or use a ResourcePlacement in that namespace")
	case !r.namespaced && s.Namespace != "":
		return r, s.Mistake("the kind is cluster-scoped, and a ResourcePlacement selects only objects of its own namespace, "+s.Namespace,
			"use a ClusterResourcePlacement")
	case !r.placeable:
		return r, s.Mistake("objects of this kind cannot be created, only read", "remove the selector")
	}
	return r, nil
}

// contentKnown returns an IncompleteError where it is not known which kinds of objects a namespace can hold.
func (c *catalogue) contentKnown() error {
	if len(c.failed) == 0 {
		return nil
	}
	group := slices.Min(slices.Collect(maps.Keys(c.failed)))
	return &IncompleteError{
		Unread: "which kinds the API group " + group + " has, of which there may be objects in the selected namespaces",
		Err:    c.failed[group],
	}
}
