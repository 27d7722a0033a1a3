package placement

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// statusPeriod is the shortest time between two writes of a placement's status. The first change is written at once.
	statusPeriod = 250 * time.Millisecond
	// progressPeriod is the same where nothing is new but how far clusters are that go their way.
	progressPeriod = time.Second
	// catchUp is how long the cache is given to show a revision that we made.
	catchUp = 2 * time.Second
	// unreadableRetry is when to read a snapshot again that could not be read. Nothing tells when it can be.
	unreadableRetry = 2 * time.Second
)

// report writes the placement's status, where it differs. It returns when to look again, 0 for not before something
// changes.
func (c *Controller) report(ctx context.Context, key model.Key, p placementv1.PlacementObject, policy placementv1.PolicySnapshotObject, m *memory) (time.Duration, error) {
	if m.evaluated != p.GetGeneration() {
		return 0, nil // the evaluation is due in a moment, and brings the next pass
	}
	now := c.Clock.Now()
	if after := later(m.written, m.looked).Add(statusPeriod).Sub(now); after > 0 {
		return after, nil
	}
	in := rollup.Input{Kinds: c.Kinds, Placement: p, Policy: policy, Problem: cmp.Or(m.obstacle, m.problem), Unmatched: m.unmatched, Now: now}
	groups, err := c.observe(ctx, key, p, &in)
	if err != nil {
		return 0, err
	}
	if m.revision != nil && (in.Latest == nil || in.Latest.Index < m.revision.Index) && now.Sub(m.revised) < catchUp {
		return m.revised.Add(catchUp).Sub(now), nil // the snapshot's event brings the next pass, or else it is gone again
	}
	if again, err := c.repair(ctx, key, p, groups, m); err != nil || again > 0 {
		return again, err
	}
	retry := enqueue.Soonest(c.describe(ctx, p, &in), c.observeOverrides(ctx, p, &in, m))
	status := rollup.Status(in)
	m.foundNothing = rollup.FoundNothing(in)
	if after := m.written.Add(progressPeriod).Sub(now); after > 0 && rollup.MayWait(c.Kinds.ConditionPrefix, p.PlacementStatus(), &status) &&
		!equality.Semantic.DeepEqual(*p.PlacementStatus(), c.withSynced(p, status)) {
		m.looked = now
		return enqueue.Soonest(retry, after), nil
	}
	again, err := c.share(ctx, p, &status)
	if err != nil {
		return 0, err
	}
	retry = enqueue.Soonest(retry, again)
	if err := c.write(ctx, key, p, status, m); err != nil {
		return 0, err
	}
	return retry, c.keepLast(ctx, p, &status, groups)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// observe fills in what the cache knows of the placement's bindings and resource snapshots.
func (c *Controller) observe(ctx context.Context, key model.Key, p placementv1.PlacementObject, in *rollup.Input) ([]snapshot.Group, error) {
	bindings, err := listing.Bindings(ctx, c.Client, &c.Kinds.Carriage, key, listing.Shared)
	if err != nil {
		return nil, err
	}
	for _, b := range bindings {
		if b.GetAnnotations()[placementv1.AnnotationPlacementUID] == string(p.GetUID()) {
			in.Bindings = append(in.Bindings, b)
		}
	}
	objects, err := listing.ResourceSnapshots(ctx, c.Client, &c.Kinds.Carriage, key, listing.Shared)
	if err != nil {
		return nil, err
	}
	created := map[string]metav1.Time{}
	var own []placementv1.ResourceSnapshotObject
	for _, o := range objects {
		if snapshots.BelongsTo(o, p) {
			own = append(own, o)
			created[o.GetName()] = o.GetCreationTimestamp()
		}
	}
	groups := snapshot.Groups(own)
	latest := snapshot.Latest(groups)
	if latest == nil {
		return groups, nil
	}
	in.Latest = &rollup.Revision{Index: latest.Index, Created: created[latest.Master]}
	return groups, nil
}

// observeOverrides fills in which overrides the clusters of a rolling update are to get. It returns when to look again, where
// that could not be found out; the status then says nothing of them. That an override has yet to be recorded is said once it
// lasts: mostly it takes a moment.
func (c *Controller) observeOverrides(ctx context.Context, p placementv1.PlacementObject, in *rollup.Input, m *memory) time.Duration {
	if p.PlacementSpec().IsExternal() || in.Latest == nil {
		return 0
	}
	var err error
	in.Overrides, err = c.Overrides.ByCluster(ctx, c.Client, c.Client, p, model.ResourceSnapshotName(p.GetName(), in.Latest.Index))
	since := m.pending
	m.pending = time.Time{}
	switch {
	case err == nil:
		return 0
	case overrides.IsPending(err):
		if m.pending = since; since.IsZero() {
			m.pending = in.Now
		}
		if in.Now.Sub(m.pending) >= overrides.PendingRetry {
			in.Waiting = err.Error()
		}
		return overrides.PendingRetry
	default:
		log.FromContext(ctx).Info("The status does not tell who waits for overrides", "reason", err.Error())
		return unreadableRetry
	}
}

// repair sees to it that the newest revision is what it is said to be: a hub that stopped between two writes may have
// left no latest one, and people may have deleted it. Where update runs move the clusters the label is for people and tools,
// and goes to the newest that is left. Otherwise clusters follow the label, so an older revision never gets it: what is
// selected is looked at again. It returns when to do so.
func (c *Controller) repair(ctx context.Context, key model.Key, p placementv1.PlacementObject, groups []snapshot.Group, m *memory) (time.Duration, error) {
	latest := snapshot.Latest(groups)
	switch external := p.PlacementSpec().IsExternal(); {
	case external && (latest == nil || labelled(groups) == latest.Master):
		return 0, nil
	case external:
		return 0, c.Snapshots.RepairLatest(ctx, p)
	case m.revision == nil || (latest != nil && latest.Index >= m.revision.Index && labelled(groups) == latest.Master):
		return 0, nil
	}
	m.revision = nil
	c.quiet.touch(key)
	return quietFor, nil
}

// labelled is the name of the one snapshot that is labelled as the latest; "" where there is none, or more than one.
func labelled(groups []snapshot.Group) string {
	var all []string
	for i := range groups {
		all = append(all, groups[i].Latest...)
	}
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// describe fills in the contents of the snapshot that the status tells of. What the status has of it stays true, since a
// snapshot never changes. It returns when to read them again, where they could not be read; 0 where they were.
func (c *Controller) describe(ctx context.Context, p placementv1.PlacementObject, in *rollup.Input) time.Duration {
	index := rollup.ObservedIndex(*in)
	if status := p.PlacementStatus(); index == "" || index == status.ObservedResourceIndex {
		in.Selected = rollup.Selected{Resources: status.SelectedResources, Count: status.SelectedResourceCount}
		return 0
	}
	number, err := strconv.Atoi(index)
	if err == nil {
		in.Selected.Resources, err = c.Snapshots.Contents(ctx, p, number)
	}
	if err != nil {
		log.FromContext(ctx).Info("The status does not list what is selected", "reason", err.Error())
		in.Selected.Unreadable = true
		return unreadableRetry
	}
	in.Selected.Count = int32(len(in.Selected.Resources)) //nolint:gosec // a snapshot has fewer than 2^31 objects
	return 0
}

// write writes a status, where it differs from what the placement has, and tells of what has changed.
func (c *Controller) write(ctx context.Context, key model.Key, p placementv1.PlacementObject, status placementv1.PlacementStatus, m *memory) error {
	c.measure(key, &status)
	before := *p.PlacementStatus()
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	*p.PlacementStatus() = status
	if err := c.Client.Status().Update(ctx, p); err != nil {
		return fmt.Errorf("write the status of %s %s: %w", c.Kinds.Placement, key, err)
	}
	c.Tracker.Wrote(p)
	m.written = c.Clock.Now()
	c.tell(p, &before, &status, m)
	return nil
}

// keepLast notes which revision was the last to be available in all clusters, so that it is kept.
func (c *Controller) keepLast(ctx context.Context, p placementv1.PlacementObject, status *placementv1.PlacementStatus, groups []snapshot.Group) error {
	if !rollup.Available(c.Kinds.ConditionPrefix, status) {
		return nil
	}
	index, err := strconv.Atoi(status.ObservedResourceIndex)
	if err != nil {
		return fmt.Errorf("read the index of the observed resource snapshot: %w", err)
	}
	for i := range groups {
		if groups[i].Index == index && groups[i].Master != "" && !groups[i].LastAvailable {
			return c.Snapshots.MarkAvailable(ctx, p, index)
		}
	}
	return nil
}
