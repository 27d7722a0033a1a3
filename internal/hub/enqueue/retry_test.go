package enqueue

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestRetriesStayShort(t *testing.T) {
	t.Parallel()
	limiter := Options(1).RateLimiter
	failing := ctrl.Request{NamespacedName: types.NamespacedName{Name: "failing"}}
	for range 1000 {
		other := ctrl.Request{NamespacedName: types.NamespacedName{Name: "failing too"}}
		limiter.When(other)
	}
	var longest time.Duration
	for range 100 {
		longest = max(longest, limiter.When(failing))
	}
	if longest != LongestRetry {
		t.Errorf("after 100 failures an object waits up to %s, want %s", longest, LongestRetry)
	}
	limiter.Forget(failing)
	if again := limiter.When(failing); again != firstRetry {
		t.Errorf("after a success and a failure an object waits %s, want %s", again, firstRetry)
	}
}

// TestEveryControllerTakesTheOptions looks at the source: a controller that leaves them out works, and waits up to 1000
// seconds after failures.
func TestEveryControllerTakesTheOptions(t *testing.T) {
	t.Parallel()
	hub, controllers := os.DirFS(".."), 0
	err := fs.WalkDir(hub, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := fs.ReadFile(hub, path)
		if err != nil {
			return err
		}
		made := strings.Count(string(source), "ctrl.NewControllerManagedBy(")
		if limited := strings.Count(string(source), "WithOptions(enqueue.Options("); made != limited {
			t.Errorf("internal/hub/%s makes %d controllers, and gives %d of them enqueue.Options", path, made, limited)
		}
		controllers += made
		return nil
	})
	if err != nil {
		t.Fatalf("read the source of the hub: %v", err)
	}
	if controllers < 7 {
		t.Errorf("found %d controllers of the hub, want all", controllers)
	}
}

func TestSoonest(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]time.Duration{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 3}, {3, 5, 3}} {
		if got := Soonest(tc[0], tc[1]); got != tc[2] {
			t.Errorf("Soonest(%d, %d) is %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}
