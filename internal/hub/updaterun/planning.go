package updaterun

import (
	"context"
	"fmt"
	"strconv"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// plan plans a run. What the cache says is enough to go on waiting. Anything that is final, a plan or a failure, is made
// from live reads, which show all that was written before the run was seen: labels that were set just before, for example.
// Where the last attempt came to nothing it is not repeated before it is due; after an error there is no plan until then.
func (c *Controller) plan(ctx context.Context, key placement.Key, run placementv1.UpdateRunObject, last *attempt) (*engine.Plan, time.Duration, error) {
	in, err := c.planInput(ctx, c.Client, key, run)
	if err != nil {
		return nil, 0, err
	}
	if plan := engine.MakePlan(in); plan.Verdict == engine.Pending {
		return &plan, 0, nil
	}
	of := basisOf(run, in.Placement)
	if wait := last.wait(of, c.Clock.Now()); wait > 0 {
		if last.message == "" {
			return nil, wait, nil
		}
		return &engine.Plan{Verdict: engine.Pending, Message: last.message}, wait, nil
	}
	plan, again, err := c.planLive(ctx, key, run)
	pause := last.next()
	*last = attempt{}
	switch {
	case overrides.IsPending(err): // it takes a moment mostly, and may take for ever
		plan = &engine.Plan{Verdict: engine.Pending, Message: err.Error()}
		*last = attempt{of: of, due: c.Clock.Now().Add(pause), message: plan.Message, pause: pause}
		return plan, pause, nil
	case err != nil && !isStale(err):
		*last = attempt{of: of, due: c.Clock.Now().Add(failedRetry)}
	case err == nil && again == unreadRetry:
		*last = attempt{of: of, due: c.Clock.Now().Add(again), message: plan.Message}
	}
	return plan, again, err
}

// planLive plans a run from what the API server says.
func (c *Controller) planLive(ctx context.Context, key placement.Key, run placementv1.UpdateRunObject) (*engine.Plan, time.Duration, error) {
	in, err := c.planInput(ctx, c.APIReader, key, run)
	if err != nil {
		return nil, 0, err
	}
	plan := engine.MakePlan(in)
	var again time.Duration
	switch plan.Verdict {
	case engine.NeedsSnapshot:
		if in.Snapshot, again, err = c.snapshot(ctx, key, run, in.Placement); err != nil {
			return nil, 0, err
		}
		if err := c.overridesOf(ctx, &in); err != nil {
			return nil, 0, err
		}
		plan = engine.MakePlan(in)
	case engine.Pending: // what the cache has not seen yet brings no event if it has, by now
		again = enqueue.Stale
	case engine.Failed, engine.Planned:
	}
	return &plan, again, nil
}

// planInput reads what a plan is made from, but for the snapshot.
func (c *Controller) planInput(ctx context.Context, r client.Reader, key placement.Key, run placementv1.UpdateRunObject) (engine.PlanInput, error) {
	in := engine.PlanInput{Kinds: c.Kinds, Run: run}
	var err error
	if in.Placement, err = c.placement(ctx, r, key); err != nil {
		return in, err
	}
	strategy := c.Kinds.NewUpdateStrategy()
	name := client.ObjectKey{Namespace: run.GetNamespace(), Name: run.UpdateRunSpec().StagedUpdateStrategyName}
	switch err := r.Get(ctx, name, strategy); {
	case err == nil:
		in.Strategy = strategy.UpdateStrategySpec()
	case !apierrors.IsNotFound(err):
		return in, fmt.Errorf("read %s %s: %w", c.Kinds.UpdateStrategy, name, err)
	}
	if in.Placement == nil {
		return in, nil
	}
	if in.Policies, err = listing.PolicySnapshots(ctx, r, c.Kinds, key, listing.Shared); err != nil {
		return in, err
	}
	if in.Bindings, err = listing.Bindings(ctx, r, &c.Kinds.Carriage, key, listing.Shared); err != nil {
		return in, err
	}
	clusters, err := c.clusters(ctx, r)
	in.Fleet = schedule.NewFleet(clusters)
	return in, err
}

// snapshot finds the snapshot that a run is bound to, or has one made of what the placement selects now.
func (c *Controller) snapshot(ctx context.Context, key placement.Key, run placementv1.UpdateRunObject, p placementv1.PlacementObject) (*engine.Snapshot, time.Duration, error) {
	if index := engine.SnapshotIndex(run); index != "" {
		s, err := c.find(ctx, key, p, index)
		return s, 0, err
	}
	index, err := c.Snapshots.Ensure(ctx, p)
	switch {
	case err == nil:
		return &engine.Snapshot{Index: index}, 0, nil
	case placement.IsUserError(err):
		return &engine.Snapshot{Refused: fmt.Sprintf("no resource snapshot can be made of what %s %q selects: %v", c.Kinds.Placement, key.Name, err)}, 0, nil
	case selection.IsIncomplete(err):
		return &engine.Snapshot{Missing: fmt.Sprintf("what %s %q selects is not known: %v", c.Kinds.Placement, key.Name, err)}, unreadRetry, nil
	default:
		return nil, 0, fmt.Errorf("make a resource snapshot of %s %s: %w", c.Kinds.Placement, key, err)
	}
}

// overridesOf finds the overrides for a plan whose snapshot is known. Those that were written before the run was seen are
// waited for.
func (c *Controller) overridesOf(ctx context.Context, in *engine.PlanInput) error {
	if in.Snapshot.Refused != "" || in.Snapshot.Missing != "" {
		return nil
	}
	var err error
	if in.Overrides, err = c.Overrides.Match(ctx, c.APIReader, in.Placement, in.Snapshot.Index); err != nil {
		return fmt.Errorf("find the overrides of %s %s: %w", c.Kinds.Placement, client.ObjectKeyFromObject(in.Placement), err)
	}
	return nil
}

// find looks a snapshot up, without its content.
func (c *Controller) find(ctx context.Context, key placement.Key, p placementv1.PlacementObject, index string) (*engine.Snapshot, error) {
	number, err := strconv.Atoi(index)
	if err != nil {
		return &engine.Snapshot{Refused: fmt.Sprintf("invalid resource snapshot index %q: %v", index, err)}, nil
	}
	gvk, err := c.Client.GroupVersionKindFor(c.Kinds.NewResourceSnapshot())
	if err != nil {
		return nil, fmt.Errorf("find the kind of a resource snapshot: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = c.APIReader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{
		placementv1.LabelParentPlacement: key.Name, placementv1.LabelResourceIndex: strconv.Itoa(number)})
	if err != nil {
		return nil, fmt.Errorf("look for resource snapshot %s of %s %s: %w", index, c.Kinds.Placement, key, err)
	}
	var objects []*metav1.PartialObjectMetadata
	for i := range list.Items {
		o := &list.Items[i]
		if o.GetDeletionTimestamp().IsZero() && o.GetAnnotations()[placementv1.AnnotationPlacementUID] == string(p.GetUID()) {
			objects = append(objects, o)
		}
	}
	for _, g := range snapshot.Groups(objects) {
		if g.Complete() {
			return &engine.Snapshot{Index: g.Index}, nil
		}
		if g.Master == "" {
			continue // being made, or being removed
		}
		return &engine.Snapshot{Refused: fmt.Sprintf("resource snapshot %d of %s %q is damaged: it has %d of %d parts; choose another index",
			number, c.Kinds.Placement, key.Name, 1+len(g.Parts), g.Count)}, nil
	}
	return &engine.Snapshot{Refused: fmt.Sprintf("%s %q has no resource snapshot with index %d; `kubectl get %s` shows which were rolled out, "+
		"and a run without resourceSnapshotIndex makes a new one", c.Kinds.Placement, key.Name, number, plural(c.Kinds.UpdateRun))}, nil
}
