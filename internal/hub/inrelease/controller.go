// Package inrelease writes on each Kruise Rollout of the hub in which clusters it is in the middle of a release. An admission policy
// goes by that: a Rollout that is deleted meanwhile would finish a release that nobody has approved.
package inrelease

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	// workers is how many Rollouts are looked at at once.
	workers = 2
	// byRollout is the index of Works by the Rollouts that they carry.
	byRollout = "inrelease.rollouts"
	// staleRetry is when to look again after the Rollout was written by somebody else at the same moment.
	staleRetry = 50 * time.Millisecond
)

// Controller keeps the annotation fleetwright.io/in-release.
type Controller struct {
	// Client reads from the cache, which has the statuses of Works, and of Rollouts the metadata.
	Client client.Client
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &placementv1.Work{}, byRollout, func(o client.Object) []string {
		var keys []string
		for key := range statesIn(o) {
			keys = append(keys, key.String())
		}
		return keys
	})
	if err != nil {
		return fmt.Errorf("index Works by their Rollouts: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("inrelease").
		WatchesMetadata(head(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&placementv1.Work{}, handler.EnqueueRequestsFromMapFunc(toRollouts), builder.WithPredicates(whenOtherwise())).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of Rollouts in release: %w", err)
	}
	return nil
}

// head is a Rollout's metadata.
func head() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kruise.Rollouts)
	return o
}

func toRollouts(_ context.Context, o client.Object) []ctrl.Request {
	var requests []ctrl.Request
	for key := range statesIn(o) {
		requests = append(requests, ctrl.Request{NamespacedName: key})
	}
	return requests
}

// whenOtherwise lets pass Works whose Rollouts are otherwise than before. At the start each Rollout is looked at by itself.
func whenOtherwise() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return !maps.Equal(statesIn(e.ObjectOld), statesIn(e.ObjectNew)) },
	}
}

// state is how a Rollout is in one cluster.
type state int

const (
	unknown state = iota // the cluster has not said, or could not apply it as it is now
	atRest
	inRelease
)

// statesIn tells how the Rollouts are that a Work carries. What is in an envelope is no object of the hub.
func statesIn(o client.Object) map[client.ObjectKey]state {
	work, ok := o.(*placementv1.Work)
	if !ok || work.Labels[placementv1.LabelEnvelopeType] != "" || work.Spec.ApplyStrategy.ReportsOnly() {
		return nil
	}
	var states map[client.ObjectKey]state
	for i := range work.Status.ManifestConditions {
		m := &work.Status.ManifestConditions[i]
		if !kruise.IsRollout(schema.GroupKind{Group: m.Identifier.Group, Kind: m.Identifier.Kind}) {
			continue
		}
		if states == nil {
			states = map[client.ObjectKey]state{}
		}
		states[client.ObjectKey{Namespace: m.Identifier.Namespace, Name: m.Identifier.Name}] = stateOf(m)
	}
	return states
}

func stateOf(m *placementv1.ManifestCondition) state {
	c := meta.FindStatusCondition(m.Conditions, placementv1.ConditionAvailable)
	switch {
	case c == nil:
		return unknown
	case c.Status == metav1.ConditionFalse && (c.Reason == placementv1.ReasonManifestPaused || c.Reason == placementv1.ReasonManifestUpdatedByRollout):
		return inRelease
	default:
		return atRest
	}
}

// Reconcile writes on one Rollout where it is in release, if that is not what stands there.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	rollout := head()
	if err := c.Client.Get(ctx, request.NamespacedName, rollout); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // one of a member's own, or gone
	}
	var works placementv1.WorkList
	if err := c.Client.List(ctx, &works, listing.Shared, client.MatchingFields{byRollout: request.String()}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the Works that carry Rollout %s: %w", request, err)
	}
	before := rollout.GetAnnotations()[placementv1.AnnotationInRelease]
	after := clusters(before, works.Items, request.NamespacedName)
	if after == before {
		return ctrl.Result{}, nil
	}
	changed := rollout.DeepCopy()
	annotations := maps.Clone(changed.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[placementv1.AnnotationInRelease] = after; after == "" {
		delete(annotations, placementv1.AnnotationInRelease)
	}
	changed.SetAnnotations(annotations)
	err := c.Client.Patch(ctx, changed, client.MergeFromWithOptions(rollout, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil // the cache is behind
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("write on Rollout %s in which clusters it is in release: %w", request, err)
	}
	return ctrl.Result{}, nil
}

// clusters names the clusters in which a Rollout is in release. One that does not say stays what it was.
func clusters(before string, works []placementv1.Work, key client.ObjectKey) string {
	was := strings.Split(before, ",")
	var names []string
	for i := range works {
		name := strings.TrimPrefix(works[i].Namespace, placementv1.MemberNamespacePrefix)
		if s := statesIn(&works[i])[key]; s == inRelease || (s == unknown && slices.Contains(was, name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}
