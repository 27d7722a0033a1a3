// Package updaterun carries out what package rollout/updaterun decides: it observes the runs of a placement and all that
// they depend on, and writes each decision in the order that makes a crash harmless. It decides nothing itself.
//
// All runs of a placement are looked at together, under the placement's key, so that no two of them are ever moved at once.
package updaterun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// workers is how many placements' runs are looked at at once.
	workers = 8
	// writers is how many bindings of one placement are written at once.
	writers = 16
	// unreadRetry is when to look again at what could not be read; nothing tells when it can be. Other errors of planning
	// are often over sooner: failedRetry.
	unreadRetry = 5 * time.Second
	failedRetry = time.Second
)

// Snapshots makes the resource snapshots of placements that have no index to start from.
type Snapshots interface {
	// Ensure returns the index of the newest resource snapshot, which holds what the placement selects at the time of the
	// call; it is made if need be. The error is, or wraps, a placement.UserError where the selectors are at fault, and a
	// selection.IncompleteError where something could not be read.
	Ensure(ctx context.Context, p placementv1.PlacementObject) (index int, err error)
}

// Controller moves the update runs of one scope.
type Controller struct {
	// Client reads from the cache. Its writes go to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	Kinds     *placement.Kinds
	Clock     clock.PassiveClock
	Recorder  events.EventRecorder
	Tracker   *consistency.Tracker
	Snapshots Snapshots
	// Overrides finds the overrides of a placement.
	Overrides *overrides.Finder

	paces paces
}

// SetupWithManager registers the controller, with its indexes and metrics.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if err := c.index(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := registerRunCounter(c.Client, c.Kinds); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("updaterun-" + strings.ToLower(c.Kinds.Placement)).
		WithOptions(enqueue.Options(workers))
	if err := c.watch(b).Complete(c); err != nil {
		return fmt.Errorf("set up the controller of %s objects: %w", c.Kinds.UpdateRun, err)
	}
	return nil
}

// errBehind says that the cache has not seen our own last write of something. The event that brings it brings the next
// pass, too.
var errBehind = errors.New("the cache is behind our own writes")

// Reconcile looks at all runs of one placement.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	after, err := c.reconcile(ctx, request.NamespacedName)
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: after}, nil
	case each(err, func(e error) bool { return errors.Is(e, errBehind) }):
		return ctrl.Result{}, nil
	case each(err, func(e error) bool { return errors.Is(e, errBehind) || isStale(e) }):
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	default:
		return ctrl.Result{}, err
	}
}

func (c *Controller) reconcile(ctx context.Context, key placement.Key) (after time.Duration, err error) {
	runs, err := listing.UpdateRuns(ctx, c.Client, c.Kinds, client.InNamespace(key.Namespace),
		client.MatchingFields{indexPlacement: key.Name}, listing.Shared)
	if err != nil {
		return 0, err
	}
	paces := c.paces.of(key, runs)
	if len(runs) == 0 {
		return 0, nil
	}
	var failures []error
	for i := range runs {
		if c.Tracker.Behind(runs[i]) {
			return 0, errBehind
		}
		if !runs[i].GetDeletionTimestamp().IsZero() {
			failures = append(failures, c.finalize(ctx, runs[i]))
		} else if runs[i], err = c.hold(ctx, runs[i]); err != nil {
			return 0, err
		}
	}
	world, err := c.observe(ctx, key, runs)
	if err != nil {
		return 0, errors.Join(append(failures, err)...)
	}
	world.Unwritten = paces.unwritten(runs)
	for _, run := range engine.Unplanned(runs) {
		plan, again, err := c.plan(ctx, key, run, &paces[run.GetUID()].attempt)
		after = enqueue.Soonest(after, again)
		switch {
		case err != nil:
			failures = append(failures, err) // the other runs do not wait for this one
		case plan != nil:
			world.Plans[run.GetUID()] = *plan
		}
	}
	err = engine.InOrder(engine.Decide(world), func(result engine.Result) error {
		wait, err := c.carryOut(ctx, result, paces[result.Run.GetUID()])
		after = enqueue.Soonest(after, enqueue.Soonest(wait, result.RequeueAfter))
		return err
	})
	return after, errors.Join(append(failures, err)...)
}

// hold sees to it that a run that may still do something stays until its approval requests are cleared away.
func (c *Controller) hold(ctx context.Context, run placementv1.UpdateRunObject) (placementv1.UpdateRunObject, error) {
	if engine.Finished(run.UpdateRunStatus()) || controllerutil.ContainsFinalizer(run, placementv1.FinalizerUpdateRun) {
		return run, nil
	}
	held, ok := run.DeepCopyObject().(placementv1.UpdateRunObject)
	if !ok {
		return nil, fmt.Errorf("copy of update run %s is not an update run", run.GetName())
	}
	controllerutil.AddFinalizer(held, placementv1.FinalizerUpdateRun)
	if err := c.Client.Patch(ctx, held, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("add the finalizer to %s %s: %w", c.Kinds.UpdateRun, run.GetName(), err)
	}
	c.Tracker.Wrote(held)
	return held, nil
}

// finalize clears a deleted run's approval requests away and lets it go. Bindings stay as they are.
func (c *Controller) finalize(ctx context.Context, run placementv1.UpdateRunObject) error {
	if !controllerutil.ContainsFinalizer(run, placementv1.FinalizerUpdateRun) {
		return nil
	}
	requests, err := c.requestsOf(ctx, run)
	if err != nil {
		return err
	}
	for _, r := range requests {
		uid := r.GetUID()
		if err := c.Client.Delete(ctx, r, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s of the deleted run %s: %w", c.Kinds.ApprovalRequest, r.GetName(), run.GetName(), err)
		}
	}
	freed, ok := run.DeepCopyObject().(placementv1.UpdateRunObject)
	if !ok {
		return fmt.Errorf("copy of update run %s is not an update run", run.GetName())
	}
	controllerutil.RemoveFinalizer(freed, placementv1.FinalizerUpdateRun)
	err = c.Client.Patch(ctx, freed, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from %s %s: %w", c.Kinds.UpdateRun, run.GetName(), err)
	}
	c.Tracker.Forget(run.GetUID())
	return nil
}

// each tells whether all errors that were joined into one are of a sort.
func each(err error, ofSort func(error) bool) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return ofSort(err)
	}
	for _, e := range joined.Unwrap() {
		if !each(e, ofSort) {
			return false
		}
	}
	return true
}

// isStale tells whether a write failed because the cache it was decided on is behind.
func isStale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errGone)
}
