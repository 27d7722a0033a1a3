// Package work carries bindings to their clusters: it writes the Works of what a binding is to have, tells from the
// agents' answers how far it has come, and takes the Works away again. It is the only one to write a binding's status.
package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// errStale is the outcome of a decision on what was not true any more.
var errStale = errors.New("the cache is behind")

// Controller carries the bindings of one scope: those of placements, or those of objects that policies claim.
type Controller struct {
	// Client reads from the cache, which has no manifests and no snapshot content. APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	Carriage  *placement.Carriage
	Clock     clock.Clock
	Tracker   *consistency.Tracker
	// Rules say what may not be placed in an envelope either.
	Rules placement.Rules

	contents *contents
	patience patience
	made     consistency.Awaited[types.NamespacedName] // Works that we made and that the cache has not shown yet
	deleted  consistency.Awaited[types.UID]            // Works that we deleted and that the cache still has
	lifted   consistency.Awaited[types.UID]            // Works that we let go and that the cache still has
}

// Reconcile carries one binding.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b := c.Carriage.NewBinding()
	err := c.Client.Get(ctx, request.NamespacedName, b)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, c.releaseLeftOver(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read binding %s: %w", request.NamespacedName, err)
	}
	if !c.carries(b) {
		return ctrl.Result{}, nil
	}
	if c.Tracker.Behind(b) {
		return ctrl.Result{}, nil // the event that the cache waits for brings the next pass
	}
	after, err := c.carry(ctx, b)
	if errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

func (c *Controller) carry(ctx context.Context, b placementv1.BindingObject) (time.Duration, error) {
	target := c.targetOf(b)
	works, behind, err := c.works(ctx, target)
	if err != nil || behind {
		return 0, err
	}
	o := observed{binding: b, now: c.Clock.Now()}
	if o.cluster, err = c.cluster(ctx, c.Client, target.Cluster); err != nil {
		return 0, err
	}
	switch spec := b.BindingSpec(); {
	case !b.GetDeletionTimestamp().IsZero():
		return c.remove(ctx, o, target, works)
	case spec.ResourceSnapshotName == "" && !c.follows() || spec.State == placementv1.BindingStateScheduled:
		// Nothing is to be placed there yet. What is said of an earlier time, before the cluster left and came back, is over.
		return c.report(ctx, b, placementv1.ResourceBindingStatus{})
	}
	// What keeps a Work from being written is first said, and then tried again.
	writeErr := c.sync(ctx, target, works, &o)
	if writeErr != nil && o.problem == nil {
		return 0, writeErr
	}
	after, err := c.report(ctx, b, statusOf(o))
	return after, errors.Join(writeErr, err)
}

// follows tells whether the bindings have the newest revision of their parent, whichever it is, and name none.
func (c *Controller) follows() bool { return c.Carriage.Label == placementv1.LabelParentObject }

// carries tells whether a binding is of the kind of parents that this controller is for. The scheduler names in each of a
// placement the policy snapshot that it comes from, and somebody may have taken the label off.
func (c *Controller) carries(b placementv1.BindingObject) bool {
	return c.follows() == (b.GetLabels()[placementv1.LabelParentObject] != "" || b.BindingSpec().SchedulingPolicySnapshotName == "")
}

func (c *Controller) targetOf(b placementv1.BindingObject) render.Target {
	name := b.GetLabels()[c.Carriage.Label]
	if name == "" { // somebody took it off, and the scheduler will put it back
		name = placement.PolicySnapshotPlacement(b.BindingSpec().SchedulingPolicySnapshotName)
	}
	return render.Target{
		Placement:          placement.Key{Namespace: b.GetNamespace(), Name: name},
		PlacementUID:       b.GetAnnotations()[placementv1.AnnotationPlacementUID],
		Label:              c.Carriage.Label,
		Binding:            b.GetName(),
		Cluster:            b.BindingSpec().TargetCluster,
		ApplyStrategy:      b.BindingSpec().ApplyStrategy,
		ReportBackStrategy: b.BindingSpec().ReportBackStrategy,
		Overrides:          override.AppliedTo(b),
		Replicas:           b.BindingSpec().Replicas,
	}
}

// works returns the Works in the cluster's namespace that carry the parent's label, by name: those of the binding and
// those that are in its way. behind tells that one of them is not yet as we wrote it.
func (c *Controller) works(ctx context.Context, t render.Target) (works map[string]*placementv1.Work, behind bool, err error) {
	var list placementv1.WorkList
	err = c.Client.List(ctx, &list, client.InNamespace(placement.MemberNamespace(t.Cluster)),
		client.MatchingLabels{t.ParentLabel(): t.Placement.Name})
	if err != nil {
		return nil, false, fmt.Errorf("list the Works of binding %s: %w", t.Binding, err)
	}
	works = map[string]*placementv1.Work{}
	for i := range list.Items {
		w := &list.Items[i]
		behind = c.Tracker.Behind(w) || behind
		works[w.Name] = w
	}
	return works, behind, nil
}

// cluster returns what is known of a cluster; nil where it is no member.
func (c *Controller) cluster(ctx context.Context, r client.Reader, name string) (*schedule.Cluster, error) {
	member := &clusterv1.MemberCluster{}
	err := r.Get(ctx, client.ObjectKey{Name: name}, member)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it is no member, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read MemberCluster %s: %w", name, err)
	}
	observed := schedule.Observe(member)
	return &observed, nil
}

// report writes the binding's status where it differs. What is sure to change in a moment is not said at once.
func (c *Controller) report(ctx context.Context, b placementv1.BindingObject, status placementv1.ResourceBindingStatus) (time.Duration, error) {
	if equality.Semantic.DeepEqual(status, *b.BindingStatus()) {
		c.patience.forget(b.GetUID())
		return 0, nil
	}
	if wait := c.patience.wait(b.GetUID(), urgency(b.BindingStatus(), &status), c.Clock.Now()); wait > 0 {
		return wait, nil
	}
	before, ok := b.DeepCopyObject().(placementv1.BindingObject)
	if !ok {
		return 0, fmt.Errorf("copy binding %s: a %T is no binding", b.GetName(), b)
	}
	*b.BindingStatus() = status
	err := c.Client.Status().Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("write the status of binding %s: %w", b.GetName(), err)
	}
	c.patience.forget(b.GetUID())
	c.Tracker.Wrote(b)
	return 0, nil
}
