package properties

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// played is a provider that says what a test has it say.
type played struct {
	name string
	runs chan run
}

// run is one run of a provider.
type run struct {
	say func(Report, error)
	end chan error
}

func play(name string) *played { return &played{name: name, runs: make(chan run)} }

func (p *played) Name() string { return p.name }

func (p *played) Run(ctx context.Context, say func(Report, error)) error {
	r := run{say, make(chan error)}
	select {
	case p.runs <- r:
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-r.end:
		return err
	case <-ctx.Done():
		return nil
	}
}

// collecting is a Collector at work, and whoever waits for its news.
type collecting struct {
	*Collector
	t       *testing.T
	time    *watchedClock
	changed chan struct{}
}

func collect(t *testing.T, providers ...Provider) *collecting {
	t.Helper()
	clock := newWatchedClock()
	c := &collecting{Collector: NewCollector(clock, nil, providers...), t: t, time: clock, changed: make(chan struct{}, 100)}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx, func() { c.changed <- struct{}{} }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c
}

// await waits for news until the condition of a type is so; "" for none.
func (c *collecting) await(conditionType, want, says string) {
	c.t.Helper()
	deadline := time.After(framework.Patience)
	for {
		got := meta.FindStatusCondition(c.Account().Conditions, conditionType)
		switch {
		case got == nil && want == "":
			return
		case got != nil && string(got.Status)+"/"+got.Reason == want && strings.Contains(got.Message, says):
			return
		}
		select {
		case <-c.changed:
		case <-deadline:
			c.t.Fatalf("%s is %+v, want %s with %q", conditionType, got, want, says)
		}
	}
}

// pass lets time pass when whoever waits for as long waits for it.
func (c *collecting) pass(d time.Duration) {
	c.t.Helper()
	deadline := time.After(framework.Patience)
	for {
		select {
		case waits := <-c.time.waits:
			if waits == d {
				c.time.Step(d)
				return
			}
		case <-deadline:
			c.t.Fatalf("nobody waits for %s", d)
		}
	}
}

const started, collected = clusterv1.ConditionPropertyProviderStarted, clusterv1.ConditionPropertyCollectionSucceeded

func TestCollectorPutsTogether(t *testing.T) {
	t.Parallel()
	one, two := play("nodes"), play("prices")
	c := collect(t, one, two)
	a, b := <-one.runs, <-two.runs
	a.say(Report{Properties: map[string]string{"nodes": "2", "both": "one"}, Capacity: resources("4", "8Gi")}, nil)
	if c.Account().Report != nil {
		t.Error("a part is told of as the whole, so that the rest would be taken for gone")
	}
	c.await(started, "", "")
	b.say(Report{Properties: map[string]string{"price": "0.1", "both": "two"}}, nil)
	c.await(started, "True/Started", "looks at nodes, prices")
	c.await(collected, "True/PropertiesCollected", "")
	want := &Report{Properties: map[string]string{"nodes": "2", "price": "0.1", "both": "one"}, Capacity: resources("4", "8Gi")}
	if diff := cmp.Diff(want, c.Account().Report, cmp.Comparer(func(a, b corev1.ResourceList) bool { return cmp.Equal(texts(a), texts(b)) })); diff != "" {
		t.Errorf("the whole (-want +got):\n%s", diff)
	}
}

func TestCollectorTellsOfTroubleThatLasts(t *testing.T) {
	t.Parallel()
	p := play("nodes")
	c := collect(t, p)
	r := <-p.runs
	r.say(Report{Properties: map[string]string{"nodes": "2"}}, nil)
	c.await(collected, "True/PropertiesCollected", "")
	r.say(Report{}, errors.New("forbidden"))
	if got := meta.FindStatusCondition(c.Account().Conditions, collected); got.Status != "True" {
		t.Errorf("trouble that may be over in a moment is told of: %+v", got)
	}
	c.pass(grace)
	c.await(collected, "False/CollectionFailed", "nodes (since ")
	c.await(collected, "False/CollectionFailed", "forbidden")
	c.await(started, "True/Started", "")
	if got := c.Account().Report; got == nil || got.Properties["nodes"] != "2" {
		t.Errorf("what was known is forgotten: %+v", got)
	}
	r.say(Report{Properties: map[string]string{"nodes": "3"}}, nil)
	c.await(collected, "True/PropertiesCollected", "")
}

func TestCollectorTellsOfProvidersThatDoNotBegin(t *testing.T) {
	t.Parallel()
	broken, slow := play("prices"), play("nodes")
	c := collect(t, broken, slow)
	(<-broken.runs).end <- errors.New("no key for the price list")
	c.await(started, "False/FailedToStart", "cannot begin to look at prices: no key for the price list; tried again every 15s")
	c.pass(pause)
	(<-broken.runs).say(Report{}, nil)
	s := <-slow.runs
	s.say(Report{}, errors.New("forbidden"))
	c.time.Step(firstWord)
	c.await(started, "False/TimedOut", "nothing is known of nodes after 1m0s: forbidden")
	s.say(Report{}, nil)
	c.await(started, "True/Started", "")
}

// TestAProviderThatHangsHoldsUpNobody: one that says nothing at all is told of, and all that is asked is answered at once.
func TestAProviderThatHangsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	c := collect(t, play("hangs"))
	c.pass(firstWord)
	c.await(started, "False/TimedOut", "nothing is known of hangs")
	c.await(collected, "False/TimedOut", "")
}

// TestRestraint: a few words come at once, and then one every ten seconds.
func TestRestraint(t *testing.T) {
	t.Parallel()
	var r restraint
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range inARow {
		if got := r.wait(now); got != moment {
			t.Errorf("word %d waits %s", i, got)
		}
		r.spoke(now)
	}
	for range 3 {
		got := r.wait(now)
		if got != settle {
			t.Errorf("after many words the next waits %s, want %s", got, settle)
		}
		now = now.Add(got)
		r.spoke(now)
	}
	now = now.Add(inARow * settle)
	if got := r.wait(now); got != moment {
		t.Errorf("after a while of silence a word waits %s", got)
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	many := func(n int, name string) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf(name, i)] = ""
		}
		return all
	}
	few := map[string]string{"default": "", "app": "app-work"}
	if diff := cmp.Diff(few, fit(few)); diff != "" {
		t.Errorf("few (-want +got):\n%s", diff)
	}
	all := many(mostNamespaces+10, "n%d")
	all["zz"] = "app-work"
	got := fit(all)
	if _, placed := got["zz"]; !placed || len(got) != mostNamespaces {
		t.Errorf("of %d namespaces %d fit, the placed one among them: %v", len(all), len(got), placed)
	}
	if _, first := got["n0"]; !first {
		t.Error("the first by name is left out")
	}
	long := many(mostNamespaces, strings.Repeat("a", 50)+"%d")
	size, got := 0, fit(long)
	for name := range got {
		size += len(name) + perNamespace
	}
	if size > namespacesBudget || len(got) < 3000 {
		t.Errorf("%d namespaces of %d bytes fit", len(got), size)
	}
	if again := fit(long); !slices.Equal(sortedKeys(got), sortedKeys(again)) {
		t.Error("it is not always the same ones that fit")
	}
}
