package work

import (
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPatience(t *testing.T) {
	t.Parallel()
	var p patience
	now := time.Unix(1000, 0)
	steps := []struct {
		after, allowed, want time.Duration
	}{
		{0, availableTime, availableTime},                                             // begins to wait
		{100 * time.Millisecond, availableTime, availableTime - 100*time.Millisecond}, // goes on, whatever happens in between
		{50 * time.Millisecond, 0, -150 * time.Millisecond},                           // what is settled need not wait
		{100 * time.Millisecond, availableTime, 0},                                    // has waited long enough
	}
	for i, s := range steps {
		now = now.Add(s.after)
		if got := p.wait("b", s.allowed, now); got != s.want {
			t.Errorf("step %d: wait %v, want %v", i, got, s.want)
		}
	}
	p.forget("b")
	if got := p.wait("b", availableTime, now); got != availableTime {
		t.Errorf("after it was forgotten: wait %v, want all of it", got)
	}
	if p.forget("b"); len(p.since) != 0 {
		t.Errorf("what is settled takes memory: %v", p.since)
	}
}

// TestUnansweredWaitsLongest: one write tells of a new snapshot and of the agent's answer, unless that takes long.
func TestUnansweredWaitsLongest(t *testing.T) {
	t.Parallel()
	b := boundBinding()
	works := []*placementv1.Work{said("w", []metav1.Condition{
		cond(placementv1.ConditionApplied, "True", placementv1.ReasonAllManifestsApplied, "", 2),
		cond(placementv1.ConditionAvailable, "True", placementv1.ReasonAllManifestsAvailable, "", 2)})}
	done := statusOf(observed{binding: b, index: "1", works: works})
	unanswered := statusOf(observed{binding: b, index: "2", works: []*placementv1.Work{said("w", nil)}})
	if got := urgency(&done, &unanswered); got != answerTime {
		t.Errorf("that the agent has not answered waits %v, want %v", got, answerTime)
	}
	if got := urgency(&unanswered, &done); got != 0 {
		t.Errorf("the answer waits %v", got)
	}
}
