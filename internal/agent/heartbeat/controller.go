package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/agent/properties"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// accountPeriod is after how long an account is given again though nothing has changed. With what a busy hub may take
	// it stays below the two minutes that users are promised.
	accountPeriod = 110 * time.Second
	// churnPeriod is how long it may wait that pods took other amounts: they come and go all the time.
	churnPeriod = time.Minute
	// claimPeriod is how often an agent in a second cluster says that it is there.
	claimPeriod = 5 * time.Minute
	// leavePeriod is after how long it is looked again at what is still being removed.
	leavePeriod = 2 * time.Second
	// conflictPause is how long to wait after somebody else wrote at the same moment.
	conflictPause = 100 * time.Millisecond
	// longestPause is how long it takes at the most until what has failed is tried again.
	longestPause = 15 * time.Second
	// mostNamed is how many objects are named that leaving waits for.
	mostNamed = 5
)

// Workloads is what applies the Works of the cluster.
type Workloads interface {
	// Activate lets it apply, or keeps it from it.
	Activate(ctx context.Context, active bool) error
	// Leave releases what was placed, or removes it, and returns what is still there. It is called again until that is
	// nothing.
	Leave(ctx context.Context, policy clusterv1.WorkloadsOnLeave) (remaining []string, err error)
}

// Properties finds out about the cluster. A properties.Collector does.
type Properties interface {
	// Start finds out until ctx ends, and calls changed when there may be something new.
	Start(ctx context.Context, changed func()) error
	// Account returns what is known. It waits for nothing.
	Account() properties.Account
}

// Options are what a Controller needs.
type Options struct {
	// Cluster is the cluster's name, and ClusterID the UID of its kube-system namespace.
	Cluster, ClusterID string
	// Member reaches the cluster.
	Member *rest.Config
	// Properties finds out what the cluster is like.
	Properties Properties
	// Workloads applies what the hub places in the cluster.
	Workloads Workloads
	// Clock is the clock.
	Clock clock.WithTicker
	// Over is called when this membership has ended, or another has taken its place.
	Over func(why string)
}

// Controller answers what the hub asks in the InternalMemberCluster.
type Controller struct {
	Options
	hub     client.Client
	checker *checker
	pulse   *pulse
	wake    chan event.TypedGenericEvent[*clusterv1.InternalMemberCluster]

	uid       types.UID // of the InternalMemberCluster that this membership began with
	wroteFrom string    // resource version that our last write was based on: what still has it is stale
	claimed   time.Time // when this, as a second cluster, last said that it is there
	joined    bool
	left      bool
}

// Add registers all of it with the manager of the hub's side, whose cache holds the cluster's namespace.
func Add(mgr ctrl.Manager, o Options) error {
	log := mgr.GetLogger().WithName("heartbeat")
	c := &Controller{
		Options: o, hub: mgr.GetClient(),
		pulse: newPulse(mgr.GetClient(), placement.MemberNamespace(o.Cluster), o.ClusterID, o.Clock, log),
		wake:  make(chan event.TypedGenericEvent[*clusterv1.InternalMemberCluster], 1),
	}
	var err error
	if c.checker, err = newChecker(o.Member, o.Clock, c.look); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("membership").
		For(&clusterv1.InternalMemberCluster{}).
		WatchesRawSource(source.Channel(c.wake, &handler.TypedEnqueueRequestForObject[*clusterv1.InternalMemberCluster]{})).
		WithOptions(controller.Options{RateLimiter: tries()}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of the membership: %w", err)
	}
	provider := manager.RunnableFunc(func(ctx context.Context) error { return o.Properties.Start(ctx, c.look) })
	for _, runnable := range []manager.Runnable{c.checker, c.pulse, provider} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("add to the agent: %w", err)
		}
	}
	return nil
}

// tries paces what has failed: whatever kept the agent from leaving, it is noticed soon when that is over.
func tries() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Second, longestPause)
}

// look asks for a look at the membership.
func (c *Controller) look() {
	imc := &clusterv1.InternalMemberCluster{}
	imc.Namespace, imc.Name = placement.MemberNamespace(c.Cluster), c.Cluster
	select {
	case c.wake <- event.TypedGenericEvent[*clusterv1.InternalMemberCluster]{Object: imc}:
	default: // one is waiting already
	}
}

// Reconcile answers.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	imc := &clusterv1.InternalMemberCluster{}
	if request.Name != c.Cluster {
		return ctrl.Result{}, nil
	}
	if err := c.hub.Get(ctx, request.NamespacedName, imc); err != nil {
		if apierrors.IsNotFound(err) && c.left {
			c.Over("the cluster has left the fleet")
			return ctrl.Result{}, nil
		}
		// That it is not there is an accident as long as nobody asked to leave: everything stays as it is.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if c.uid == "" {
		c.uid = imc.UID
	}
	if imc.UID != c.uid {
		c.Over("the hub began this membership anew")
		return ctrl.Result{}, nil
	}
	if imc.ResourceVersion == c.wroteFrom {
		return ctrl.Result{}, nil // the cache has yet to see our own last write, whose event comes
	}
	result, err := c.answer(ctx, imc)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return result, err
}

func (c *Controller) answer(ctx context.Context, imc *clusterv1.InternalMemberCluster) (ctrl.Result, error) {
	switch {
	case imc.Spec.ClusterID != "" && imc.Spec.ClusterID != c.ClusterID:
		return c.beSecond(ctx, imc)
	case imc.Spec.ClusterID == "" && imc.Status.ClusterID != "" && imc.Status.ClusterID != c.ClusterID:
		return ctrl.Result{}, nil // another was faster; the hub will say who joins
	case imc.Spec.State == clusterv1.ClusterStateLeave:
		return c.leave(ctx, imc)
	case imc.Spec.ClusterID == "":
		// Nothing is applied before the hub has recorded that it is this cluster that joins.
		return c.write(ctx, imc, nil)
	}
	c.pulse.beat(period(imc))
	result, err := c.write(ctx, imc, &metav1.Condition{
		Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAgentJoined, Message: "the agent applies what the hub places in this cluster",
	})
	if err != nil {
		return result, err
	}
	// After the hub was told: what was applied by a cluster that never said that it joined would not be waited for.
	err = c.Workloads.Activate(ctx, true)
	if !c.joined || err != nil {
		joins.WithLabelValues(outcome(err)).Inc()
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("begin to apply Works: %w", err)
	}
	c.joined = true
	return result, nil
}

func period(imc *clusterv1.InternalMemberCluster) time.Duration {
	if imc.Spec.HeartbeatPeriodSeconds <= 0 {
		return time.Minute
	}
	return time.Duration(imc.Spec.HeartbeatPeriodSeconds) * time.Second
}

// beSecond does nothing in this cluster, and now and then says that it is there, so that the hub can tell people. The
// member's own agent puts its ID back.
func (c *Controller) beSecond(ctx context.Context, imc *clusterv1.InternalMemberCluster) (ctrl.Result, error) {
	c.pulse.beat(0)
	if err := c.Workloads.Activate(ctx, false); err != nil {
		return ctrl.Result{}, fmt.Errorf("stop applying Works: %w", err)
	}
	now := c.Clock.Now()
	if left := c.claimed.Add(claimPeriod).Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	c.claimed = now
	ctrl.LoggerFrom(ctx).Info("another cluster is the member of this name; this one applies nothing. Give it a MemberCluster of its own",
		"cluster", c.Cluster, "member", imc.Spec.ClusterID, "this", c.ClusterID)
	patch, err := json.Marshal(map[string]any{"status": map[string]string{"clusterID": c.ClusterID}})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("write down the cluster's ID: %w", err)
	}
	if err := c.hub.Status().Patch(ctx, imc, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return ctrl.Result{}, fmt.Errorf("tell the hub that this cluster is not the member: %w", err)
	}
	return ctrl.Result{RequeueAfter: claimPeriod}, nil
}

// leave gives back what was placed, and says so when it is done.
func (c *Controller) leave(ctx context.Context, imc *clusterv1.InternalMemberCluster) (ctrl.Result, error) {
	if c.left {
		return c.write(ctx, imc, gone(imc))
	}
	c.pulse.beat(period(imc))
	if err := c.Workloads.Activate(ctx, false); err != nil {
		return ctrl.Result{}, fmt.Errorf("stop applying Works: %w", err)
	}
	remaining, failed := c.Workloads.Leave(ctx, imc.Spec.Workloads)
	joined := leaving(remaining)
	switch {
	case failed != nil:
		leaves.WithLabelValues(outcome(failed)).Inc()
		joined = &metav1.Condition{Status: metav1.ConditionUnknown, Reason: clusterv1.ReasonAgentFailedToLeave, Message: complaint(failed)}
	case len(remaining) == 0:
		c.left = true
		leaves.WithLabelValues(outcome(nil)).Inc()
		joined = gone(imc)
	}
	result, err := c.write(ctx, imc, joined)
	if err != nil || c.left {
		return result, err
	}
	if failed != nil {
		return ctrl.Result{}, fmt.Errorf("leave: %w", failed)
	}
	return ctrl.Result{RequeueAfter: leavePeriod}, nil
}

func gone(imc *clusterv1.InternalMemberCluster) *metav1.Condition {
	message := "the agent has left; what was placed stays in the cluster and belongs to nobody"
	if imc.Spec.Workloads == clusterv1.WorkloadsRemove {
		message = "the agent has left and removed what was placed"
	}
	return &metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1.ReasonAgentLeft, Message: message}
}

func leaving(remaining []string) *metav1.Condition {
	named := remaining
	if len(named) > mostNamed {
		named = named[:mostNamed]
	}
	message := fmt.Sprintf("the agent is leaving; %d objects are still there: %s", len(remaining), strings.Join(named, ", "))
	if len(remaining) > len(named) {
		message += " and more"
	}
	return &metav1.Condition{Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAgentJoined, Message: message}
}

// write gives the account if it differs from the last, or if that is long ago.
func (c *Controller) write(ctx context.Context, imc *clusterv1.InternalMemberCluster, joined *metav1.Condition) (ctrl.Result, error) {
	f := facts{clusterID: c.ClusterID, joined: joined, health: c.checker.last.Load(), cluster: c.Properties.Account(), now: c.Clock.Now()}
	want := account(imc, f)
	after := silence(&imc.Status, want)
	due := lastHeartbeat(&imc.Status).Add(after).Sub(f.now)
	if due > after { // the clock was set back
		due = 0
	}
	if due > 0 {
		return ctrl.Result{RequeueAfter: due}, nil
	}
	from := imc.ResourceVersion
	updated := imc.DeepCopy()
	updated.Status = *want
	if err := c.hub.Status().Update(ctx, updated); err != nil {
		return ctrl.Result{}, fmt.Errorf("tell the hub how cluster %s is: %w", c.Cluster, err)
	}
	if updated.ResourceVersion != from {
		c.wroteFrom = from
	}
	return ctrl.Result{RequeueAfter: accountPeriod}, nil
}
