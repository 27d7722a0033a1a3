package work

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	t.Parallel()
	var p patience
	now := time.Unix(1000, 0)
	steps := []struct {
		after, allowed, want time.Duration
	}{
		{0, answerTime, answerTime}, // begins to wait
		{100 * time.Millisecond, answerTime, answerTime - 100*time.Millisecond}, // goes on, whatever happens in between
		{50 * time.Millisecond, 0, -150 * time.Millisecond},                     // what is settled need not wait
		{100 * time.Millisecond, answerTime, 0},                                 // has waited long enough
	}
	for i, s := range steps {
		now = now.Add(s.after)
		if got := p.wait("b", s.allowed, now); got != s.want {
			t.Errorf("step %d: wait %v, want %v", i, got, s.want)
		}
	}
	p.forget("b")
	if got := p.wait("b", answerTime, now); got != answerTime {
		t.Errorf("after it was forgotten: wait %v, want all of it", got)
	}
	if p.forget("b"); len(p.since) != 0 {
		t.Errorf("what is settled takes memory: %v", p.since)
	}
}
