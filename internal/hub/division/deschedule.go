package division

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule/division"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// DeschedulingInterval is how often replicas that find no node are moved, where Controller says nothing else.
const DeschedulingInterval = 2 * time.Minute

// EventDescheduled is the reason of the event that tells of replicas that are moved because their cluster has no node for them.
const EventDescheduled = "ReplicasDescheduled"

// deschedule divides anew what clusters have no node for, at most once in an interval, and never while a release is in progress. The
// request comes back as it is where there is nothing to move, or where nobody else has room.
func (c *Controller) deschedule(p *pass, r division.Request, result division.Result) division.Result {
	if result.Problem != nil || result.Frozen || p.replicas == nil || !r.Policy.Strategy.LooksAtRoom() {
		c.descheduled.forget(p.key())
		return result
	}
	stranded := make([]division.Stranded, 0, len(result.Shares))
	for _, s := range result.Shares {
		told := p.told[s.Cluster]
		stranded = append(stranded, division.Stranded{Cluster: s.Cluster, Given: s.Replicas, Ready: told.ready, Unschedulable: told.unschedulable})
	}
	left, taken := division.Deschedule(stranded)
	if taken == 0 {
		c.descheduled.forget(p.key())
		return result
	}
	now := c.Clock.Now()
	if due := c.descheduled.due(p.key(), now, c.interval()); due.After(now) {
		p.after = due.Sub(now)
		return result
	}
	c.descheduled.forget(p.key())
	before := map[string]int32{}
	for _, s := range result.Shares {
		before[s.Cluster] = s.Replicas
	}
	r.Current, r.Decided = left, ptr.To(*p.replicas-taken)
	r.Clusters = slices.Clone(r.Clusters)
	for i := range r.Clusters {
		if name := r.Clusters[i].Name; left[name] < before[name] {
			r.Clusters[i].Room = 0
		}
	}
	moved := division.Divide(r)
	if moved.Problem != nil {
		p.notes = append(p.notes, fmt.Sprintf("%d replicas find no node where they are, and no other cluster has room for them", taken))
		return result
	}
	p.moves(before, moved, taken, c)
	return moved
}

func (c *Controller) interval() time.Duration {
	if c.DeschedulingInterval > 0 {
		return c.DeschedulingInterval
	}
	return DeschedulingInterval
}

// moves tells of a move.
func (p *pass) moves(before map[string]int32, result division.Result, taken int32, c *Controller) {
	var from []string
	for _, s := range result.Shares {
		if s.Replicas != before[s.Cluster] {
			from = append(from, fmt.Sprintf("%s from %d to %d", s.Cluster, before[s.Cluster], s.Replicas))
		}
	}
	if c.Recorder != nil {
		c.Recorder.Eventf(p.object, p.placement, corev1.EventTypeNormal, EventDescheduled, "Divide",
			"%s", placement.Note(fmt.Sprintf("%d replicas found no node where they were, and are moved: %s", taken, strings.Join(from, ", "))))
	}
}

// deschedulings are when the objects of which replicas find no node may have them moved. Its zero value is ready for use.
type deschedulings struct {
	mu  sync.Mutex
	all map[types.NamespacedName]time.Time
}

// due is the next moment at which replicas are moved: all that have found no node are at the same moments, an interval apart.
func (d *deschedulings) due(key types.NamespacedName, now time.Time, interval time.Duration) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if due, known := d.all[key]; known {
		return due
	}
	if d.all == nil {
		d.all = map[types.NamespacedName]time.Time{}
	}
	d.all[key] = now.Truncate(interval).Add(interval)
	return d.all[key]
}

func (d *deschedulings) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, key)
}
