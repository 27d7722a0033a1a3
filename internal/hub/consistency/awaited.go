package consistency

import (
	"sync"
	"time"
)

// awaitedTime is how long the cache is given to show what we did. It takes milliseconds, unless what we did was undone
// while the cache did not watch.
const awaitedTime = 10 * time.Second

// Awaited are things that we did and that the cache has not shown yet, such as objects that we made or deleted. Its zero value is
// ready for use, and it may be used by several goroutines at once.
type Awaited[K comparable] struct {
	mu    sync.Mutex
	since map[K]time.Time
}

// Add is called before the request is sent: the cache may be faster than the answer.
func (a *Awaited[K]) Add(key K, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil {
		a.since = map[K]time.Time{}
	}
	a.since[key] = now
}

// Remove is called when the cache shows it, or when the request has failed.
func (a *Awaited[K]) Remove(key K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, key)
}

// Has tells whether the cache has yet to show it.
func (a *Awaited[K]) Has(key K, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, ok := a.since[key]
	if ok && now.Sub(since) > awaitedTime {
		delete(a.since, key)
		return false
	}
	return ok
}
