package properties

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var member *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithMemberAPIServer(m, &member)) }

// watchedClock stands still until it is stepped, and tells when somebody begins to wait for it.
type watchedClock struct {
	*clocktesting.FakeClock
	waits chan time.Duration
}

func newWatchedClock() *watchedClock {
	return &watchedClock{FakeClock: clocktesting.NewFakeClock(time.Now()), waits: make(chan time.Duration, 100)}
}

func (c *watchedClock) After(d time.Duration) <-chan time.Time {
	defer func() { c.waits <- d }()
	return c.FakeClock.After(d)
}

// TestManyPods: the public system stops counting at a hundred.
func TestManyPods(t *testing.T) {
	const pods = 150
	c := framework.Client(t, member)
	n := node("n1", nil)
	n.UID = ""
	if err := c.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status.Capacity, n.Status.Allocatable = resources("200", "400Gi"), resources("190", "390Gi")
	if err := c.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // so that the test can be repeated
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(c.Delete(ctx, n), c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"), client.GracePeriodSeconds(0))); err != nil {
			t.Error(err)
		}
	})
	create := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		t.Helper()
		p := with(pod(name, resources("1", "1Gi")), change)
		p.UID = ""
		if err := c.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range pods {
		create("p"+strconv.Itoa(i), func(*corev1.Pod) {})
	}
	create("waits", func(p *corev1.Pod) { p.Spec.NodeName = "" })

	clock := newWatchedClock()
	b := NewBuiltin(member, clock)
	said := make(chan Report, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, func(r Report, _ error) { said <- r }) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	var report Report
	await := func(cpu, memory string) {
		t.Helper()
		deadline := time.After(framework.Patience)
		var got map[string]string
		for {
			select {
			case report = <-said:
			case <-clock.waits:
				clock.Step(settle)
				continue
			case <-deadline:
				t.Fatalf("available is %v, want cpu %s and memory %s", got, cpu, memory)
			}
			if got = texts(report.Available); got["cpu"] == cpu && got["memory"] == memory {
				return
			}
		}
	}
	await("40", "240Gi")
	if diff := cmp.Diff(map[string]string{"cpu": "200", "memory": "400Gi"}, texts(report.Capacity)); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}

	// A change is told of when changes have been gathered for a while.
	ended := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p0"}, ended); err != nil {
		t.Fatal(err)
	}
	ended.Status.Phase = corev1.PodSucceeded
	if err := c.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-clock.waits:
		if len(said) > 0 {
			t.Error("a change is told of before others could be gathered with it")
		}
		clock.Step(d)
	case <-time.After(framework.Patience):
		t.Fatal("nothing is waited for after a change")
	}
	await("41", "241Gi")
}
