package apply

import (
	"context"
	"errors"
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// lacksNamespace tells whether an object was refused because its namespace is not there.
func lacksNamespace(err error, namespace string) bool {
	var status apierrors.APIStatus
	if namespace == "" || !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	details := status.Status().Details
	return details.Kind == "namespaces" && details.Group == "" && details.Name == namespace
}

// makeNamespace makes the namespace of an object that a policy placed, where the member has none: who placed the object has the
// namespace on the hub, and nothing else would bring it here. It belongs to no Work, and so it stays whatever becomes of the object:
// others may have come to use it.
func (p *pass) makeNamespace(ctx context.Context, name string) error {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	namespace.SetName(name)
	namespace.SetAnnotations(map[string]string{placementv1.AnnotationNamespaceMadeFor: p.work.Labels[placementv1.LabelParentObject]})
	_, err := p.resource(namespaceResource, "").Create(ctx, namespace, metav1.CreateOptions{FieldManager: placementv1.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace %s, which the member does not have: %w", name, err)
	}
	return nil
}
