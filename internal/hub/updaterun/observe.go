package updaterun

import (
	"context"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/fleetwright/fleetwright/internal/schedule"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe reads what the next decision about the runs depends on. While no run is on its way, that is nothing but the runs.
func (c *Controller) observe(ctx context.Context, key placement.Key, runs []placementv1.UpdateRunObject) (*engine.World, error) {
	w := &engine.World{
		Kinds: c.Kinds, Key: key, Now: c.Clock.Now(), Runs: runs,
		Plans: map[types.UID]engine.Plan{}, Requests: map[string]placementv1.ApprovalRequestObject{},
	}
	active := engine.Active(runs)
	if len(active) == 0 {
		return w, nil
	}
	var err error
	if w.Placement, err = c.placement(ctx, c.Client, key); err != nil {
		return nil, err
	}
	if w.Placement == nil { // ends the run, so the cache's word is not enough
		if w.Placement, err = c.placement(ctx, c.APIReader, key); err != nil {
			return nil, err
		}
	}
	if w.Bindings, err = listing.Bindings(ctx, c.Client, &c.Kinds.Carriage, key, listing.Shared); err != nil {
		return nil, err
	}
	for _, b := range w.Bindings {
		if c.Tracker.Behind(b) {
			return nil, errBehind
		}
	}
	clusters, err := c.clusters(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	for _, run := range active {
		if err := c.readRequests(ctx, run, w.Requests); err != nil {
			return nil, err
		}
		if clusters, err = c.confirm(ctx, run, w, clusters); err != nil {
			return nil, err
		}
	}
	w.Fleet = schedule.NewFleet(clusters)
	if w.Overrides, err = overrides.Known(ctx, c.Client, c.APIReader, active); err != nil {
		return nil, err
	}
	return w, nil
}

// placement reads a placement; nil where there is none.
func (c *Controller) placement(ctx context.Context, r client.Reader, key placement.Key) (placementv1.PlacementObject, error) {
	p := c.Kinds.NewPlacement()
	switch err := r.Get(ctx, key, p); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is an answer
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", c.Kinds.Placement, key, err)
	}
	return p, nil
}

func (c *Controller) clusters(ctx context.Context, r client.Reader) ([]schedule.Cluster, error) {
	var members clusterv1.MemberClusterList
	if err := r.List(ctx, &members, listing.Shared); err != nil {
		return nil, fmt.Errorf("list member clusters: %w", err)
	}
	return schedule.ObserveAll(members.Items), nil
}

// readRequests reads the approval requests of a run.
func (c *Controller) readRequests(ctx context.Context, run placementv1.UpdateRunObject, into map[string]placementv1.ApprovalRequestObject) error {
	for _, name := range engine.RequestNames(run) {
		r := c.Kinds.NewApprovalRequest()
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: run.GetNamespace(), Name: name}, r)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read %s %s: %w", c.Kinds.ApprovalRequest, name, err)
		case c.Tracker.Behind(r):
			return errBehind
		}
		into[name] = r
	}
	return nil
}

// confirm asks the API server for those bindings and members that a run waits for and the cache does not know: that one
// of them is gone skips a cluster for good.
func (c *Controller) confirm(ctx context.Context, run placementv1.UpdateRunObject, w *engine.World, clusters []schedule.Cluster) ([]schedule.Cluster, error) {
	bound, members := sets.New[string](), sets.New[string]()
	for _, b := range w.Bindings {
		bound.Insert(b.BindingSpec().TargetCluster)
	}
	for i := range clusters {
		members.Insert(clusters[i].Name)
	}
	for _, cluster := range engine.Awaited(run) {
		if !bound.Has(cluster) {
			b := c.Kinds.NewBinding()
			name := client.ObjectKey{Namespace: w.Key.Namespace, Name: placement.BindingName(w.Key, cluster)}
			if err := c.APIReader.Get(ctx, name, b); err == nil {
				w.Bindings = append(w.Bindings, b)
			} else if !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("read the binding of cluster %s: %w", cluster, err)
			}
		}
		if !members.Has(cluster) {
			m := &clusterv1.MemberCluster{}
			if err := c.APIReader.Get(ctx, client.ObjectKey{Name: cluster}, m); err == nil {
				clusters = append(clusters, schedule.Observe(m))
			} else if !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("read member cluster %s: %w", cluster, err)
			}
		}
	}
	return clusters, nil
}

// requestsOf returns the approval requests that go with a run: those that it made, and those that somebody made for its stages
// since it began.
func (c *Controller) requestsOf(ctx context.Context, run placementv1.UpdateRunObject) ([]placementv1.ApprovalRequestObject, error) {
	requests, err := listing.ApprovalRequests(ctx, c.APIReader, c.Kinds, client.InNamespace(run.GetNamespace()),
		client.MatchingLabels{placementv1.LabelTargetUpdateRun: run.GetName()})
	if err != nil {
		return nil, err
	}
	known := sets.New[string]()
	for _, r := range requests {
		known.Insert(r.GetName())
	}
	for _, name := range engine.RequestNames(run) {
		if known.Has(name) {
			continue
		}
		r := c.Kinds.NewApprovalRequest()
		err := c.APIReader.Get(ctx, client.ObjectKey{Namespace: run.GetNamespace(), Name: name}, r)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read %s %s: %w", c.Kinds.ApprovalRequest, name, err)
		default:
			requests = append(requests, r)
		}
	}
	var ours []placementv1.ApprovalRequestObject
	for _, r := range requests {
		if engine.BelongsTo(c.Kinds, r, run) {
			ours = append(ours, r)
		}
	}
	return ours, nil
}
