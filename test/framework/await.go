package framework

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fleetwright/fleetwright/internal/await"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	var last error
	for ctx.Err() == nil {
		err := await.Object(ctx, c, object, func(exists bool) (bool, error) { return done(exists), nil })
		if err == nil {
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(retryPeriod):
		}
	}
	return fmt.Errorf("%w; last answer: %w", ctx.Err(), last)
}

// CleanupContext is a context for what a test does after its end, when its own context is cancelled.
func CleanupContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	t.Cleanup(cancel)
	return ctx
}
