package run

import (
	"context"
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/await"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long the hub has to answer. It does at once where it works.
const patience = time.Minute

// awaitRun watches a run until something is true of it.
func awaitRun(ctx context.Context, hub client.WithWatch, run placementv1.UpdateRunObject, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := await.Object(ctx, hub, run, func(exists bool) (bool, error) {
		if !exists {
			return false, fmt.Errorf("update run %q: %w", run.GetName(), errGone)
		}
		return done(), nil
	})
	if err != nil && ctx.Err() != nil {
		return unanswered(run)
	}
	return err
}

func unanswered(run placementv1.UpdateRunObject) error {
	return fmt.Errorf("what was asked of update run %q is on record, but the hub has not answered within %s; is it running? `kubectl get` the run to see its status",
		run.GetName(), patience)
}
