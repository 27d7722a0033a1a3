package enqueue

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// Queue is a source of requests that others fill. What comes before its controller has started is kept for it. Its zero value is
// ready for use.
type Queue[T comparable] struct {
	mu    sync.Mutex
	to    workqueue.TypedRateLimitingInterface[T]
	early []T
}

// Start is for the controller.
func (q *Queue[T]) Start(_ context.Context, to workqueue.TypedRateLimitingInterface[T]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.to = to
	for _, request := range q.early {
		to.Add(request)
	}
	q.early = nil
	return nil
}

// Add asks the controller to look at something. It does not block.
func (q *Queue[T]) Add(request T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.to == nil {
		q.early = append(q.early, request)
		return
	}
	q.to.Add(request)
}
