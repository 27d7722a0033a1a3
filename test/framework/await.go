package framework

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// Patience is how long a test waits for one thing. It says nothing about speed: a loaded machine may take long.
	Patience = 3 * time.Minute
	// retryPeriod is how often a server that does not answer is asked again: tests kill servers on purpose.
	retryPeriod = 200 * time.Millisecond
)

// Await waits by a watch until object exists and done says so of it, and leaves what it saw last in object. In the end it
// fails the test, with what was last seen.
func Await[T client.Object](t testing.TB, c client.WithWatch, object T, what string, done func(T) bool) {
	t.Helper()
	if err := AwaitE(t.Context(), c, object, func(exists bool) bool { return exists && done(object) }); err != nil {
		t.Fatalf("wait until %T %s %s: %v\nlast seen: %+v", object, client.ObjectKeyFromObject(object), what, err, object)
	}
}

// AwaitGone waits by a watch until object does not exist.
func AwaitGone[T client.Object](t testing.TB, c client.WithWatch, object T) {
	t.Helper()
	if err := AwaitE(t.Context(), c, object, func(exists bool) bool { return !exists }); err != nil {
		t.Fatalf("wait until %T %s is gone: %v\nlast seen: %+v", object, client.ObjectKeyFromObject(object), err, object)
	}
}

// AwaitE reads object, and again on every change of it, until done. A server that is down is waited for.
func AwaitE(ctx context.Context, c client.WithWatch, object client.Object, done func(exists bool) bool) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	key := client.ObjectKeyFromObject(object)
	var last error
	for ctx.Err() == nil {
		err := c.Get(ctx, key, object)
		if client.IgnoreNotFound(err) == nil {
			if done(err == nil) {
				return nil
			}
			if err = nextChange(ctx, c, object, key, err == nil); err == nil {
				continue
			}
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(retryPeriod):
		}
	}
	return fmt.Errorf("%w; last answer: %w", ctx.Err(), last)
}

// nextChange returns when object, which was just read, has changed, or when it is worth reading it again.
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
	case <-w.ResultChan():
	}
	return nil
}

// CleanupContext is a context for what a test does after its end, when its own context is cancelled.
func CleanupContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	t.Cleanup(cancel)
	return ctx
}
