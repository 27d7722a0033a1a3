// Package await waits for objects by watches, without polling.
package await

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Object reads an object, and again on every change of it, until done says so or returns an error, which is returned. done is
// told whether the object exists; where it does, object is as it was read last. What the API server answers otherwise is an
// error, and so is the end of ctx.
func Object(ctx context.Context, c client.WithWatch, object client.Object, done func(exists bool) (bool, error)) error {
	key := client.ObjectKeyFromObject(object)
	for {
		err := c.Get(ctx, key, object)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read %T %s: %w", object, key, err)
		}
		if ended, failed := done(err == nil); ended || failed != nil {
			return failed
		}
		if err := nextChange(ctx, c, object, key, err == nil); err != nil {
			return err
		}
	}
}

// nextChange returns when an object, which was just read, has changed, or when it is worth reading it again.
func nextChange(ctx context.Context, c client.WithWatch, object client.Object, key client.ObjectKey, exists bool) error {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", object, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	version := "" // an object that is not there: a watch from now on starts with what exists by then
	if exists {
		version = object.GetResourceVersion()
	}
	w, err := c.Watch(ctx, list, &client.ListOptions{
		Namespace:     key.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name),
		Raw:           &metav1.ListOptions{ResourceVersion: version},
	})
	if err != nil {
		return fmt.Errorf("watch %s %s: %w", gvk.Kind, key, err)
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for %s %s: %w", gvk.Kind, key, context.Cause(ctx))
	case <-w.ResultChan():
		return nil
	}
}
