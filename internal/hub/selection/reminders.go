package selection

import (
	"slices"
	"time"
)

// reminders are times at which to do something again, the earliest first. One stays until its time has come, whatever else
// happens meanwhile.
type reminders []time.Time

// after sets reminders in so much time, beside those that there are.
func (r *reminders) after(now time.Time, waits ...time.Duration) {
	for _, wait := range waits {
		*r = append(*r, now.Add(wait))
	}
	slices.SortFunc(*r, time.Time.Compare)
}

// wait is how long it is until the first one; false where there is none.
func (r reminders) wait(now time.Time) (time.Duration, bool) {
	if len(r) == 0 {
		return 0, false
	}
	return max(r[0].Sub(now), 0), true
}

// passed drops those whose time has come.
func (r *reminders) passed(now time.Time) {
	*r = slices.DeleteFunc(*r, func(at time.Time) bool { return !at.After(now) })
}
