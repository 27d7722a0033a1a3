// Package work carries bindings to their clusters: it writes the Works of what a binding is to have, tells from the
// agents' answers how far it has come, and takes the Works away again. It is the only one to write a binding's status.
package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	// workers is how many bindings are looked at at once.
	workers = 32
	// staleRetry is when to look again after a write showed that the cache is behind.
	staleRetry = 50 * time.Millisecond
	// answerTime is how long an agent may take before the binding says that it is waited for. Most answer sooner, and
	// then one write tells all.
	answerTime = 250 * time.Millisecond
)

// errStale is the outcome of a decision on what was not true any more.
var errStale = errors.New("the cache is behind")

// Controller carries the bindings of one scope.
type Controller struct {
	// Client reads from the cache, which has no manifests and no snapshot content. APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	Kinds     *placement.Kinds
	Clock     clock.Clock
	Tracker   *consistency.Tracker

	contents contents
	mu       sync.Mutex
	wrote    map[types.UID]time.Time // binding → when its Works were last written
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	c.contents = contents{reader: c.APIReader, kinds: c.Kinds, clock: c.Clock}
	c.wrote = map[types.UID]time.Time{}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("work-"+strings.ToLower(c.Kinds.Placement)).
		For(c.Kinds.NewBinding()). // our own status writes too: a pass that found the cache behind waits for them
		Watches(&placementv1.Work{}, c.toBinding()).
		Watches(&clusterv1.MemberCluster{}, c.toBindingsOf(), builder.WithPredicates(whenMembershipChanges())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of Works: %w", err)
	}
	return nil
}

// whenMembershipChanges lets pass what can end a wait for a cluster: that it can be reached, or is no member any more.
func whenMembershipChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*clusterv1.MemberCluster)
		after, ok2 := e.ObjectNew.(*clusterv1.MemberCluster)
		return ok1 && ok2 && !equality.Semantic.DeepEqual(reach(before), reach(after))
	}}
}

// reach is what a binding's status says of its cluster.
func reach(m *clusterv1.MemberCluster) schedule.Cluster {
	c := schedule.Observe(m)
	c.Labels = nil
	return c
}

// toBinding maps a Work to its binding, if that is of this scope.
func (c *Controller) toBinding() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		name, namespace := o.GetLabels()[placementv1.LabelParentBinding], o.GetLabels()[placementv1.LabelParentNamespace]
		if name == "" || (namespace != "") != c.Kinds.Namespaced {
			return nil
		}
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
	})
}

// toBindingsOf maps a cluster to the bindings to it.
func (c *Controller) toBindingsOf() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		bindings, err := listing.AllBindings(ctx, c.Client, c.Kinds, listing.Shared)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot look at the bindings to a cluster", "cluster", o.GetName())
			return nil
		}
		var requests []ctrl.Request
		for _, b := range bindings {
			if b.BindingSpec().TargetCluster == o.GetName() {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
			}
		}
		return requests
	})
}

// Reconcile carries one binding.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	b := c.Kinds.NewBinding()
	if err := c.Client.Get(ctx, request.NamespacedName, b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if c.Tracker.Behind(b) {
		return ctrl.Result{}, nil // the event that the cache waits for brings the next pass
	}
	after, err := c.carry(ctx, b)
	if errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

func (c *Controller) carry(ctx context.Context, b placementv1.BindingObject) (time.Duration, error) {
	target := targetOf(b)
	works, behind, err := c.works(ctx, target)
	if err != nil || behind {
		return 0, err
	}
	if !b.GetDeletionTimestamp().IsZero() {
		return 0, c.remove(ctx, b, target, works)
	}
	if b.BindingSpec().ResourceSnapshotName == "" {
		return 0, nil // nothing was placed there, and nothing is to be yet
	}
	o := observed{binding: b, now: c.Clock.Now()}
	if o.cluster, err = c.cluster(ctx, target.Cluster); err != nil {
		return 0, err
	}
	if err := c.sync(ctx, target, works, &o); err != nil {
		return 0, err
	}
	return c.report(ctx, b, o)
}

func targetOf(b placementv1.BindingObject) render.Target {
	return render.Target{
		Placement:    placement.Key{Namespace: b.GetNamespace(), Name: b.GetLabels()[placementv1.LabelParentPlacement]},
		PlacementUID: b.GetAnnotations()[placementv1.AnnotationPlacementUID],
		Binding:      b.GetName(),
		Cluster:      b.BindingSpec().TargetCluster,
	}
}

// works returns the Works in the cluster's namespace that carry the binding's label, by name; behind tells that one of
// them is older than our own last write of it.
func (c *Controller) works(ctx context.Context, t render.Target) (works map[string]*placementv1.Work, behind bool, err error) {
	var list placementv1.WorkList
	err = c.Client.List(ctx, &list, client.InNamespace(placement.MemberNamespace(t.Cluster)), client.MatchingLabels{placementv1.LabelParentBinding: t.Binding})
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
func (c *Controller) cluster(ctx context.Context, name string) (*schedule.Cluster, error) {
	member := &clusterv1.MemberCluster{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, member)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it is no member, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read MemberCluster %s: %w", name, err)
	}
	observed := schedule.Observe(member)
	return &observed, nil
}

// report writes the binding's status where it differs. That an agent is merely waited for is not said at once.
func (c *Controller) report(ctx context.Context, b placementv1.BindingObject, o observed) (time.Duration, error) {
	status := statusOf(o)
	if equality.Semantic.DeepEqual(status, *b.BindingStatus()) {
		return 0, nil
	}
	if wait := c.patience(b, o); wait > 0 {
		return wait, nil
	}
	before, ok := b.DeepCopyObject().(placementv1.BindingObject)
	if !ok {
		return 0, fmt.Errorf("copy binding %s: a %T is no binding", b.GetName(), before)
	}
	*b.BindingStatus() = status
	err := c.Client.Status().Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("write the status of binding %s: %w", b.GetName(), err)
	}
	c.Tracker.Wrote(b)
	return 0, nil
}

// patience is how long to wait for the agent's answer before the status is written.
func (c *Controller) patience(b placementv1.BindingObject, o observed) time.Duration {
	waiting := false
	for _, w := range o.works {
		outcome, _ := appliedOutcome(w)
		switch outcome {
		case outcomeFailed:
			return 0
		case outcomeWaiting:
			waiting = true
		case outcomeDone:
			waiting = waiting || current(w, placementv1.ConditionAvailable) == nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wrote, recently := c.wrote[b.GetUID()]
	if !waiting || !recently || o.problem != nil {
		delete(c.wrote, b.GetUID())
		return 0
	}
	if left := wrote.Add(answerTime).Sub(o.now); left > 0 {
		return left
	}
	delete(c.wrote, b.GetUID())
	return 0
}

func (c *Controller) noteWrite(b placementv1.BindingObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote[b.GetUID()] = c.Clock.Now()
}
