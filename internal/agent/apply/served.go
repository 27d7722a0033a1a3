package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// unserved tells whether an answer says that the member does not serve the resource that was asked for, in that version.
// Of an object it says nothing. The answer that an object is not there names the object.
func unserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// isGone tells whether an answer says that an object is not there.
func isGone(err error) bool { return apierrors.IsNotFound(err) && !unserved(err) }

// readRecorded reads an object that was recorded, and returns what to write it with. Where the member has dropped the
// version of the record, it reads in another one. There is no object where the member does not have it, or does not know
// its kind in any version.
func (a *Applier) readRecorded(ctx context.Context, id *placementv1.WorkResourceIdentifier) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	key := keyOfID(id)
	gvr, _ := resourceOf(id)
	client := a.resource(gvr, key.namespace)
	live, err := client.Get(ctx, key.name, metav1.GetOptions{})
	if unserved(err) {
		client, live, err = a.readElsewhere(ctx, gvr, key)
	}
	if isGone(err) {
		return client, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", key, err)
	}
	return client, live, nil
}

// readElsewhere reads an object of whose kind the member does not serve the version of gvr any more.
func (a *Applier) readElsewhere(ctx context.Context, gvr schema.GroupVersionResource, key objectKey) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	a.kinds.forget()
	r, err := a.kinds.served(ctx, key.GroupKind)
	if errors.Is(err, errUnknownKind) {
		return nil, nil, a.knownStill(ctx, gvr.GroupResource())
	}
	if err != nil {
		return nil, nil, err
	}
	client := a.resource(r.GroupVersionResource, key.namespace)
	live, err := client.Get(ctx, key.name, metav1.GetOptions{})
	return client, live, err
}

// knownStill returns an error if the member has the definition of a resource that it does not serve: objects that nobody
// can read may be there, and come to light once it is served again. A resource without one has no objects.
func (a *Applier) knownStill(ctx context.Context, resource schema.GroupResource) error {
	_, err := a.member.Resource(definitions).Get(ctx, resource.String(), metav1.GetOptions{})
	switch {
	case err == nil:
		return fmt.Errorf("the member serves %s in no version, but has its CustomResourceDefinition: have that serve a version, or delete it", resource)
	case isGone(err):
		return apierrors.NewNotFound(resource, resource.Resource)
	default:
		return fmt.Errorf("find out whether the member knows %s: %w", resource, err)
	}
}
