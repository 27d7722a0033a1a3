package membercluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// missedPeriods is how many heartbeats an agent may miss before it counts as lost.
const missedPeriods = 3

// conflictMemory is how long a second cluster's attempt to sign in is told of after it was last seen.
const conflictMemory = 15 * time.Minute

// liveness remembers when each cluster last gave a sign of life, by this process's own clock: an agent's clock may be
// wrong. Nothing of it is stored. After a restart every cluster is taken as just seen, but one that was lost stays lost
// until it gives a sign.
type liveness struct {
	mu       sync.Mutex
	clusters map[string]*signs
}

// signs are what was seen of one cluster.
type signs struct {
	uid types.UID // of the MemberCluster
	// last is when a sign of life was last seen, or when the watch for one began.
	last time.Time
	// seen tells whether one was seen since this process began.
	seen bool
	// renewal is the newest renewal of the Lease that was seen, as the agent's clock has it: told apart, never compared
	// with ours.
	renewal time.Time
	// suspected and confirmed are when, after two missed periods, the hub's API server itself first and last confirmed that
	// there was nothing new; zero if it has not. Without that, an outage of the hub, after which caches are late, would look
	// like the loss of every member.
	suspected, confirmed time.Time
	// lost is the last verdict.
	lost bool
	// otherID is a second cluster that signed in under the name, and otherSeen when it was last seen.
	otherID   string
	otherSeen time.Time
}

// verdict is what is to be thought of a cluster's silence.
type verdict struct {
	// lost says that the agent counts as lost.
	lost bool
	// since is when the last sign was seen; zero if that was before this process began.
	since time.Time
	// confirm asks for a live read that confirms the silence.
	confirm bool
	// again is after how long to judge again; 0 means: when something is seen.
	again time.Duration
}

// of returns the signs of a cluster, from now on if there are none yet. The lock is held.
func (l *liveness) of(name string, uid types.UID, now time.Time) *signs {
	if l.clusters == nil {
		l.clusters = map[string]*signs{}
	}
	s := l.clusters[name]
	if s == nil || (uid != "" && s.uid != "" && s.uid != uid) {
		s = &signs{last: now}
		l.clusters[name] = s
	}
	if uid != "" {
		s.uid = uid
	}
	return s
}

// sign notes a sign of life, and tells whether the cluster was lost until now. If it is a renewal of the Lease, renewal is
// the time that it names.
func (l *liveness) sign(name string, renewal, now time.Time) (wasLost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(name, "", now).sign(renewal, now)
}

func (s *signs) sign(renewal, now time.Time) (wasLost bool) {
	wasLost, s.lost = s.lost, false
	s.last, s.seen, s.suspected, s.confirmed = now, true, time.Time{}, time.Time{}
	if !renewal.IsZero() {
		s.renewal = renewal
	}
	return wasLost
}

// confirm compares the renewal that was just read live with what was seen; before this process has seen any, with what the
// cache has. A newer one is a sign of life whose event is late.
func (l *liveness) confirm(name string, live, cached, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of(name, "", now)
	known := s.renewal
	if known.IsZero() {
		known = cached
	}
	if !live.Equal(known) {
		s.sign(live, now)
		return
	}
	s.confirmed = now
	if s.suspected.IsZero() {
		s.suspected = now
	}
}

// judge tells what to think of a cluster whose heartbeat has the period, and that was lost before or not.
func (l *liveness) judge(name string, uid types.UID, period time.Duration, wasLost bool, now time.Time) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of(name, uid, now)
	if wasLost && !s.seen {
		s.lost = true
		return verdict{lost: true}
	}
	silent := now.Sub(s.last)
	switch {
	case silent < (missedPeriods-1)*period:
		s.lost = false
		return verdict{since: s.last, again: (missedPeriods-1)*period - silent}
	case s.suspected.IsZero():
		return verdict{lost: s.lost, since: s.last, confirm: true}
	}
	// Between the first confirmation and the verdict the hub must itself have been well for a whole period.
	due := latest(s.last.Add(missedPeriods*period), s.suspected.Add(period))
	if now.Before(due) {
		return verdict{lost: s.lost, since: s.last, again: due.Sub(now)}
	}
	if s.confirmed.Before(due) {
		return verdict{lost: s.lost, since: s.last, confirm: true}
	}
	s.lost = true
	return verdict{lost: true, since: s.last}
}

// other notes that a second cluster signed in under the name.
func (l *liveness) other(name, clusterID string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of(name, "", now)
	s.otherID, s.otherSeen = clusterID, now
}

// conflict returns the second cluster seen lately, and for how long it will still be told of. One that a predecessor of
// this process recorded (known) is told of for as long from this process's start.
func (l *liveness) conflict(name string, known bool, now time.Time) (clusterID string, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of(name, "", now)
	if s.otherSeen.IsZero() {
		if !known {
			return "", 0
		}
		s.otherSeen = now
	}
	return s.otherID, max(0, s.otherSeen.Add(conflictMemory).Sub(now))
}

// forget drops what is known of a cluster that is gone.
func (l *liveness) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clusters, name)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
