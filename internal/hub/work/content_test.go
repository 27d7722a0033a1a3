package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snapshotServer has snapshots of some size each, and counts how often it is asked.
type snapshotServer struct {
	client.Reader
	size  int
	asked atomic.Int32
	err   error
}

func (s *snapshotServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.asked.Add(1)
	if s.err != nil {
		return s.err
	}
	o.SetUID(types.UID("uid-" + key.Name))
	o.(*placementv1.ClusterResourceSnapshot).Spec.SelectedResources = []placementv1.ResourceContent{ //nolint:forcetypeassert // a test
		{RawExtension: runtime.RawExtension{Raw: []byte(strings.Repeat("x", s.size))}}}
	return nil
}

func contentsOf(s *snapshotServer) (*contents, *clocktesting.FakeClock) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	return newContents(s, &placement.ClusterKinds().Carriage, clock), clock
}

// One that looked for content before another kept it, and asks for it after, does not read it again.
func TestContentIsLookedForAgain(t *testing.T) {
	t.Parallel()
	s := &snapshotServer{size: 1}
	c, _ := contentsOf(s)
	key, uid := client.ObjectKey{Name: "a"}, types.UID("uid-a")
	if _, err := c.get(t.Context(), key, uid); err != nil {
		t.Fatal(err)
	}
	if got, err := c.fetch(t.Context(), key, uid); err != nil || len(got) != 1 || s.asked.Load() != 1 {
		t.Errorf("%d objects, read %d times, error %v; want one of each", len(got), s.asked.Load(), err)
	}
}

// What lets go of content that nobody asks for is one, goes to sleep when nothing is left, and ends with the hub.
func TestContentIsLetGo(t *testing.T) {
	t.Parallel()
	c, clock := contentsOf(&snapshotServer{size: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.run(ctx); err != nil {
			t.Error(err)
		}
	})
	g := gomega.NewWithT(t)
	for range 3 {
		if _, err := c.get(t.Context(), client.ObjectKey{Name: "a"}, "uid-a"); err != nil {
			t.Fatal(err)
		}
		g.Eventually(clock.HasWaiters, framework.Patience).Should(gomega.BeTrue())
		clock.Step(contentIdle)
		g.Eventually(func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.kept)
		}, framework.Patience).Should(gomega.BeZero())
	}
	cancel()
	running.Wait()
}

func TestContentIsReadOnce(t *testing.T) {
	t.Parallel()
	s := &snapshotServer{size: 1 << 10}
	c, clock := contentsOf(s)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if got, err := c.get(t.Context(), client.ObjectKey{Name: "a"}, "uid-a"); err != nil || len(got) != 1 {
				t.Errorf("got %d objects, error %v", len(got), err)
			}
		})
	}
	all.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("read %d times for 200 clusters", n)
	}
	clock.Step(contentIdle)
	if !c.sweep() || c.bytes != 0 || len(c.kept) != 0 {
		t.Errorf("%d bytes are kept that nobody asks for", c.bytes)
	}
}

func TestContentIsBounded(t *testing.T) {
	t.Parallel()
	s := &snapshotServer{size: contentLimit / 4}
	c, clock := contentsOf(s)
	for i := range 20 {
		name := fmt.Sprint("s", i)
		if _, err := c.get(t.Context(), client.ObjectKey{Name: name}, types.UID("uid-"+name)); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Millisecond)
		if _, err := c.get(t.Context(), client.ObjectKey{Name: "s0"}, "uid-s0"); err != nil { // asked for all the time
			t.Fatal(err)
		}
		if c.bytes > contentLimit {
			t.Fatalf("%d bytes are kept", c.bytes)
		}
		clock.Step(time.Millisecond)
	}
	if n := s.asked.Load(); n != 20 {
		t.Errorf("read %d times: what is asked for all the time was let go, want 20", n)
	}
	s.size = contentLimit + 1
	if got, err := c.get(t.Context(), client.ObjectKey{Name: "huge"}, "uid-huge"); err != nil || len(got) != 1 {
		t.Errorf("content above the limit: %d objects, error %v", len(got), err)
	}
	if c.bytes > contentLimit {
		t.Errorf("%d bytes are kept after content above the limit", c.bytes)
	}
}

func TestContentErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err         error
		uid         types.UID
		wantMissing bool
	}{
		"gone":                    {err: apierrors.NewNotFound(schema.GroupResource{}, "a"), uid: "uid-a", wantMissing: true},
		"another one of its name": {uid: "uid-earlier", wantMissing: true},
		"cannot be read":          {err: errors.New("the server is down"), uid: "uid-a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &snapshotServer{size: 1, err: tc.err}
			c, _ := contentsOf(s)
			for range 2 { // an error is not kept
				if _, err := c.get(t.Context(), client.ObjectKey{Name: "a"}, tc.uid); err == nil || isMissing(err) != tc.wantMissing {
					t.Errorf("error %v, missing %v, want missing %v", err, isMissing(err), tc.wantMissing)
				}
			}
			if s.asked.Load() != 2 {
				t.Errorf("read %d times, want 2", s.asked.Load())
			}
		})
	}
}
