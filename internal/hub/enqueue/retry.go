package enqueue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// The delays after which a pass that failed is tried again: twice the last one each time, up to the longest. The library's
// own limit, 1000 seconds, would leave an object alone for a quarter of an hour after the hub's API server is well again.
// Nor is there a limit on all objects together, as the library has: it would make many failures wait for one another.
const (
	firstRetry = 5 * time.Millisecond
	// LongestRetry is the longest that an object waits after a failure.
	LongestRetry = 15 * time.Second
	// Stale is when to look again at an object after a write showed that what was decided on, a cache as a rule, is behind.
	Stale = 50 * time.Millisecond
)

// Soonest is the shorter of two delays, where 0 is none.
func Soonest(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// Options are those of every controller of the hub: how many objects it looks at at once, and when it tries again.
func Options(workers int) controller.Options { return TypedOptions[ctrl.Request](workers) }

// TypedOptions are Options for a controller whose requests are of another type.
func TypedOptions[T comparable](workers int) controller.TypedOptions[T] {
	return controller.TypedOptions[T]{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, LongestRetry),
	}
}
