package membercluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/placement"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

const (
	// defaultForceLeaveAfter is how long a cluster that is being deleted waits for its agent, unless told otherwise.
	defaultForceLeaveAfter = 15 * time.Minute
	// settle is how long to wait after a write that lost against another one. The winner's event usually comes first.
	settle = 100 * time.Millisecond
	// prepareRetry is when to try again to make what an agent needs.
	prepareRetry = 5 * time.Second
)

// Controller reconciles MemberClusters.
type Controller struct {
	// Client reads from the cache, APIReader from the API server.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.PassiveClock
	Recorder  events.EventRecorder
	Tracker   *consistency.Tracker
	// ForceLeaveAfter is how long a cluster that is being deleted waits for its agent. Default: 15 minutes.
	ForceLeaveAfter time.Duration

	liveness liveness
	// noticed receives clusters of which something was noticed by other means than a watch.
	noticed chan event.TypedGenericEvent[*clusterv1.MemberCluster]
}

// Reconcile brings what belongs to a MemberCluster in line with it, and its status in line with what its agent says.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.MemberCluster{}
	if err := c.Client.Get(ctx, request.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, c.gone(ctx, request.Name)
		}
		return ctrl.Result{}, fmt.Errorf("read MemberCluster %s: %w", request.Name, err)
	}
	if c.Tracker.Behind(cluster) {
		return ctrl.Result{}, nil
	}
	result, err := c.reconcile(ctx, cluster)
	switch {
	case errors.Is(err, errGoing):
		return result, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: settle}, nil
	}
	return result, err
}

func (c *Controller) reconcile(ctx context.Context, cluster *clusterv1.MemberCluster) (ctrl.Result, error) {
	if cluster.DeletionTimestamp != nil {
		return c.leave(ctx, cluster)
	}
	if err := c.ensureMetadata(ctx, cluster); err != nil {
		return ctrl.Result{}, err
	}
	imc, prepareErr := c.prepare(ctx, cluster)
	if apierrors.IsConflict(prepareErr) {
		return ctrl.Result{}, prepareErr // not worth telling: somebody else wrote at the same moment
	}
	o := observed{cluster: cluster, internal: imc}
	if prepareErr != nil {
		o.unready = "what the agent needs is not ready: " + prepareErr.Error()
		if err := c.releaseLostNamespace(ctx, cluster); err != nil {
			return ctrl.Result{}, err
		}
	}
	again, err := c.observe(ctx, &o)
	if err != nil {
		return ctrl.Result{}, err
	}
	recorded := cluster.Status.ClusterID
	if err := c.writeStatus(ctx, cluster, status(o)); err != nil {
		return ctrl.Result{}, err
	}
	if prepareErr == nil && recorded != cluster.Status.ClusterID {
		// The agent may start to apply once it reads that it is this cluster that joined.
		if _, err := c.ensure(ctx, cluster, internal(cluster)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if prepareErr != nil && !errors.Is(prepareErr, errGoing) {
		// The status says it. As an error it would take the place of the time at which to judge the agent's silence again.
		ctrl.LoggerFrom(ctx).Error(prepareErr, "what an agent needs is not ready; trying again", "cluster", cluster.Name)
		again = enqueue.Soonest(again, prepareRetry)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// ensureMetadata sets the finalizer and the label with the cluster's name.
func (c *Controller) ensureMetadata(ctx context.Context, cluster *clusterv1.MemberCluster) error {
	before := cluster.DeepCopy()
	changed := controllerutil.AddFinalizer(cluster, clusterv1.FinalizerMemberCluster)
	if cluster.Labels[clusterv1.LabelMemberName] != cluster.Name {
		if cluster.Labels == nil {
			cluster.Labels = map[string]string{}
		}
		cluster.Labels[clusterv1.LabelMemberName] = cluster.Name
		changed = true
	}
	if !changed {
		return nil
	}
	// Only the two are sent, and only onto what was read: another's label set in the meantime stays.
	if err := c.Client.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set finalizer and label of MemberCluster %s: %w", cluster.Name, err)
	}
	c.Tracker.Wrote(cluster)
	return nil
}

// prepare makes all that the agent needs, and repairs it. It returns the InternalMemberCluster, if there is one, even if
// something else is amiss.
func (c *Controller) prepare(ctx context.Context, cluster *clusterv1.MemberCluster) (*clusterv1.InternalMemberCluster, error) {
	var failed error
	for _, p := range rights(cluster) {
		if _, err := c.ensure(ctx, cluster, p); err != nil {
			failed = err
			break
		}
	}
	if failed != nil {
		imc, err := c.readInternal(ctx, cluster)
		return imc, errors.Join(failed, err)
	}
	object, err := c.ensure(ctx, cluster, internal(cluster))
	if err != nil {
		return nil, err
	}
	imc := object.(*clusterv1.InternalMemberCluster)
	if cluster.Spec.Identity != nil {
		return imc, c.ensureAbsent(ctx, cluster.Name, bootstrap(cluster))
	}
	for _, p := range bootstrap(cluster) {
		if _, err := c.ensure(ctx, cluster, p); err != nil {
			return imc, err
		}
	}
	return imc, nil
}

// readInternal returns the cluster's InternalMemberCluster, or nil if there is none.
func (c *Controller) readInternal(ctx context.Context, cluster *clusterv1.MemberCluster) (*clusterv1.InternalMemberCluster, error) {
	imc := &clusterv1.InternalMemberCluster{}
	key := client.ObjectKey{Namespace: placement.MemberNamespace(cluster.Name), Name: cluster.Name}
	if err := c.Client.Get(ctx, key, imc); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // none is an answer, not an error
		}
		return nil, fmt.Errorf("read InternalMemberCluster %s: %w", key, err)
	}
	return imc, nil
}

// observe judges the agent's silence and whether a second cluster signs in, and returns when to do so again.
func (c *Controller) observe(ctx context.Context, o *observed) (time.Duration, error) {
	cluster := o.cluster
	o.now = c.Clock.Now()
	reported := agentCondition(cluster.Status.AgentStatus, clusterv1.ConditionJoined) != nil
	if o.internal != nil {
		reported = reported || agentCondition(o.internal.Status.AgentStatus, clusterv1.ConditionJoined) != nil
		// The second cluster's agent puts its ID here, and the member's agent puts its own back at once.
		if other := o.internal.Status.ClusterID; other != "" && cluster.Status.ClusterID != "" && other != cluster.Status.ClusterID {
			c.liveness.other(cluster.Name, other, o.now)
		}
	}
	known := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionClusterIDConflict) != nil
	var again time.Duration
	o.otherID, again = c.liveness.conflict(cluster.Name, known, o.now)
	o.conflicting = again > 0
	if !reported {
		return again, nil
	}
	var err error
	if o.verdict, err = c.judge(ctx, cluster, o.now); err != nil {
		return 0, err
	}
	return enqueue.Soonest(again, o.verdict.again), nil
}

// judge tells what to think of the agent's silence, and asks the API server before it speaks.
func (c *Controller) judge(ctx context.Context, cluster *clusterv1.MemberCluster, now time.Time) (verdict, error) {
	healthy := agentCondition(cluster.Status.AgentStatus, clusterv1.ConditionHealthy)
	wasLost := healthy != nil && healthy.Reason == clusterv1.ReasonHeartbeatLost
	period := heartbeatPeriod(cluster)
	v := c.liveness.judge(cluster.Name, cluster.UID, period, wasLost, now)
	if !v.confirm {
		return v, nil
	}
	key := client.ObjectKey{Namespace: placement.MemberNamespace(cluster.Name), Name: clusterv1.HeartbeatLease}
	cached, live := &coordinationv1.Lease{}, &coordinationv1.Lease{}
	if err := c.APIReader.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
		return verdict{}, fmt.Errorf("read Lease %s to see whether the agent is alive: %w", key, err)
	}
	if err := c.Client.Get(ctx, key, cached); client.IgnoreNotFound(err) != nil {
		return verdict{}, fmt.Errorf("read Lease %s from the cache: %w", key, err)
	}
	c.liveness.confirm(cluster.Name, renewalOf(live), renewalOf(cached), now)
	return c.liveness.judge(cluster.Name, cluster.UID, period, wasLost, now), nil
}

// renewalOf is when the agent renewed the Lease, by its own clock; zero if it never has.
func renewalOf(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

func heartbeatPeriod(cluster *clusterv1.MemberCluster) time.Duration {
	if cluster.Spec.HeartbeatPeriodSeconds <= 0 {
		return time.Minute
	}
	return time.Duration(cluster.Spec.HeartbeatPeriodSeconds) * time.Second
}

// writeStatus writes the status if it differs, and tells of what changed in it.
func (c *Controller) writeStatus(ctx context.Context, cluster *clusterv1.MemberCluster, want *clusterv1.MemberClusterStatus) error {
	if equality.Semantic.DeepEqual(&cluster.Status, want) {
		return nil
	}
	before := cluster.Status
	cluster.Status = *want
	if err := c.Client.Status().Update(ctx, cluster); err != nil {
		return fmt.Errorf("write the status of MemberCluster %s: %w", cluster.Name, err)
	}
	c.Tracker.Wrote(cluster)
	for _, conditionType := range []string{clusterv1.ConditionReadyToJoin, clusterv1.ConditionJoined, clusterv1.ConditionClusterIDConflict} {
		c.tellChange(cluster, meta.FindStatusCondition(before.Conditions, conditionType), meta.FindStatusCondition(want.Conditions, conditionType))
	}
	c.tellChange(cluster, agentCondition(before.AgentStatus, clusterv1.ConditionHealthy), agentCondition(want.AgentStatus, clusterv1.ConditionHealthy))
	return nil
}

// tellChange records an event about a condition whose reason has changed.
func (c *Controller) tellChange(cluster *clusterv1.MemberCluster, before, after *metav1.Condition) {
	if after == nil || (before != nil && before.Reason == after.Reason) {
		return
	}
	if before == nil && after.Reason == clusterv1.ReasonJoinStateUnknown {
		return // nothing has happened yet
	}
	eventType := corev1.EventTypeNormal
	switch after.Reason {
	case clusterv1.ReasonJoinStateUnknown, clusterv1.ReasonHeartbeatLost, clusterv1.ReasonUnhealthy, clusterv1.ReasonClusterIDMismatch:
		eventType = corev1.EventTypeWarning
	}
	c.event(cluster, eventType, after.Reason, "%s", after.Message)
}
