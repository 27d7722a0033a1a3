package placement

import (
	"testing"
	"time"

	model "github.com/fleetwright/fleetwright/internal/placement"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

func TestQuiet(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	q := quiet{clock: clock}
	key, other := model.Key{Name: "a"}, model.Key{Name: "b"}
	expect := func(what string, want time.Duration, wantChanged bool) {
		t.Helper()
		if got, changed := q.wait(key); got != want || changed != wantChanged {
			t.Errorf("%s: wait %s, changed %t, want %s, %t", what, got, changed, want, wantChanged)
		}
	}
	step := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	expect("nothing", 0, false)
	if !q.touch(key) {
		t.Error("the first change is not the first")
	}
	expect("a change", quietFor, true)
	step(150 * time.Millisecond)
	if q.touch(key) {
		t.Error("the second change is the first")
	}
	q.touch(other)
	expect("another change", quietFor, true)
	step(quietFor)
	expect("quiet", 0, true)
	q.settle(key)
	expect("settled", 0, false)
	if _, changed := q.wait(other); !changed {
		t.Error("the other one was settled too")
	}
	if !q.touch(key) {
		t.Error("a change after that is not the first")
	}
}

// TestQuietAtMost: however things change, a placement waits for its quiet, and never longer than the most.
func TestQuietAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := testingclock.NewFakePassiveClock(time.Now())
		q := quiet{clock: clock}
		key := model.Key{Name: "a"}
		first := clock.Now()
		last := first
		q.touch(key)
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			clock.SetTime(clock.Now().Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond))
			q.touch(key)
			last = clock.Now()
		}
		wait, _ := q.wait(key)
		due := clock.Now().Add(wait)
		quiet := due.Sub(last) >= quietFor
		if !quiet && due.Sub(first) < quietAtMost {
			t.Fatalf("due %s after the last change and %s after the first", due.Sub(last), due.Sub(first))
		}
		if wait > quietFor || (wait > 0 && due.Sub(first) > quietAtMost) {
			t.Fatalf("waits %s, until %s after the first change", wait, due.Sub(first))
		}
	})
}
