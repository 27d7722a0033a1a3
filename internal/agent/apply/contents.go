package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

const (
	// settling is how long the strangers in a namespace that is to go, or of a definition, may stay the same before it is
	// left to them. Finalizers and the garbage collector need a while.
	settling = 20 * time.Second
	// atMost is how long they may take in all.
	atMost = 5 * time.Minute
	// page is how many objects are read at once.
	page = 500
)

var (
	namespaces     = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// strangers are what would go with a namespace or a definition and must not: nobody placed it, or somebody else did.
type strangers struct {
	names        string
	since, first time.Time
}

// hold is what keeps an object from being deleted: something to wait for, or something that will stay.
type hold struct{ wait, forGood string }

// heldBy tells what keeps an object, which is ours to remove, from being deleted. A namespace takes all that is in it along,
// and a definition all objects of its kind: neither goes while it would take along what was not placed.
func (p *pass) heldBy(ctx context.Context, live *unstructured.Unstructured, key objectKey) (hold, error) {
	var found []content
	var err error
	switch key.GroupKind {
	case namespaces:
		found, err = p.contentsOf(ctx, key.name)
	case definitionKind:
		found, err = p.objectsOf(ctx, live)
	default:
		return hold{}, nil
	}
	var names []string
	if err == nil {
		names, err = p.outsiders(ctx, found)
	}
	if err != nil {
		if p.memory.strangers[key] == nil {
			p.memory.strangers[key] = &strangers{first: p.Clock.Now()}
		}
		if p.Clock.Now().Sub(p.memory.strangers[key].first) < atMost {
			return hold{}, fmt.Errorf("find out what would go with %s: %w", key, err)
		}
		return hold{forGood: fmt.Sprintf("it could not be found out what would go with it (%v)", err)}, nil
	}
	return p.wait(key, names), nil
}

// wait tells whether to wait for strangers to go.
func (p *pass) wait(key objectKey, names []string) hold {
	if len(names) == 0 {
		return hold{}
	}
	now, text := p.Clock.Now(), few(names)
	s := p.memory.strangers[key]
	if s == nil {
		s = &strangers{first: now}
		p.memory.strangers[key] = s
	}
	if s.names != text {
		s.names, s.since = text, now
	}
	if now.Sub(s.since) < p.settling && now.Sub(s.first) < atMost {
		return hold{wait: "waits until this has gone: " + text}
	}
	return hold{forGood: "with it would go: " + text}
}

// content is an object that would go with another one.
type content struct {
	schema.GroupResource
	metav1.PartialObjectMetadata
}

// contentsOf lists all that is in a namespace.
func (a *Applier) contentsOf(ctx context.Context, namespace string) ([]content, error) {
	resources, err := a.contentResources(ctx)
	if err != nil {
		return nil, err
	}
	found, failed := make([][]content, len(resources)), make([]error, len(resources))
	group := limited(parallel)
	for i, gvr := range resources {
		group.do(func() { found[i], failed[i] = a.heads(ctx, gvr, namespace) })
	}
	group.wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(found...), nil
}

// objectsOf lists all objects of a definition's kind.
func (a *Applier) objectsOf(ctx context.Context, definition *unstructured.Unstructured) ([]content, error) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			return a.heads(ctx, schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, "")
		}
	}
	return nil, errors.New("its definition serves no version, in which its objects could be listed")
}

// heads lists the metadata of objects. A resource that is not served has none.
func (a *Applier) heads(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]content, error) {
	var found []content
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := a.metadata.Resource(gvr).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvr.GroupResource(), err)
		}
		for i := range list.Items {
			list.Items[i].ManagedFields = nil
			found = append(found, content{gvr.GroupResource(), list.Items[i]})
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// passing are API groups of which nothing in a namespace is anybody's work.
var passing = []string{"events.k8s.io", "coordination.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}

// contentResources are the resources that can be in a namespace. If the member cannot name them all, nothing is known of
// what is in one.
func (a *Applier) contentResources(ctx context.Context) ([]schema.GroupVersionResource, error) {
	within, stop := context.WithTimeout(ctx, discoveryWithin)
	defer stop()
	lists, err := discovery.ServerPreferredNamespacedResourcesWithContext(within, a.discover)
	if failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err); partly {
		err = nil
		for gv, why := range failed {
			if !slices.Contains(passing, gv.Group) {
				err = fmt.Errorf("the member cannot say what it serves of %s: %w", gv, why)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists)
	byResource, err := discovery.GroupVersionResources(lists)
	if err != nil {
		return nil, fmt.Errorf("read what the member serves: %w", err)
	}
	var resources []schema.GroupVersionResource
	for gvr := range byResource {
		if !slices.Contains(passing, gvr.Group) && gvr.GroupResource() != (schema.GroupResource{Resource: "events"}) && !strings.Contains(gvr.Resource, "/") {
			resources = append(resources, gvr)
		}
	}
	return resources, nil
}

// outsiders names those objects that must not go along, and says of each why.
func (p *pass) outsiders(ctx context.Context, found []content) ([]string, error) {
	// What nobody in the list owns may be owned by something elsewhere, or by something that is gone.
	known := map[types.UID]bool{}
	for i := range found {
		known[found[i].UID] = true
	}
	exists := map[types.UID]bool{}
	for i := range found {
		for _, owner := range found[i].OwnerReferences {
			if _, asked := exists[owner.UID]; asked || known[owner.UID] {
				continue
			}
			there, err := p.ownerExists(ctx, owner, found[i].Namespace)
			if err != nil {
				return nil, err
			}
			exists[owner.UID] = there
		}
	}
	return outsiders(found, p.claims(exists), exists), nil
}

// claims returns what tells, of an object that an AppliedWork owns, who has it, if it stays: a Work wants it, or the AppliedWork
// is one whose Work the hub has forgotten. When the cluster leaves, it is that of another hub, or of a former name, which stays.
func (p *pass) claims(exists map[types.UID]bool) func(owner metav1.OwnerReference, o *content) string {
	return func(owner metav1.OwnerReference, o *content) string {
		if owner.Name == p.self.name && p.self.deleting {
			return ""
		}
		w, forgotten := p.works[owner.Name], "placed by what is not known to this hub, AppliedWork "+owner.Name
		switch {
		case p.leaving != nil && exists[owner.UID] && !p.leaving.Has(owner.Name), p.leaving == nil && w == nil && exists[owner.UID]:
			return forgotten
		case p.leaving != nil || w == nil:
			return ""
		}
		for key := range w.objects {
			if key.namespace == o.Namespace && key.name == o.Name && key.Group == o.Group && w.wants(key) {
				return "placed by " + w.placement
			}
		}
		return ""
	}
}

// ownerExists tells whether the owner of an object in a namespace is there.
func (p *pass) ownerExists(ctx context.Context, owner metav1.OwnerReference, namespace string) (bool, error) {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false, nil //nolint:nilerr // no API server serves it
	}
	if r, err := p.kinds.find(ctx, gv.WithKind(owner.Kind)); err == nil {
		if !r.namespaced {
			namespace = ""
		}
		live, err := p.metadata.Resource(r.GroupVersionResource).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if unserved(err) {
			p.kinds.forget()
			return true, nil // in the version in which it is named it cannot be asked for: take it for somebody's
		}
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %s %s: %w", owner.Kind, owner.Name, err)
		}
		return live.UID == owner.UID, nil
	}
	return true, nil // of a kind that cannot be asked for: take it for somebody's
}

// outsiders are the objects that must not go along: those that a Work which stays has, and those that nothing of ours owns.
// One whose owners are all gone is about to be collected; one whose owner is in the list is what its owner is. claims
// tells of objects that an AppliedWork owns who has them, exists of owners that are not in the list.
func outsiders(found []content, claims func(metav1.OwnerReference, *content) string, exists map[types.UID]bool) []string {
	byUID := map[types.UID]*content{}
	serves := map[string]bool{} // names of Services
	for i := range found {
		byUID[found[i].UID] = &found[i]
		serves[found[i].Name] = serves[found[i].Name] || found[i].GroupResource == schema.GroupResource{Resource: "services"}
	}
	const stranger = "not placed"
	var outside func(o *content, depth int) string // why it stays; empty for one that goes
	outside = func(o *content, depth int) string {
		if o.DeletionTimestamp != nil {
			return ""
		}
		owned := false
		for _, owner := range o.OwnerReferences {
			above := byUID[owner.UID]
			switch {
			case placement.IsAppliedWork(owner):
				if who := claims(owner, o); who != "" {
					return who
				}
			case above != nil && depth < 20:
				if why := outside(above, depth+1); why != "" {
					return why
				}
			case exists[owner.UID]:
				return stranger
			}
			owned = true
		}
		if owned {
			return ""
		}
		return stranger
	}
	var names []string
	for i := range found {
		o := &found[i]
		if inEveryNamespace(o) || (o.GroupResource == schema.GroupResource{Resource: "endpoints"} && serves[o.Name]) {
			continue
		}
		if why := outside(o, 0); why != "" {
			names = append(names, o.Resource+" "+o.Name+" ("+why+")")
		}
	}
	slices.Sort(names)
	return names
}

// inEveryNamespace tells whether an object is one that Kubernetes itself puts into namespaces.
func inEveryNamespace(o *content) bool {
	switch o.GroupResource {
	case schema.GroupResource{Resource: "configmaps"}:
		return o.Name == "kube-root-ca.crt"
	case schema.GroupResource{Resource: "serviceaccounts"}:
		return o.Name == "default"
	case schema.GroupResource{Resource: "secrets"}:
		return o.Annotations["kubernetes.io/service-account.name"] == "default"
	}
	return false
}
