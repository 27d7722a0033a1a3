// Package rolling moves the bindings of RollingUpdate placements to the newest resource snapshot as soon as there is one, as
// many at a time as the placement's budget allows.
// Placements with the strategy External are left to update runs.
package rolling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/rolling"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// workers is how many placements are moved at once.
	workers = 4
	// writers is how many bindings of one placement are written at once.
	writers = 16
)

// Controller moves the bindings of the placements of one scope.
type Controller struct {
	Client client.Client
	Kinds  *placement.Kinds
	// Clock tells the time; without one it is the real one.
	Clock clock.PassiveClock
	// Takings are shared with those that evict; without them they are its own.
	Takings *consistency.Takings
	// Overrides finds the overrides of a placement.
	Overrides *overrides.Finder

	tracker consistency.Tracker
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Takings == nil {
		c.Takings = &consistency.Takings{}
	}
	builder := ctrl.NewControllerManagedBy(mgr).
		Named("rolling-"+strings.ToLower(c.Kinds.Placement)).
		For(c.Kinds.NewPlacement(), whenSpecChanges()).
		Watches(c.Kinds.NewBinding(), enqueue.Placement(), c.whenBindingChanges()).
		Watches(c.Kinds.NewResourceSnapshot(), enqueue.Placement(), whenSnapshotChanges()).
		WithOptions(enqueue.Options(workers))
	return overrides.WatchFor(builder, c.Client, c.Kinds).Complete(c)
}

// Reconcile moves one placement forward.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := c.Kinds.NewPlacement()
	err := c.Client.Get(ctx, request.NamespacedName, p)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read placement %s: %w", request.NamespacedName, err)
	}
	if !p.GetDeletionTimestamp().IsZero() || p.PlacementSpec().IsExternal() {
		return ctrl.Result{}, nil
	}
	after, err := c.roll(ctx, request.NamespacedName, p)
	if overrides.IsPending(err) {
		// The snapshot that is being made brings the next pass. None may come: the edit may have been taken back meanwhile.
		log.FromContext(ctx).Info("The rollout waits", "reason", err.Error())
		return ctrl.Result{RequeueAfter: overrides.PendingRetry}, nil
	}
	if apierrors.IsConflict(err) || errors.Is(err, errGone) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// roll carries out what is planned. It returns when to look again, 0 for not before something changes.
func (c *Controller) roll(ctx context.Context, key placement.Key, p placementv1.PlacementObject) (time.Duration, error) {
	defer c.Takings.Lock(key)()
	latest, err := c.latestSnapshot(ctx, key, p)
	if err != nil {
		return 0, err
	}
	bindings, err := listing.Bindings(ctx, c.Client, &c.Kinds.Carriage, key, listing.Shared)
	if err != nil {
		return 0, err
	}
	// A cache that is behind, that of a hub which has just taken over for example, must not take clusters back to what it has.
	if lowers(key, latest, bindings) {
		if latest, err = c.latestNow(ctx, key, p); err != nil {
			return 0, err
		}
	}
	gives, err := c.Overrides.ByCluster(ctx, c.Client, c.Client, p, latest)
	if err != nil {
		return 0, err
	}
	byName := map[string]placementv1.BindingObject{}
	var own []placementv1.BindingObject
	for _, b := range bindings {
		if b.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.GetUID()) {
			continue
		}
		if c.tracker.Behind(b) {
			return 0, nil // how much of the budget is spent is not known; the event that the cache waits for brings the next pass
		}
		byName[b.GetName()] = b
		own = append(own, b)
	}
	now := c.Clock.Now()
	in := rolling.InputFor(p, latest, gives, own, now)
	in.Deleted = func(b placementv1.BindingObject) bool { return c.Takings.Deleted.Has(b.GetUID(), now) }
	plan := rolling.Make(in)
	if slices.ContainsFunc(plan.Steps, func(s rolling.Step) bool { return s.Action != rolling.Remove }) {
		// The cache may show a resource snapshot before an override that was made earlier. Without that, the clusters would
		// get for a moment what nobody wants them to have.
		if gives, err = c.Overrides.ByCluster(ctx, c.Overrides.APIReader, c.Client, p, latest); err != nil {
			return 0, err
		}
		in.Want = rolling.InputFor(p, latest, gives, own, now).Want
		plan = rolling.Make(in)
	}
	var group errgroup.Group // one that fails leaves the others alone: of a write that is cut off nobody knows whether it was done
	group.SetLimit(writers)
	for _, step := range plan.Steps {
		b := byName[step.Binding]
		group.Go(func() error { return c.carryOut(ctx, step, in.Want(b), b) })
	}
	return plan.RequeueAfter, group.Wait()
}

// errGone is the outcome of changing a binding that was deleted meanwhile.
var errGone = errors.New("it is gone")

// carryOut does one step, on the very version of the binding that it was decided on: one that the scheduler has just
// chosen again is not deleted. The binding is the cache's own.
func (c *Controller) carryOut(ctx context.Context, step rolling.Step, want rolling.Wanted, b placementv1.BindingObject) error {
	log.FromContext(ctx).Info("Rolling update", "binding", b.GetName(), "cluster", step.Cluster, "action", step.Action, "reason", step.Reason)
	err := c.write(ctx, step, want, b)
	if apierrors.IsNotFound(err) {
		err = errGone
	}
	if err != nil {
		return fmt.Errorf("%s binding %s, wanted with snapshot %s: %w", strings.ToLower(string(step.Action)), b.GetName(), want.Snapshot, err)
	}
	return nil
}

func (c *Controller) write(ctx context.Context, step rolling.Step, want rolling.Wanted, b placementv1.BindingObject) error {
	if step.Action == rolling.Remove {
		c.Takings.Deleted.Add(b.GetUID(), c.Clock.Now())
		err := c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID()), ResourceVersion: ptr.To(b.GetResourceVersion())})
		if err != nil {
			c.Takings.Deleted.Remove(b.GetUID())
		}
		return err
	}
	changed, ok := b.DeepCopyObject().(placementv1.BindingObject)
	if !ok {
		return fmt.Errorf("copy it: a %T is no binding", b)
	}
	want.Give(changed)
	annotations := changed.GetAnnotations()
	annotations[placementv1.AnnotationUpdateStarted] = c.Clock.Now().UTC().Format(time.RFC3339)
	changed.SetAnnotations(annotations)
	if err := c.Client.Update(ctx, changed); err != nil {
		return err
	}
	c.tracker.Wrote(changed)
	return nil
}
