package division

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule/division"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// move turns the shares that were decided into those that clusters have now, so that what shrinks waits for what grows. Copies that
// each have all replicas do not wait for one another.
func (c *Controller) move(ctx context.Context, p *pass, f *fleet, shares map[string]share) error {
	if p.replicas == nil || strategy(p.spec().Placement.ReplicaScheduling) == division.Duplicated {
		c.moving.set(p.key(), false)
		return nil
	}
	held, err := c.held(ctx, p, f)
	if err != nil {
		return err
	}
	target := make(map[string]int32, len(shares))
	for cluster, s := range shares {
		target[cluster] = ptr.Deref(s.replicas, 0)
	}
	now, settled := division.Next(target, held)
	var waiting []string
	for _, cluster := range slices.Sorted(maps.Keys(now)) {
		s, stays := shares[cluster]
		if now[cluster] == ptr.Deref(s.replicas, 0) && stays {
			continue
		}
		waiting = append(waiting, fmt.Sprintf("%s keeps %d for now, and is to have %d", cluster, now[cluster], target[cluster]))
		if !stays {
			s = share{cluster: f.known[cluster], reason: "its replicas are moving to other clusters"}
		}
		s.replicas = ptr.To(now[cluster])
		shares[cluster] = s
	}
	c.moving.set(p.key(), !settled)
	if !settled {
		p.addNote("replicas are moving, and wait for as many to be ready in the clusters that they move to: " + strings.Join(waiting, ", "))
	}
	return nil
}

// held is what the clusters have at the moment, and how many of it is ready.
func (c *Controller) held(ctx context.Context, p *pass, f *fleet) ([]division.Held, error) {
	held := make([]division.Held, 0, len(p.bindings))
	for _, b := range p.bindings {
		cluster := b.BindingSpec().TargetCluster
		known := f.known[cluster]
		if known == nil || !b.GetDeletionTimestamp().IsZero() {
			continue
		}
		h := division.Held{Cluster: cluster, Given: ptr.Deref(b.BindingSpec().Replicas, 0)}
		if known.Disconnected == "" && !known.Leaving {
			ready, err := c.ready(ctx, p, cluster)
			if err != nil {
				return nil, err
			}
			h.Ready = min(ready, h.Given)
		}
		held = append(held, h)
	}
	return held, nil
}

// ready is how many replicas a cluster reports to be ready.
func (c *Controller) ready(ctx context.Context, p *pass, cluster string) (int32, error) {
	w := &placementv1.Work{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: placement.MemberNamespace(cluster), Name: placement.WorkName(p.key(), 0)}, w, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the Work of %s in cluster %s: %w", p.key(), cluster, err)
	}
	for i := range w.Status.ManifestConditions {
		m := &w.Status.ManifestConditions[i]
		if m.Identifier.Kind != p.object.GetKind() || m.Identifier.Name != p.object.GetName() || m.BackReportedStatus == nil {
			continue
		}
		var reported struct {
			Status struct {
				ReadyReplicas int32 `json:"readyReplicas"`
				Ready         int32 `json:"ready"` // of a Job
			} `json:"status"`
		}
		if err := json.Unmarshal(m.BackReportedStatus.ObservedStatus.Raw, &reported); err != nil {
			return 0, nil //nolint:nilerr // what cannot be read is not known to be ready
		}
		return max(reported.Status.ReadyReplicas, reported.Status.Ready), nil
	}
	return 0, nil
}

// addNote says something more in the condition that tells of the decision.
func (p *pass) addNote(note string) {
	for i := range p.status.Conditions {
		if c := &p.status.Conditions[i]; c.Type == policyv1alpha1.ConditionScheduled {
			c.Message += "; " + note
		}
	}
}

// moving are the internal placements whose replicas are on the move: they are looked at again when clusters report. Its zero value is
// ready for use.
type moving struct {
	mu  sync.Mutex
	all map[types.NamespacedName]bool
}

func (m *moving) set(key types.NamespacedName, moves bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !moves {
		delete(m.all, key)
		return
	}
	if m.all == nil {
		m.all = map[types.NamespacedName]bool{}
	}
	m.all[key] = true
}

func (m *moving) has(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[key]
}
