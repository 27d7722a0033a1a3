// Package scheduler gives placements their clusters: it turns decisions of package schedule into bindings, and says on the
// policy snapshot what was decided and why.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// workers is how many placements are scheduled at once.
	workers = 4
	// writers is how many bindings of one placement are written at once.
	writers = 16
)

// Controller schedules the placements of one scope.
type Controller struct {
	Client client.Client
	Kinds  *placement.Kinds
	Clock  clock.PassiveClock

	live    client.Reader // asks the API server
	tracker consistency.Tracker
	made    consistency.Awaited[types.NamespacedName] // bindings that we made and that the cache has not shown yet
	settled settled
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	c.live = mgr.GetAPIReader()
	return ctrl.NewControllerManagedBy(mgr).
		Named("scheduler-"+strings.ToLower(c.Kinds.Placement)).
		For(c.Kinds.NewPlacement(), whenPlacementChanges()).
		Watches(c.Kinds.NewPolicySnapshot(), enqueue.Placement(), c.whenPolicyChanges()).
		Watches(c.Kinds.NewBinding(), enqueue.Placement(), c.whenGoneOrDamaged()).
		Watches(&clusterv1.MemberCluster{}, c.toPlacements()).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
}

// Reconcile schedules one placement.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := c.Kinds.NewPlacement()
	err := c.Client.Get(ctx, request.NamespacedName, p)
	c.settled.set(request.NamespacedName, false)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read placement %s: %w", request.NamespacedName, err)
	}
	if !p.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil // its bindings are deleted by whoever deletes the placement
	}
	policy, err := c.latestPolicy(ctx, request.NamespacedName, p.GetUID())
	if err != nil || policy == nil {
		return ctrl.Result{}, err // the first snapshot of the policy brings the next pass
	}
	owner := schedule.Owner{Key: request.NamespacedName, UID: p.GetUID(), Created: p.GetCreationTimestamp(), PolicySnapshot: policy.GetName()}
	err = c.schedule(ctx, owner, policy, p.PlacementSpec().IsExternal())
	if isStale(err) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{}, err
}

func (c *Controller) schedule(ctx context.Context, owner schedule.Owner, policy placementv1.PolicySnapshotObject, external bool) error {
	start, key := c.Clock.Now(), owner.Key
	fleet, err := c.fleet(ctx)
	if err != nil {
		return err
	}
	bindings, err := listing.Bindings(ctx, c.Client, &c.Kinds.Carriage, key)
	if err != nil {
		return err
	}
	if c.behind(policy, bindings) {
		return errStale
	}
	if bindings, err = c.withUnlabelled(ctx, key, fleet, bindings); err != nil {
		return err
	}
	request, err := requestOf(owner, policy)
	if err != nil {
		return err
	}
	request.Holders = owner.Holders(fleet, bindings)
	result, err := schedule.Decide(request, fleet)
	var mistake *schedule.PolicyError
	if errors.As(err, &mistake) {
		return c.refuse(ctx, policy, mistake)
	}
	if err != nil {
		return fmt.Errorf("schedule placement %s: %w", key, err)
	}
	changes := schedule.Bind(owner, fleet, result, bindings, c.Kinds.NewBinding)
	obstructions, err := c.write(ctx, changes)
	if err != nil {
		cycles.WithLabelValues("true").Observe(milliseconds(c.Clock.Since(start)))
		return err
	}
	if external {
		if err := c.clear(ctx, changes.Gone); err != nil {
			return err
		}
	}
	if result.Settled && len(changes.Create)+len(changes.Update)+len(changes.Waiting)+len(obstructions) == 0 && saysSo(policy, &result) {
		c.settled.set(key, true)
		return nil // how the others would score now is not worth a write
	}
	// Only now, so that a placement that is said to be scheduled has its bindings.
	if err := c.report(ctx, policy, result, changes.Waiting, obstructions); err != nil {
		return err
	}
	cycles.WithLabelValues("false").Observe(milliseconds(c.Clock.Since(start)))
	return nil
}

// requestOf is what a policy snapshot asks for. How many clusters PickN takes is told by an annotation.
func requestOf(owner schedule.Owner, policy placementv1.PolicySnapshotObject) (schedule.Request, error) {
	r := schedule.Request{Policy: policy.PolicySnapshotSpec().Policy, Namespace: owner.Key.Namespace}
	if r.Policy.Type() != placementv1.PickNPlacementType {
		return r, nil
	}
	number, err := strconv.ParseInt(policy.GetAnnotations()[placementv1.AnnotationNumberOfClusters], 10, 32)
	if err != nil || number < 0 {
		return r, fmt.Errorf("annotation %s of policy snapshot %s is %q and must be the number of clusters to choose; the hub puts it there when the placement changes",
			placementv1.AnnotationNumberOfClusters, policy.GetName(), policy.GetAnnotations()[placementv1.AnnotationNumberOfClusters])
	}
	r.Number = int(number)
	return r, nil
}

// withUnlabelled adds the bindings from which somebody has taken the label by which they are found: they are known by their
// names. To make them anew would fail for ever.
func (c *Controller) withUnlabelled(ctx context.Context, key placement.Key, fleet schedule.Fleet, bindings []placementv1.BindingObject) ([]placementv1.BindingObject, error) {
	found := sets.New[string]()
	for _, b := range bindings {
		found.Insert(b.GetName())
	}
	for _, cluster := range fleet.Names() {
		name := placement.BindingName(key, cluster)
		if found.Has(name) {
			continue
		}
		b := c.Kinds.NewBinding()
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, b)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read binding %s: %w", name, err)
		}
		if _, labelled := b.GetLabels()[placementv1.LabelParentPlacement]; !labelled {
			bindings = append(bindings, b)
		}
	}
	return bindings, nil
}

// latestPolicy returns the newest policy snapshot of this very placement; nil where there is none yet.
func (c *Controller) latestPolicy(ctx context.Context, key placement.Key, uid types.UID) (placementv1.PolicySnapshotObject, error) {
	snapshots, err := listing.PolicySnapshots(ctx, c.Client, c.Kinds, key, client.MatchingLabels{placementv1.LabelIsLatestSnapshot: "true"})
	if err != nil {
		return nil, err
	}
	var latest placementv1.PolicySnapshotObject
	for _, s := range snapshots {
		if s.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(uid) || !s.GetDeletionTimestamp().IsZero() {
			continue
		}
		if latest == nil || placement.PolicyIndex(s) > placement.PolicyIndex(latest) {
			latest = s
		}
	}
	return latest, nil
}

func (c *Controller) fleet(ctx context.Context) (schedule.Fleet, error) {
	var members clusterv1.MemberClusterList
	if err := c.Client.List(ctx, &members, listing.Shared); err != nil {
		return schedule.Fleet{}, fmt.Errorf("list member clusters: %w", err)
	}
	return schedule.NewFleet(schedule.ObserveAll(members.Items)), nil
}

// behind tells whether the cache has yet to show something that we wrote.
func (c *Controller) behind(policy placementv1.PolicySnapshotObject, bindings []placementv1.BindingObject) bool {
	behind := c.tracker.Behind(policy)
	for _, b := range bindings {
		behind = c.tracker.Behind(b) || behind
	}
	return behind
}

// errStale is the outcome of a decision on what was not true any more.
var errStale = errors.New("the cache is behind")

// isStale tells whether a write failed because the cache it was decided on is behind.
func isStale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errStale)
}
