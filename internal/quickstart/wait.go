package quickstart

import (
	"context"
	"errors"
	"time"

	"github.com/fleetwright/fleetwright/internal/await"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long one thing is waited for. It is generous: a cold machine with two cores starts a dozen processes.
const patience = 3 * time.Minute

// waitUntilFound waits until object exists, and reads it.
func waitUntilFound(ctx context.Context, c client.WithWatch, object client.Object) error {
	return waitUntil(ctx, c, object, func() bool { return true })
}

// waitUntil waits until object exists and done says so of what was read into it.
func waitUntil(ctx context.Context, c client.WithWatch, object client.Object, done func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it took more than "+patience.String()))
	defer cancel()
	return await.Object(ctx, c, object, func(exists bool) (bool, error) { return exists && done(), nil })
}
