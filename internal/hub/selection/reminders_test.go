package selection

import (
	"testing"
	"time"
)

func TestReminders(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := start.Add
	var r reminders
	if _, any := r.wait(start); any {
		t.Error("there is one before any was set")
	}
	r.after(start, settling...)
	expect := func(now, want time.Duration) {
		t.Helper()
		if got, any := r.wait(at(now)); !any || got != want {
			t.Errorf("after %s: %s to wait (any: %t), want %s", now, got, any, want)
		}
	}
	// What happens in between, however often, uses none up.
	for range 10 {
		r.passed(start)
		expect(0, 300*time.Millisecond)
	}
	// A failure adds one, and takes none away.
	r.after(at(100*time.Millisecond), undiscovered)
	expect(100*time.Millisecond, 200*time.Millisecond)
	r.passed(at(300 * time.Millisecond))
	expect(300*time.Millisecond, 700*time.Millisecond)
	r.passed(at(4 * time.Second))
	expect(4*time.Second, 1100*time.Millisecond)
	r.passed(at(6 * time.Second))
	expect(6*time.Second, 4*time.Second)
	// One that is late is due at once.
	expect(20*time.Second, 0)
	r.passed(at(20 * time.Second))
	if _, any := r.wait(at(20 * time.Second)); any {
		t.Error("there is one left when all have passed")
	}
}
