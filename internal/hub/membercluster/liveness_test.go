package membercluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLiveness tells stories of an agent with a heartbeat of 10 s. Each step happens at a second of the story.
func TestLiveness(t *testing.T) {
	t.Parallel()
	const period = 10 * time.Second
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type step struct {
		at int
		do string // sign, confirm (nothing new), renewed (the event of which is late), or nothing
		// wantLost, wantConfirm and wantAgain are the verdict after it.
		wantLost, wantConfirm bool
		wantAgain             int
	}
	for name, tc := range map[string]struct {
		wasLost bool
		steps   []step
	}{
		"a heartbeat each period": {steps: []step{
			{at: 0, wantAgain: 20},
			{at: 10, do: "sign", wantAgain: 20},
			{at: 20, do: "sign", wantAgain: 20},
			{at: 35, wantAgain: 5},
		}},
		"three are missed": {steps: []step{
			{at: 5, do: "sign", wantAgain: 20},
			{at: 25, wantConfirm: true},
			{at: 25, do: "confirm", wantAgain: 10},
			{at: 35, wantConfirm: true},
			{at: 35, do: "confirm", wantLost: true},
			{at: 500, wantLost: true},
			{at: 501, do: "sign", wantAgain: 20},
		}},
		"late, but not lost": {steps: []step{
			{at: 5, do: "sign", wantAgain: 20},
			{at: 25, do: "confirm", wantAgain: 10},
			{at: 34, do: "sign", wantAgain: 20},
			{at: 54, wantConfirm: true},
		}},
		"the hub's API server was away: a whole period of its own health counts": {steps: []step{
			{at: 5, do: "sign", wantAgain: 20},
			{at: 25, wantConfirm: true},
			{at: 300, wantConfirm: true},
			{at: 300, do: "confirm", wantAgain: 10},
			{at: 305, do: "sign", wantAgain: 20},
		}},
		"the hub was away, and the agent is lost as well": {steps: []step{
			{at: 5, do: "sign", wantAgain: 20},
			{at: 300, do: "confirm", wantAgain: 10},
			{at: 310, wantConfirm: true},
			{at: 310, do: "confirm", wantLost: true},
		}},
		"after the hub was away its caches are late": {steps: []step{
			{at: 5, do: "sign", wantAgain: 20},
			{at: 300, do: "confirm", wantAgain: 10},
			{at: 310, wantConfirm: true},
			{at: 310, do: "renewed", wantAgain: 20},
			{at: 330, wantConfirm: true},
			{at: 330, do: "renewed", wantAgain: 20},
			{at: 350, do: "confirm", wantAgain: 10},
			{at: 360, do: "confirm", wantLost: true},
		}},
		"a restart marks none lost": {steps: []step{
			{at: 0, wantAgain: 20},
			{at: 20, do: "confirm", wantAgain: 10},
			{at: 29, wantAgain: 1},
			{at: 30, do: "confirm", wantLost: true},
		}},
		"a restart heals none": {wasLost: true, steps: []step{
			{at: 0, wantLost: true},
			{at: 15, wantLost: true},
			{at: 16, do: "sign", wantAgain: 20},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l liveness
			lost := tc.wasLost
			renewal := start // what the Lease says
			for _, s := range tc.steps {
				now := start.Add(time.Duration(s.at) * time.Second)
				switch s.do {
				case "sign":
					renewal = now
					if wasLost := l.sign("c", renewal, now); wasLost != lost {
						t.Errorf("%d s: the sign says that the cluster was lost: %v, want %v", s.at, wasLost, lost)
					}
				case "confirm":
					l.judge("c", "uid", period, lost, now)
					l.confirm("c", renewal, start, now)
				case "renewed":
					renewal = now
					l.confirm("c", renewal, start, now)
				}
				v := l.judge("c", "uid", period, lost, now)
				lost = v.lost
				got := step{at: s.at, do: s.do, wantLost: v.lost, wantConfirm: v.confirm, wantAgain: int(v.again / time.Second)}
				if diff := cmp.Diff(s, got, cmp.AllowUnexported(step{})); diff != "" {
					t.Errorf("verdict (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestLivenessOfNewMembership(t *testing.T) {
	t.Parallel()
	var l liveness
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l.judge("c", "old", time.Second, false, now)
	if v := l.judge("c", "new", time.Second, false, now.Add(time.Hour)); v.lost || v.confirm {
		t.Errorf("a MemberCluster made again under its name is taken for silent since the first one's last sign: %+v", v)
	}
}

func TestConflictIsToldForAWhile(t *testing.T) {
	t.Parallel()
	var l liveness
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, left := l.conflict("c", false, now); left != 0 {
		t.Errorf("nothing was seen, but it is told of for %s", left)
	}
	if _, left := l.conflict("restarted", true, now); left != conflictMemory {
		t.Errorf("what a predecessor recorded is told of for %s, want %s", left, conflictMemory)
	}
	l.other("c", "x", now)
	if id, left := l.conflict("c", true, now.Add(time.Minute)); id != "x" || left != conflictMemory-time.Minute {
		t.Errorf("got %q for %s", id, left)
	}
	if _, left := l.conflict("c", true, now.Add(time.Hour)); left != 0 {
		t.Errorf("an hour later it is still told of, for %s", left)
	}
}
