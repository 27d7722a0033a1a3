// Package placement keeps what belongs to a placement itself: its policy snapshots, its resource snapshots where it rolls
// out by itself, and its status. When it is deleted, it goes last.
package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	model "github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// workers is how many placements are looked at at once.
	workers = 10
)

// Snapshots keeps the resource snapshots of the controller's scope. A snapshots.Store does.
type Snapshots interface {
	Revise(context.Context, placementv1.PlacementObject) (snapshots.Revision, *selection.Selection, error)
	RepairLatest(context.Context, placementv1.PlacementObject) error
	MarkAvailable(ctx context.Context, p placementv1.PlacementObject, index int) error
	Contents(ctx context.Context, p placementv1.PlacementObject, index int) ([]placementv1.ResourceIdentifier, error)
}

// Validator checks the selectors of placements without reading what they select. A selection.Selector does.
type Validator interface {
	Validate(context.Context, placementv1.PlacementObject) (*selection.Selection, error)
}

// Controller keeps the placements of one scope.
type Controller struct {
	// Client reads from the cache. Its writes go to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	Kinds     *model.Kinds
	Clock     clock.PassiveClock
	Recorder  events.EventRecorder
	Tracker   *consistency.Tracker
	Snapshots Snapshots
	// Overrides finds the overrides of a placement.
	Overrides *overrides.Finder
	Validator Validator
	// Watches tell of changes of what is selected.
	Watches *selection.Watches
	// Rules are those that Snapshots and Validator go by.
	Rules model.Rules

	quiet    quiet
	memories memories
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	c.quiet.clock = c.Clock
	builder := ctrl.NewControllerManagedBy(mgr).
		Named("placement-"+strings.ToLower(c.Kinds.Placement)).
		For(c.Kinds.NewPlacement()).
		Watches(c.Kinds.NewPolicySnapshot(), enqueue.Placement()).
		Watches(c.Kinds.NewResourceSnapshot(), enqueue.Placement()).
		Watches(c.Kinds.NewBinding(), enqueue.Placement()).
		WatchesRawSource(c.changes()).
		WithOptions(enqueue.Options(workers))
	if !c.Kinds.Namespaced {
		builder = builder.Watches(&placementv1.ClusterResourcePlacementStatus{}, ofItsName())
	}
	if err := overrides.WatchFor(builder, c.Client, c.Kinds).Complete(c); err != nil {
		return fmt.Errorf("set up the controller of %s objects: %w", c.Kinds.Placement, err)
	}
	return nil
}

// changes is where changes of selected objects come from.
func (c *Controller) changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		c.Watches.OnChange(c.Kinds, func(key model.Key) {
			if c.quiet.touch(key) {
				queue.Add(ctrl.Request{NamespacedName: key})
			}
		})
		return nil
	})
}

// Reconcile looks at one placement.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	after, err := c.reconcile(ctx, request.NamespacedName)
	if isStale(err) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

func (c *Controller) reconcile(ctx context.Context, key model.Key) (time.Duration, error) {
	p := c.Kinds.NewPlacement()
	switch err := c.Client.Get(ctx, key, p); {
	case apierrors.IsNotFound(err):
		return 0, c.gone(ctx, key)
	case err != nil:
		return 0, fmt.Errorf("read %s %s: %w", c.Kinds.Placement, key, err)
	case c.Tracker.Behind(p):
		return 0, nil // the event that the cache waits for brings the next pass
	}
	m := c.memories.of(key, p.GetUID())
	if !p.GetDeletionTimestamp().IsZero() {
		return c.remove(ctx, key, p, m)
	}
	if err := c.hold(ctx, p); err != nil {
		return 0, err
	}
	policy, err := c.policySnapshot(ctx, key, p)
	after := time.Duration(0)
	if m.obstacle = obstacle(err); m.obstacle != nil {
		policy, err, after = nil, nil, obstacleRetry
	}
	if err != nil {
		return 0, err
	}
	after = enqueue.Soonest(after, c.evaluate(ctx, key, p, m))
	afterStatus, err := c.report(ctx, key, p, policy, m)
	return enqueue.Soonest(after, afterStatus), err
}

// hold sees to it that the placement stays until all that belongs to it is gone.
func (c *Controller) hold(ctx context.Context, p placementv1.PlacementObject) error {
	before := p.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of a placement is an object
	if !controllerutil.AddFinalizer(p, placementv1.FinalizerPlacementCleanup) {
		return nil
	}
	if err := c.Client.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add the finalizer to %s %s: %w", c.Kinds.Placement, p.GetName(), err)
	}
	c.Tracker.Wrote(p)
	return nil
}

// errBehind says that the cache does not have yet what is known to exist.
var errBehind = errors.New("the cache is behind our own writes")

// isStale tells whether a decision was made on a cache that is behind.
func isStale(err error) bool {
	return apierrors.IsConflict(err) || errors.Is(err, errBehind)
}
