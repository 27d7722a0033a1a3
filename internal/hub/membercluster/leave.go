package membercluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/placement"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// leave lets a cluster go: the agent releases or removes what was placed and says so; then all that the hub holds for the
// cluster is removed, and the MemberCluster last.
func (c *Controller) leave(ctx context.Context, cluster *clusterv1.MemberCluster) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(cluster, clusterv1.FinalizerMemberCluster) {
		return ctrl.Result{}, nil
	}
	imc, err := c.askToLeave(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	o := observed{cluster: cluster, internal: imc}
	again, err := c.observe(ctx, &o)
	if err != nil {
		return ctrl.Result{}, err
	}
	remaining := c.remainingPatience(cluster, o.now)
	if waits(cluster, imc) && remaining > 0 {
		o.unready = c.whatIsWaitedFor(cluster, o)
		return ctrl.Result{RequeueAfter: enqueue.Soonest(again, remaining)}, c.writeStatus(ctx, cluster, status(o))
	}
	forced := waits(cluster, imc)
	o.unready = "the cluster has left; what the hub holds for it is being removed"
	if forced {
		o.unready = fmt.Sprintf("the agent did not answer for %s; what the hub holds for the cluster is being removed, and what was placed in the cluster stays there", c.forceLeaveAfter())
	}
	held, later, err := c.whatHolds(ctx, cluster, o.now)
	if err != nil {
		return ctrl.Result{}, err
	}
	o.unready += held
	if err := c.writeStatus(ctx, cluster, status(o)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: later}, c.cleanUp(ctx, cluster, forced)
}

// whatHolds says, in the API server's own words, why a namespace that is being deleted is still there. What goes within a
// moment is not worth a word: later is when to look again.
func (c *Controller) whatHolds(ctx context.Context, cluster *clusterv1.MemberCluster, now time.Time) (held string, later time.Duration, err error) {
	namespace := &corev1.Namespace{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: placement.MemberNamespace(cluster.Name)}, namespace); err != nil {
		return "", 0, client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		return "", 0, nil
	}
	if later := namespace.DeletionTimestamp.Add(namespacePatience).Sub(now); later > 0 {
		return "", later, nil
	}
	var reasons []string
	for _, condition := range namespace.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			reasons = append(reasons, placement.Cut(condition.Message, longestWord))
		}
	}
	held = fmt.Sprintf("; namespace %s is being deleted since %s", namespace.Name, clockTime(namespace.DeletionTimestamp.Time))
	if len(reasons) > 0 {
		held += ", and still there: " + strings.Join(reasons, "; ")
	}
	return held, 0, nil // its conditions' changes bring the next pass
}

// namespacePatience is how long the deletion of a namespace may take before the status says what holds it.
const namespacePatience = 5 * time.Second

// askToLeave tells the agent to leave, and returns what it says; nil if there is no place any more where it could say it.
func (c *Controller) askToLeave(ctx context.Context, cluster *clusterv1.MemberCluster) (*clusterv1.InternalMemberCluster, error) {
	imc, err := c.readInternal(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if imc == nil {
		return c.askAnew(ctx, cluster)
	}
	want := internalCluster(cluster).Spec
	if want.ClusterID == "" {
		want.ClusterID = imc.Spec.ClusterID
	}
	if imc.Spec == want {
		return imc, nil
	}
	imc.Spec = want
	if err := c.Client.Update(ctx, imc); err != nil {
		return nil, fmt.Errorf("ask the agent of cluster %s to leave: %w", cluster.Name, err)
	}
	c.event(cluster, corev1.EventTypeNormal, EventInternalMemberClusterUpdated, "asked the agent to leave (workloads: %s)", want.Workloads)
	return imc, nil
}

// askAnew makes the InternalMemberCluster again in which an agent that has applied something is asked to leave, unless its
// namespace is gone or going.
func (c *Controller) askAnew(ctx context.Context, cluster *clusterv1.MemberCluster) (*clusterv1.InternalMemberCluster, error) {
	if !memberStill(cluster.Status.AgentStatus) || c.remainingPatience(cluster, c.Clock.Now()) <= 0 {
		return nil, nil //nolint:nilnil // none is an answer, not an error
	}
	if going, err := c.namespaceGoing(ctx, placement.MemberNamespace(cluster.Name)); going || err != nil {
		return nil, err
	}
	object, err := c.ensure(ctx, cluster, internal(cluster))
	if err != nil {
		return nil, err
	}
	imc, ok := object.(*clusterv1.InternalMemberCluster)
	if !ok {
		return nil, fmt.Errorf("ask the agent of cluster %s to leave: what was made is a %T", cluster.Name, object)
	}
	return imc, nil
}

// memberStill tells whether an agent has joined, so that it may have applied something, and has not said that it has left.
func memberStill(statuses []clusterv1.AgentStatus) bool {
	joined := agentCondition(statuses, clusterv1.ConditionJoined)
	return joined != nil && joined.Reason != clusterv1.ReasonAgentLeft
}

// waits tells whether the agent has yet to leave. One that has never joined has applied nothing. Of an
// InternalMemberCluster that was made anew, to which the agent has not reported yet, the MemberCluster knows better.
func waits(cluster *clusterv1.MemberCluster, imc *clusterv1.InternalMemberCluster) bool {
	if imc == nil || hasLeft(imc) {
		return false
	}
	return agentCondition(imc.Status.AgentStatus, clusterv1.ConditionJoined) != nil || memberStill(cluster.Status.AgentStatus)
}

func (c *Controller) forceLeaveAfter() time.Duration {
	if c.ForceLeaveAfter <= 0 {
		return defaultForceLeaveAfter
	}
	return c.ForceLeaveAfter
}

// remainingPatience is how long the agent will still be waited for.
func (c *Controller) remainingPatience(cluster *clusterv1.MemberCluster, now time.Time) time.Duration {
	return cluster.DeletionTimestamp.Add(c.forceLeaveAfter()).Sub(now)
}

func (c *Controller) whatIsWaitedFor(cluster *clusterv1.MemberCluster, o observed) string {
	does := "release"
	if cluster.Spec.LeavePolicy() == clusterv1.WorkloadsRemove {
		does = "remove"
	}
	message := fmt.Sprintf("the cluster is leaving since %s: waits for its agent to %s what was placed there; the hub goes on without the agent at %s",
		clockTime(cluster.DeletionTimestamp.Time), does, clockTime(cluster.DeletionTimestamp.Add(c.forceLeaveAfter())))
	if o.verdict.lost {
		return message + "; the agent gives no sign of life"
	}
	if word := agentCondition(o.internal.Status.AgentStatus, clusterv1.ConditionJoined); word != nil && word.Reason == clusterv1.ReasonAgentFailedToLeave {
		return message + "; the agent reports: " + placement.Cut(word.Message, longestWord)
	}
	return message
}

// cleanUp removes the namespace with all that is in it, the agent's rights, and last the finalizer.
func (c *Controller) cleanUp(ctx context.Context, cluster *clusterv1.MemberCluster, forced bool) error {
	for _, p := range bootstrap(cluster) {
		if p.desired.GetNamespace() == "" { // the others go with the namespace
			if err := c.ensureAbsent(ctx, cluster.Name, []part{p}); err != nil {
				return err
			}
		}
	}
	namespace := namespaceOf(cluster)
	// Live: the finalizer below is the last that is known of the cluster.
	err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err == nil && ours(namespace, cluster.Name) { // one that is somebody else's stays
		if namespace.DeletionTimestamp == nil {
			if forced {
				works, err := c.works(ctx, namespace.Name)
				if err != nil {
					return err
				}
				c.event(cluster, corev1.EventTypeWarning, EventForceLeft, "the agent did not leave within %s; the hub goes on without it, and what was placed in the cluster stays there: %s",
					c.forceLeaveAfter(), whatStays(works))
			}
			if err := client.IgnoreNotFound(c.Client.Delete(ctx, namespace)); err != nil {
				return fmt.Errorf("delete namespace %s: %w", namespace.Name, err)
			}
		}
		if err := c.releaseWorks(ctx, namespace.Name); err != nil {
			return err
		}
		return c.releaseRights(ctx, cluster) // the namespace's going brings the next pass
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read namespace %s: %w", namespace.Name, err)
	}
	before := cluster.DeepCopy()
	controllerutil.RemoveFinalizer(cluster, clusterv1.FinalizerMemberCluster)
	err = c.Client.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("lift the finalizer of MemberCluster %s: %w", cluster.Name, err)
	}
	c.Tracker.Forget(cluster.UID)
	return nil
}

// gone forgets a cluster that does not exist. If somebody took the hub's finalizer from it, garbage collection deletes its
// namespace, and nobody else lifts the finalizers in there: the namespace would be going for ever. Nothing is removed in the
// cluster.
func (c *Controller) gone(ctx context.Context, name string) error {
	c.liveness.forget(name)
	namespace := &corev1.Namespace{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: placement.MemberNamespace(name)}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil || !ours(namespace, name) {
		return nil
	}
	cluster := &clusterv1.MemberCluster{}
	if err := c.APIReader.Get(ctx, client.ObjectKey{Name: name}, cluster); !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err) // it was made a moment ago, and is looked at by itself
	}
	cluster.Name = name
	if err := c.releaseWorks(ctx, namespace.Name); err != nil {
		return err
	}
	return c.releaseRights(ctx, cluster)
}

// releaseWorks lifts every finalizer from the Works of a namespace.
func (c *Controller) releaseWorks(ctx context.Context, namespace string) error {
	works, err := c.works(ctx, namespace)
	if err != nil {
		return err
	}
	for i := range works {
		work := &works[i]
		if len(work.Finalizers) == 0 {
			continue
		}
		before := work.DeepCopy()
		work.Finalizers = nil
		err := c.Client.Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("lift the finalizers of Work %s/%s: %w", namespace, work.Name, err)
		}
	}
	return nil
}

// whatStays names the placements that the Works of a cluster are of.
func whatStays(works []metav1.PartialObjectMetadata) string {
	var placements []string
	for i := range works {
		if owner := placement.Owner(works[i].Labels); owner != "" {
			placements = append(placements, owner)
		}
	}
	if len(placements) == 0 {
		return "nothing that a placement has placed"
	}
	slices.Sort(placements)
	return strings.Join(slices.Compact(placements), ", ")
}

// works returns the metadata of the Works of a namespace, read live.
func (c *Controller) works(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementv1.GroupVersion.WithKind("WorkList"))
	if err := c.APIReader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the Works in namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(placementv1.GroupVersion.WithKind("Work"))
	}
	return list.Items, nil
}

// releaseLostNamespace looks after a namespace that somebody deleted though its cluster stays. The agent keeps its rights
// until it has answered for every Work in it; then the namespace may go, and is made again.
func (c *Controller) releaseLostNamespace(ctx context.Context, cluster *clusterv1.MemberCluster) error {
	name := placement.MemberNamespace(cluster.Name)
	namespace := &corev1.Namespace{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		return nil
	}
	if owner := metav1.GetControllerOf(namespace); owner != nil && owner.UID != cluster.UID && ours(namespace, cluster.Name) {
		// It belonged to an earlier cluster of this name, whose agent need not answer any more.
		if err := c.releaseWorks(ctx, name); err != nil {
			return err
		}
		return c.releaseRights(ctx, cluster)
	}
	works, err := c.works(ctx, name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(works, func(w metav1.PartialObjectMetadata) bool { return len(w.Finalizers) > 0 }) {
		return nil // a Work's going brings the next pass
	}
	return c.releaseRights(ctx, cluster)
}

// releaseRights lifts our finalizer from the agent's rights and its InternalMemberCluster.
func (c *Controller) releaseRights(ctx context.Context, cluster *clusterv1.MemberCluster) error {
	for _, object := range []client.Object{internalCluster(cluster), agentRole(cluster), agentRoleBinding(cluster)} {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			err = c.liftFinalizer(ctx, object, clusterv1.FinalizerMemberRights)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("let go of %s: %w", describe(c.Client, object), err)
		}
	}
	return nil
}
