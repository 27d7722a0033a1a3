package selection

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	// pageSize is how many objects are read at a time.
	pageSize = 250
	// attempts is how often a list that grew too old between two pages is begun anew.
	attempts = 3
)

// get reads one object live. It returns nil for an object that is confirmed not to exist.
func (s *Selector) get(ctx context.Context, r resource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := s.in(r, namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case confirmedAbsent(err, name):
		return nil, nil //nolint:nilnil // confirmed to be absent, which is no error
	case err != nil:
		return nil, &IncompleteError{Unread: fmt.Sprintf("%s %s", r.kind, name), Err: err}
	}
	object.SetGroupVersionKind(r.gvr.GroupVersion().WithKind(r.kind))
	return object, nil
}

// in reads a resource in a namespace; "" stands for all, or none.
func (s *Selector) in(r resource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.Client.Resource(r.gvr)
	}
	return s.Client.Resource(r.gvr).Namespace(namespace)
}

// list reads live, page by page, what a resource holds in a namespace ("" for a cluster-scoped resource), and gives
// keep each object. All pages show the same moment.
func (s *Selector) list(ctx context.Context, r resource, namespace, labels string) ([]unstructured.Unstructured, error) {
	what := fmt.Sprintf("the %s objects", r.gvr.GroupResource())
	if namespace != "" {
		what += " in namespace " + namespace
	}
	for attempt := 1; ; attempt++ {
		objects, err := s.listPages(ctx, r, namespace, labels)
		if err == nil {
			return objects, nil
		}
		if !apierrors.IsResourceExpired(err) || attempt == attempts {
			return nil, &IncompleteError{Unread: what, Err: err}
		}
	}
}

func (s *Selector) listPages(ctx context.Context, r resource, namespace, labels string) ([]unstructured.Unstructured, error) {
	client := s.in(r, namespace)
	gvk := r.gvr.GroupVersion().WithKind(r.kind)
	var objects []unstructured.Unstructured
	// No resourceVersion: the answer is at least as new as anything that anybody has seen.
	options := metav1.ListOptions{LabelSelector: labels, Limit: pageSize}
	for {
		page, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			page.Items[i].SetGroupVersionKind(gvk)
		}
		objects = append(objects, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
}
