package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// strangers names what is in a namespace and was not placed by the AppliedWork with that UID, is not owned by what was,
// directly or through others, and is not what every namespace has. What is about to be collected is a stranger too, for as
// long as it is there.
func (a *Applier) strangers(ctx context.Context, namespace string, owner types.UID) ([]string, error) {
	client, err := metadata.NewForConfig(a.Member)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client for the member: %w", err)
	}
	resources, err := a.contentResources()
	if err != nil {
		return nil, err
	}
	var all []metav1.PartialObjectMetadata
	for _, gvr := range resources {
		list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s in namespace %s: %w", gvr.Resource, namespace, err)
		}
		for i := range list.Items {
			if list.Items[i].Kind == "" || strings.HasPrefix(list.Items[i].Kind, "PartialObjectMetadata") {
				list.Items[i].Kind = gvr.Resource
			}
			if !everywhere(gvr.GroupResource(), &list.Items[i]) {
				all = append(all, list.Items[i])
			}
		}
	}
	return outsiders(all, owner), nil
}

// contentResources are the resources that can be in a namespace. If the member cannot name them all, nothing is known of
// what is in one.
func (a *Applier) contentResources() ([]schema.GroupVersionResource, error) {
	lists, err := a.discover.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("find out what may be in a namespace: %w", err)
	}
	lists = discovery.FilteredBy(discovery.ResourcePredicateFunc(func(_ string, r *metav1.APIResource) bool {
		return r.Namespaced && slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/")
	}), lists)
	byResource, err := discovery.GroupVersionResources(lists)
	if err != nil {
		return nil, fmt.Errorf("find out what may be in a namespace: %w", err)
	}
	var resources []schema.GroupVersionResource
	for gvr := range byResource {
		switch {
		case gvr.Resource == "events", gvr.Group == "coordination.k8s.io", gvr.Group == "metrics.k8s.io":
		default:
			resources = append(resources, gvr)
		}
	}
	return resources, nil
}

// everywhere tells whether an object is one that Kubernetes itself puts into namespaces.
func everywhere(resource schema.GroupResource, o *metav1.PartialObjectMetadata) bool {
	switch resource {
	case schema.GroupResource{Resource: "configmaps"}:
		return o.Name == "kube-root-ca.crt"
	case schema.GroupResource{Resource: "serviceaccounts"}:
		return o.Name == "default"
	case schema.GroupResource{Resource: "secrets"}:
		return o.Annotations["kubernetes.io/service-account.name"] == "default"
	case schema.GroupResource{Resource: "endpoints"}:
		return true // of a Service: gone with it
	}
	return false
}

// outsiders are the objects that nothing of the AppliedWork with that UID owns, directly or through others in the
// namespace. An owner that is not among them, and be it because it is cluster-scoped, is not known to be ours.
func outsiders(all []metav1.PartialObjectMetadata, owner types.UID) []string {
	byUID := map[types.UID]*metav1.PartialObjectMetadata{}
	for i := range all {
		byUID[all[i].UID] = &all[i]
	}
	var outside func(o *metav1.PartialObjectMetadata, depth int) bool
	outside = func(o *metav1.PartialObjectMetadata, depth int) bool {
		if len(o.OwnerReferences) == 0 || depth > 10 {
			return true
		}
		for _, reference := range o.OwnerReferences {
			if reference.UID == owner {
				continue
			}
			if above := byUID[reference.UID]; above == nil || outside(above, depth+1) {
				return true
			}
		}
		return false
	}
	var names []string
	for i := range all {
		if o := &all[i]; outside(o, 0) {
			names = append(names, o.Kind+" "+o.Name)
		}
	}
	slices.Sort(names)
	return names
}
