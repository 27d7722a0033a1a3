package quickstart

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long one thing is waited for. It is generous: a cold machine with two cores starts a dozen processes.
const patience = 3 * time.Minute

// waitUntilFound waits until object exists, and reads it.
func waitUntilFound(ctx context.Context, c client.Client, object client.Object) error {
	return waitUntil(ctx, c, object, func() bool { return true })
}

// waitUntil waits until object exists and done says so of what was read into it.
func waitUntil(ctx context.Context, c client.Client, object client.Object, done func() bool) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if last != nil {
			return false, client.IgnoreNotFound(last)
		}
		return done(), nil
	})
	if err != nil && last != nil && !apierrors.IsNotFound(last) {
		return fmt.Errorf("%w (last answer: %w)", err, last)
	}
	return err
}
