// Package rolling moves the bindings of RollingUpdate placements to the newest resource snapshot as soon as there is one.
// Placements with the strategy External are left to update runs.
package rolling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/rolling"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// staleRetry is when to look again after a write showed that the cache is behind.
	staleRetry = 50 * time.Millisecond
)

// Controller moves the bindings of the placements of one scope.
type Controller struct {
	Client client.Client
	Kinds  *placement.Kinds
	// Overrides finds the overrides of a placement.
	Overrides *overrides.Finder

	tracker consistency.Tracker
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("rolling-"+strings.ToLower(c.Kinds.Placement)).
		For(c.Kinds.NewPlacement(), whenSpecChanges()).
		Watches(c.Kinds.NewBinding(), enqueue.Placement(), c.whenBindingChanges()).
		Watches(c.Kinds.NewResourceSnapshot(), enqueue.Placement(), whenSnapshotChanges()).
		Watches(&placementv1.ClusterResourceOverrideSnapshot{}, c.toPlacements(), whenSnapshotChanges()).
		Watches(&placementv1.ResourceOverrideSnapshot{}, c.toPlacements(), whenSnapshotChanges()).
		Watches(&clusterv1.MemberCluster{}, c.toPlacementsOn(), whenLabelsChange()).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
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
	err = c.roll(ctx, request.NamespacedName, p)
	if overrides.IsPending(err) {
		return ctrl.Result{}, nil // the snapshot that is being made brings the next pass
	}
	if apierrors.IsConflict(err) || errors.Is(err, errGone) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	return ctrl.Result{}, err
}

func (c *Controller) roll(ctx context.Context, key placement.Key, p placementv1.PlacementObject) error {
	latest, err := c.latestSnapshot(ctx, key, p)
	if err != nil {
		return err
	}
	bindings, err := listing.Bindings(ctx, c.Client, c.Kinds, key)
	if err != nil {
		return err
	}
	gives, err := c.overridesOf(ctx, p, latest)
	if err != nil {
		return err
	}
	byName := map[string]placementv1.BindingObject{}
	var observed []rolling.Binding
	for _, b := range bindings {
		if b.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.GetUID()) {
			continue
		}
		if c.tracker.Behind(b) {
			continue // we have just moved it; the event that tells the cache brings the next pass
		}
		byName[b.GetName()] = b
		o := observe(b)
		o.OverridesDiffer = !gives(b).Equal(override.AppliedTo(b))
		observed = append(observed, o)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, step := range rolling.Plan(latest, observed) {
		group.Go(func() error { return c.carryOut(ctx, step, latest, gives(byName[step.Binding]), byName[step.Binding]) })
	}
	return group.Wait()
}

func observe(b placementv1.BindingObject) rolling.Binding {
	spec := b.BindingSpec()
	return rolling.Binding{
		Name:     b.GetName(),
		Cluster:  spec.TargetCluster,
		State:    spec.State,
		Snapshot: spec.ResourceSnapshotName,
		Deleting: !b.GetDeletionTimestamp().IsZero(),
	}
}

// errGone is the outcome of changing a binding that was deleted meanwhile.
var errGone = errors.New("it is gone")

// carryOut does one step, on the very version of the binding that it was decided on: one that the scheduler has just
// chosen again is not deleted.
func (c *Controller) carryOut(ctx context.Context, step rolling.Step, latest string, overrides override.Applied, b placementv1.BindingObject) error {
	log.FromContext(ctx).Info("Rolling update", "binding", b.GetName(), "action", step.Action, "reason", step.Reason)
	var err error
	if step.Action == rolling.Remove {
		err = c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID()), ResourceVersion: ptr.To(b.GetResourceVersion())})
	} else {
		b.BindingSpec().State = placementv1.BindingStateBound
		b.BindingSpec().ResourceSnapshotName = latest
		overrides.Give(b)
		if err = c.Client.Update(ctx, b); err == nil {
			c.tracker.Wrote(b)
		}
	}
	if apierrors.IsNotFound(err) {
		err = errGone
	}
	if err != nil {
		return fmt.Errorf("%s binding %s to snapshot %s: %w", strings.ToLower(string(step.Action)), b.GetName(), latest, err)
	}
	return nil
}
