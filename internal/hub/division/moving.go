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
	"github.com/fleetwright/fleetwright/internal/schedule/ledger"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// move turns the shares that were decided into those that clusters have now, so that what shrinks waits for what grows. Copies that
// each have all replicas do not wait for one another.
func (c *Controller) move(p *pass, f *fleet, shares map[string]share) {
	if p.replicas == nil || strategy(p.spec().Placement.ReplicaScheduling) == division.Duplicated {
		c.moving.set(p.key(), false)
		return
	}
	target := make(map[string]int32, len(shares))
	for cluster, s := range shares {
		target[cluster] = ptr.Deref(s.replicas, 0)
	}
	now, settled := division.Next(target, p.held(f))
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
}

// stay leaves every cluster with what it has at the moment: a release is in progress, and each move would make its batch begin again.
func (p *pass) stay(f *fleet, shares map[string]share) {
	given := map[string]*int32{}
	for _, b := range p.bindings {
		if b.GetDeletionTimestamp().IsZero() {
			given[b.BindingSpec().TargetCluster] = b.BindingSpec().Replicas
		}
	}
	maps.DeleteFunc(shares, func(cluster string, _ share) bool { _, has := given[cluster]; return !has })
	for cluster, replicas := range given {
		if known := f.known[cluster]; known != nil {
			shares[cluster] = share{cluster: known, replicas: replicas, reason: "a release is in progress: nothing moves until it is over"}
		}
	}
}

// held is what the clusters have at the moment, and how many of it is ready.
func (p *pass) held(f *fleet) []division.Held {
	held := make([]division.Held, 0, len(p.bindings))
	for _, b := range p.bindings {
		cluster := b.BindingSpec().TargetCluster
		known := f.known[cluster]
		if known == nil || !b.GetDeletionTimestamp().IsZero() {
			continue
		}
		h := division.Held{Cluster: cluster, Given: ptr.Deref(b.BindingSpec().Replicas, 0)}
		if known.Disconnected == "" && !known.Leaving {
			h.Ready = min(p.told[cluster].ready, h.Given)
		}
		held = append(held, h)
	}
	return held
}

// told is what a cluster's agent says of the object.
type told struct {
	// ready is how many replicas are.
	ready int32
	// inRelease tells that the object is in the middle of a release there, in batches of pods.
	inRelease bool
	// made is how many pods of it the cluster has made, and when it said so.
	made ledger.Made
	// unschedulable is how many replicas have found no node for a while.
	unschedulable int32
}

// listen reads what the agents say of the object.
func (c *Controller) listen(ctx context.Context, p *pass) error {
	p.told = make(map[string]told, len(p.bindings))
	for _, b := range p.bindings {
		cluster := b.BindingSpec().TargetCluster
		w := &placementv1.Work{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: placement.MemberNamespace(cluster), Name: placement.WorkName(p.key(), 0)}, w, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the Work of %s in cluster %s: %w", p.key(), cluster, err)
		}
		for i := range w.Status.ManifestConditions {
			m := &w.Status.ManifestConditions[i]
			if m.Identifier.Kind == p.object.GetKind() && m.Identifier.Name == p.object.GetName() {
				p.told[cluster] = toldIn(m)
			}
		}
	}
	return nil
}

// inRelease tells whether an agent holds the object for one that is in the middle of a release.
func inRelease(m *placementv1.ManifestCondition) bool {
	c := meta.FindStatusCondition(m.Conditions, placementv1.ConditionAvailable)
	return c != nil && c.Status == metav1.ConditionFalse && (c.Reason == placementv1.ReasonManifestPaused || c.Reason == placementv1.ReasonManifestUpdatedByRollout)
}

// toldIn reads what an agent says; what cannot be read is not known to be. Pods that wait for a node are not made.
func toldIn(m *placementv1.ManifestCondition) told {
	t := told{inRelease: inRelease(m), unschedulable: m.UnschedulableReplicas}
	var reported struct {
		Status struct {
			Replicas      int32 `json:"replicas"`
			ReadyReplicas int32 `json:"readyReplicas"`
			Active        int32 `json:"active"` // this and the next are a Job's
			Ready         int32 `json:"ready"`
		} `json:"status"`
	}
	if m.BackReportedStatus == nil || json.Unmarshal(m.BackReportedStatus.ObservedStatus.Raw, &reported) != nil {
		return t
	}
	s := &reported.Status
	t.ready = max(s.ReadyReplicas, s.Ready)
	t.made = ledger.Made{Pods: max(max(s.Replicas, s.Active)-t.unschedulable, 0), At: m.BackReportedStatus.ObservationTime.Time}
	return t
}

// releasing tells whether a cluster is in the middle of a release of the object.
func (p *pass) releasing() bool {
	for _, t := range p.told {
		if t.inRelease {
			return true
		}
	}
	return false
}

// addNote says something more in the condition that tells of the decision.
func (p *pass) addNote(note string) {
	for i := range p.status.Conditions {
		if c := &p.status.Conditions[i]; c.Type == policyv1alpha1.ConditionScheduled {
			c.Message += "; " + note
		}
	}
}

// keys are internal placements. The zero value is ready for use.
type keys struct {
	mu  sync.Mutex
	all map[types.NamespacedName]bool
}

func (k *keys) set(key types.NamespacedName, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !is {
		delete(k.all, key)
		return
	}
	if k.all == nil {
		k.all = map[types.NamespacedName]bool{}
	}
	k.all[key] = true
}

func (k *keys) has(key types.NamespacedName) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[key]
}

// tell has all of them looked at, but for one.
func (k *keys) tell(but types.NamespacedName, look func(ctrl.Request)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.all {
		if key != but {
			look(ctrl.Request{NamespacedName: key})
		}
	}
}
