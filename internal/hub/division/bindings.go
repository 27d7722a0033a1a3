package division

import (
	"context"
	"fmt"
	"maps"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writers is how many bindings of one object are written at once.
const writers = 16

// share is what one cluster is to have now.
type share struct {
	cluster  *schedule.Cluster
	replicas *int32
	reason   string
}

// bind makes the bindings what the shares say. New ones and changed ones are written before others are given up.
func (c *Controller) bind(parent context.Context, p *pass, shares map[string]share) error {
	standing := map[string]placementv1.BindingObject{}
	for _, b := range p.bindings {
		standing[b.BindingSpec().TargetCluster] = b
	}
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(writers)
	for _, cluster := range slices.Sorted(maps.Keys(shares)) {
		s, b := shares[cluster], standing[cluster]
		group.Go(func() error {
			switch {
			case b == nil:
				return c.makeBinding(ctx, p, s)
			case !b.GetDeletionTimestamp().IsZero():
				return nil // it is made again when it is gone
			}
			return c.changeBinding(ctx, p, b, s)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	group, ctx = errgroup.WithContext(parent)
	group.SetLimit(writers)
	for _, b := range p.bindings {
		if _, wanted := shares[b.BindingSpec().TargetCluster]; !wanted {
			group.Go(func() error { return c.giveUp(ctx, b) })
		}
	}
	return group.Wait()
}

// fill puts into a binding all that follows from the share and the policy.
func (p *pass) fill(b placementv1.BindingObject, s share) {
	labels, annotations := maps.Clone(b.GetLabels()), maps.Clone(b.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[placementv1.LabelParentObject] = p.placement.GetName()
	annotations[placementv1.AnnotationPlacementUID] = string(p.placement.GetUID())
	annotations[placementv1.AnnotationClusterUID] = string(s.cluster.UID)
	b.SetLabels(labels)
	b.SetAnnotations(annotations)
	if !slices.Contains(b.GetFinalizers(), placementv1.FinalizerWorkCleanup) {
		b.SetFinalizers(append(slices.Clone(b.GetFinalizers()), placementv1.FinalizerWorkCleanup))
	}
	spec := b.BindingSpec()
	spec.State = placementv1.BindingStateBound
	spec.TargetCluster = s.cluster.Name
	spec.ClusterDecision = placementv1.ClusterDecision{ClusterName: s.cluster.Name, Selected: true, Reason: s.reason}
	spec.ApplyStrategy = applyStrategy(p.spec())
	spec.ReportBackStrategy = &placementv1.ReportBackStrategy{
		Type: placementv1.ReportBackStrategyTypeMirror, Destination: placementv1.ReportBackDestinationWorkAPI,
	}
	spec.Replicas = s.replicas
	spec.Suspended = suspended(p.spec().Suspension, s.cluster.Name)
}

// applyStrategy takes over what is in a member and not the fleet's where the policy says so alone.
func applyStrategy(spec *policyv1alpha1.ObjectPlacementSpec) *placementv1.ApplyStrategy {
	strategy := &placementv1.ApplyStrategy{
		Type: placementv1.ApplyStrategyTypeServerSideApply, ServerSideApplyConfig: &placementv1.ServerSideApplyConfig{Force: true},
		WhenToTakeOver: placementv1.WhenToTakeOverTypeNever,
	}
	strategy.AllowCoOwnership = spec.PropagateDeps // others may need the same ConfigMap
	if spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
		strategy.WhenToTakeOver = placementv1.WhenToTakeOverTypeAlways
	}
	full := strategy.WithDefaults()
	return &full
}

// suspended tells whether a cluster is to keep what it has.
func suspended(s *policyv1alpha1.Suspension, cluster string) bool {
	return s != nil && (ptr.Deref(s.Dispatching, false) || s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster))
}

func (c *Controller) makeBinding(ctx context.Context, p *pass, s share) error {
	b := c.Carriage.NewBinding()
	b.SetNamespace(p.placement.GetNamespace())
	b.SetName(placement.BindingName(p.key(), s.cluster.Name))
	p.fill(b, s)
	key := client.ObjectKeyFromObject(b)
	if c.made.Has(key, c.Clock.Now()) {
		return errStale
	}
	c.made.Add(key, c.Clock.Now())
	err := c.Client.Create(ctx, b)
	if err == nil {
		return nil
	}
	c.made.Remove(key)
	if apierrors.IsAlreadyExists(err) {
		return c.reclaim(ctx, p, b, s)
	}
	return fmt.Errorf("make the binding of %s to cluster %s: %w", p.key(), s.cluster.Name, err)
}

// reclaim is for a binding that is there though the cache does not list it: it was made just now, or somebody has taken the label
// off it by which it is found.
func (c *Controller) reclaim(ctx context.Context, p *pass, wanted placementv1.BindingObject, s share) error {
	live := c.Carriage.NewBinding()
	if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), live); err != nil {
		if apierrors.IsNotFound(err) {
			return errStale
		}
		return fmt.Errorf("read binding %s, which exists already: %w", wanted.GetName(), err)
	}
	if live.GetLabels()[placementv1.LabelParentObject] == p.placement.GetName() {
		return errStale
	}
	if live.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.placement.GetUID()) {
		return fmt.Errorf("binding %s was not made for this object, and has the name that its binding is to have: delete it", live.GetName())
	}
	return c.changeBinding(ctx, p, live, s)
}

func (c *Controller) changeBinding(ctx context.Context, p *pass, b placementv1.BindingObject, s share) error {
	changed, ok := b.DeepCopyObject().(placementv1.BindingObject)
	if !ok {
		return fmt.Errorf("copy binding %s: a %T is no binding", b.GetName(), b)
	}
	p.fill(changed, s)
	if equality.Semantic.DeepEqual(b, changed) {
		return nil
	}
	if err := c.Client.Update(ctx, changed); err != nil {
		if apierrors.IsNotFound(err) {
			return errStale
		}
		return fmt.Errorf("change binding %s: %w", b.GetName(), err)
	}
	c.tracker.Wrote(changed)
	return nil
}

// giveUp has a cluster's copy removed: the binding says first that this is meant, and then goes.
func (c *Controller) giveUp(ctx context.Context, b placementv1.BindingObject) error {
	if !b.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if b.BindingSpec().State != placementv1.BindingStateUnscheduled {
		changed, ok := b.DeepCopyObject().(placementv1.BindingObject)
		if !ok {
			return fmt.Errorf("copy binding %s: a %T is no binding", b.GetName(), b)
		}
		changed.BindingSpec().State = placementv1.BindingStateUnscheduled
		if err := c.Client.Update(ctx, changed); err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("give up binding %s: %w", b.GetName(), err)
		}
		b = changed
	}
	return c.deleteBinding(ctx, b)
}

func (c *Controller) deleteBinding(ctx context.Context, b placementv1.BindingObject) error {
	err := c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete binding %s: %w", b.GetName(), err)
	}
	return nil
}
