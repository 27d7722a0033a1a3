package updaterun

import (
	"context"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/fleetwright/fleetwright/internal/schedule"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	// indexPlacement finds runs by the placement that they name.
	indexPlacement = "spec.placementName"
	// indexUnfinished finds the runs that may still do something, under the value "true".
	indexUnfinished = "fleetwright.io/unfinished"
)

func (c *Controller) index(indexer client.FieldIndexer) error {
	indexes := map[string]func(placementv1.UpdateRunObject) []string{
		indexPlacement: func(run placementv1.UpdateRunObject) []string { return []string{run.UpdateRunSpec().PlacementName} },
		indexUnfinished: func(run placementv1.UpdateRunObject) []string {
			if engine.Finished(run.UpdateRunStatus()) {
				return nil
			}
			return []string{"true"}
		},
	}
	for field, values := range indexes {
		err := indexer.IndexField(context.Background(), c.Kinds.NewUpdateRun(), field, func(o client.Object) []string {
			run, ok := o.(placementv1.UpdateRunObject)
			if !ok {
				return nil
			}
			return values(run)
		})
		if err != nil {
			return fmt.Errorf("index %s objects by %s: %w", c.Kinds.UpdateRun, field, err)
		}
	}
	return nil
}

// watch watches all that a decision depends on. A run's own status is part of that: what one pass records lets the next
// one act.
func (c *Controller) watch(b *ctrl.Builder) *ctrl.Builder {
	return b.
		Watches(c.Kinds.NewUpdateRun(), handler.EnqueueRequestsFromMapFunc(placementOf)).
		Watches(c.Kinds.NewApprovalRequest(), handler.EnqueueRequestsFromMapFunc(c.placementOfRequest)).
		Watches(c.Kinds.NewPlacement(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(c.Kinds.NewPolicySnapshot(), enqueue.Placement()).
		Watches(c.Kinds.NewBinding(), enqueue.Placement()).
		Watches(c.Kinds.NewUpdateStrategy(), handler.EnqueueRequestsFromMapFunc(c.placementsOfStrategy), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(c.placementsOnTheirWay), whenMemberMatters())
}

// placementOf maps a run to its placement.
func placementOf(_ context.Context, o client.Object) []ctrl.Request {
	run, ok := o.(placementv1.UpdateRunObject)
	if !ok {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: run.GetNamespace(), Name: run.UpdateRunSpec().PlacementName}}}
}

// placementOfRequest maps an approval request to the placement of the run that it names.
func (c *Controller) placementOfRequest(ctx context.Context, o client.Object) []ctrl.Request {
	request, ok := o.(placementv1.ApprovalRequestObject)
	if !ok {
		return nil
	}
	run := c.Kinds.NewUpdateRun()
	name := client.ObjectKey{Namespace: request.GetNamespace(), Name: request.ApprovalRequestSpec().TargetUpdateRun}
	if err := c.Client.Get(ctx, name, run); err != nil {
		return nil // a run that comes later looks for its requests itself
	}
	return placementOf(ctx, run)
}

// placementsOfStrategy maps a strategy to the placements of the runs that may still be planned by it.
func (c *Controller) placementsOfStrategy(ctx context.Context, o client.Object) []ctrl.Request {
	return c.placementsOf(ctx, o.GetNamespace(), func(run placementv1.UpdateRunObject) bool {
		return run.UpdateRunSpec().StagedUpdateStrategyName == o.GetName() && run.UpdateRunStatus().StartedTime == nil
	})
}

// placementsOnTheirWay maps a member to the placements that have unfinished runs.
func (c *Controller) placementsOnTheirWay(ctx context.Context, _ client.Object) []ctrl.Request {
	return c.placementsOf(ctx, "", func(placementv1.UpdateRunObject) bool { return true })
}

// placementsOf returns the placements of the unfinished runs that are chosen.
func (c *Controller) placementsOf(ctx context.Context, namespace string, choose func(placementv1.UpdateRunObject) bool) []ctrl.Request {
	runs, err := listing.UpdateRuns(ctx, c.Client, c.Kinds, client.InNamespace(namespace), client.MatchingFields{indexUnfinished: "true"}, listing.Shared)
	if err != nil {
		log.FromContext(ctx).Error(err, "A change could not be passed on to the update runs")
		return nil
	}
	var requests []ctrl.Request
	for _, run := range runs {
		if choose(run) {
			requests = append(requests, placementOf(ctx, run)...)
		}
	}
	return requests
}

// whenMemberMatters lets pass changes of a member that a plan or a message could depend on, and no heartbeats.
func whenMemberMatters() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(*clusterv1.MemberCluster)
			after, okAfter := e.ObjectNew.(*clusterv1.MemberCluster)
			if !okBefore || !okAfter {
				return false
			}
			was, is := schedule.Observe(before), schedule.Observe(after)
			return !was.SameStanding(&is)
		},
	})
}
