package run

import (
	"context"
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long the hub has to answer. It does at once where it works.
const patience = time.Minute

// await watches a run until something is true of it.
func await(ctx context.Context, hub client.WithWatch, run placementv1.UpdateRunObject, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		switch err := hub.Get(ctx, client.ObjectKeyFromObject(run), run); {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("update run %q: %w", run.GetName(), errGone)
		case ctx.Err() != nil:
			return unanswered(run)
		case err != nil:
			return fmt.Errorf("read update run %q: %w", run.GetName(), err)
		case done():
			return nil
		}
		if err := nextChange(ctx, hub, run); err != nil {
			return err
		}
	}
}

// nextChange returns when a run may be another than the one that was read.
func nextChange(ctx context.Context, hub client.WithWatch, run placementv1.UpdateRunObject) error {
	kinds := placement.ClusterKinds()
	if run.GetNamespace() != "" {
		kinds = placement.NamespacedKinds()
	}
	list, ok := kinds.NewUpdateRunList().(client.ObjectList)
	if !ok {
		return fmt.Errorf("the list of %s objects is none", kinds.UpdateRun)
	}
	w, err := hub.Watch(ctx, list, client.InNamespace(run.GetNamespace()), client.MatchingFields{"metadata.name": run.GetName()})
	if ctx.Err() != nil {
		return unanswered(run)
	}
	if err != nil {
		return fmt.Errorf("watch update run %q: %w", run.GetName(), err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return unanswered(run)
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			now, ok := event.Object.(placementv1.UpdateRunObject)
			if !ok || event.Type == watch.Deleted || now.GetResourceVersion() != run.GetResourceVersion() {
				return nil
			}
		}
	}
}

func unanswered(run placementv1.UpdateRunObject) error {
	return fmt.Errorf("what was asked of update run %q is on record, but the hub has not answered within %s; is it running? `kubectl get` the run to see its status",
		run.GetName(), patience)
}
