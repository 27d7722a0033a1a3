package work

import (
	"sync"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// answerTime is how long an agent may take to answer before the binding says that it is waited for. Most answer sooner,
	// busy ones and those far away included, and then one write tells all.
	answerTime = time.Second
	// availableTime is how long what an agent has applied may take to become available before the binding says so.
	availableTime = 250 * time.Millisecond
	// detailTime is how often a binding that stays what it is says another detail of it: a Deployment that counts its pods
	// up makes no write for each of them.
	detailTime = time.Second
)

// urgency is how long a new status may wait to be written in place of the one that is there. That a cluster is done, or
// that something fails, is said at once.
func urgency(there, status *placementv1.ResourceBindingStatus) time.Duration {
	switch {
	case sameOutcome(there, status):
		return detailTime
	case isSettled(status):
		return 0
	case isFalse(status, placementv1.ConditionApplied, placementv1.ReasonApplyInProgress),
		isFalse(status, placementv1.ConditionDiffReported, placementv1.ReasonDiffReportInProgress):
		return answerTime
	default:
		return availableTime
	}
}

// isSettled tells a status that somebody waits for, or has to do something about, from one that is on its way.
func isSettled(status *placementv1.ResourceBindingStatus) bool {
	if len(status.Conditions) == 0 || meta.IsStatusConditionTrue(status.Conditions, placementv1.ConditionAvailable) || hasFailedManifest(status) {
		return true
	}
	return meta.IsStatusConditionTrue(status.Conditions, placementv1.ConditionDiffReported) ||
		isFalse(status, placementv1.ConditionDiffReported, placementv1.ReasonNotAllWorkHaveDiffReported) ||
		isFalse(status, placementv1.ConditionWorkSynchronized, placementv1.ReasonSyncWorkFailed) ||
		isFalse(status, placementv1.ConditionApplied, placementv1.ReasonNotAllWorkHaveBeenApplied)
}

func isFalse(status *placementv1.ResourceBindingStatus, conditionType, reason string) bool {
	c := meta.FindStatusCondition(status.Conditions, conditionType)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
}

// sameOutcome tells whether two statuses differ in their texts at the most.
func sameOutcome(a, b *placementv1.ResourceBindingStatus) bool {
	if len(a.Conditions) != len(b.Conditions) || a.ObservedResourceIndex != b.ObservedResourceIndex ||
		hasFailedManifest(a) != hasFailedManifest(b) {
		return false
	}
	for i := range a.Conditions {
		x, y := &a.Conditions[i], meta.FindStatusCondition(b.Conditions, a.Conditions[i].Type)
		if y == nil || x.Status != y.Status || x.Reason != y.Reason || x.ObservedGeneration != y.ObservedGeneration {
			return false
		}
	}
	return true
}

// patience remembers since when the status of a binding is not what it should be. Its zero value is ready for use.
type patience struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// wait returns how long a status that may wait for d has still to wait.
func (p *patience) wait(binding types.UID, d time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since == nil {
		p.since = map[types.UID]time.Time{}
	}
	since, known := p.since[binding]
	if !known {
		since = now
		p.since[binding] = now
	}
	return since.Add(d).Sub(now)
}

// forget is for a binding whose status is what it should be, or that is gone.
func (p *patience) forget(binding types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, binding)
}
