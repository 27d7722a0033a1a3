package consistency

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestAwaited(t *testing.T) {
	t.Parallel()
	var a Awaited[types.UID]
	now := time.Unix(1000, 0)
	if a.Has("x", now) {
		t.Error("nothing was done, but something is awaited")
	}
	a.Add("x", now)
	if !a.Has("x", now.Add(awaitedTime)) {
		t.Error("the cache has not shown it, but it is not awaited")
	}
	if a.Has("x", now.Add(awaitedTime+1)) {
		t.Error("it is awaited for ever")
	}
	a.Add("x", now)
	if a.Remove("x"); a.Has("x", now) || len(a.since) != 0 {
		t.Error("the cache has shown it, but it is awaited")
	}
}
