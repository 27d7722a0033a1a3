package properties

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

const (
	// firstWord is how long providers may take until they know something.
	firstWord = time.Minute
	// grace is for how long a provider may have trouble before that is told of: most trouble is over in a moment.
	grace = 30 * time.Second
	// pause is after how long a provider that ended is run again.
	pause = 15 * time.Second
)

// Account is what is known of a cluster, by all providers together.
type Account struct {
	// Report is what providers know; nil while not every one has said something.
	Report *Report
	// Namespaces are the cluster's namespaces, each with the AppliedWork that owns it; nil while they are not known.
	Namespaces map[string]string
	// Conditions say how well finding out goes. One that is not there is not decided yet.
	Conditions []metav1.Condition
}

// Collector runs providers, and puts together what they say. Its methods wait for none of them.
type Collector struct {
	clock     clock.WithTicker
	providers []Provider
	spaces    *Namespaces
	news      chan struct{}

	mu        sync.Mutex
	begun     time.Time
	known     []word
	namespace namespacesWord
}

// errEnded says that a provider has ended without saying why.
var errEnded = errors.New("it ended by itself")

// word is what a provider has said.
type word struct {
	report *Report
	trouble
}

// trouble is what keeps a provider from finding out, and since when.
type trouble struct {
	why   error
	since time.Time
	ended bool // and does not run at the moment
}

func (t *trouble) note(why error, ended bool, now time.Time) {
	if why == nil {
		*t = trouble{}
		return
	}
	if t.why == nil {
		t.since = now
	}
	t.why, t.ended = why, ended
}

// NewCollector makes a Collector of what providers and, unless it is nil, spaces find out.
func NewCollector(c clock.WithTicker, spaces *Namespaces, providers ...Provider) *Collector {
	return &Collector{clock: c, providers: providers, spaces: spaces, news: make(chan struct{}, 1), known: make([]word, len(providers))}
}

// Start runs the providers until ctx ends, and calls changed when there may be something new.
func (c *Collector) Start(ctx context.Context, changed func()) error {
	c.mu.Lock()
	c.begun = c.clock.Now()
	c.mu.Unlock()
	var running sync.WaitGroup
	for i, p := range c.providers {
		running.Go(func() {
			c.sustain(ctx, &c.known[i].trouble, func() error {
				return p.Run(ctx, func(r Report, err error) { c.said(i, r, err) })
			})
		})
	}
	if c.spaces != nil {
		running.Go(func() {
			c.sustain(ctx, &c.namespace.trouble, func() error { return c.spaces.Run(ctx, c.saidNamespaces) })
		})
	}
	for ctx.Err() == nil {
		var due <-chan time.Time
		if after := c.due(); after > 0 {
			due = c.clock.After(after)
		}
		select {
		case <-ctx.Done():
		case <-due:
			changed()
		case <-c.news:
			changed()
		}
	}
	running.Wait()
	return nil
}

// sustain runs what may end, again and again.
func (c *Collector) sustain(ctx context.Context, t *trouble, run func() error) {
	for {
		err := run()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errEnded
		}
		c.mu.Lock()
		t.note(err, true, c.clock.Now())
		c.mu.Unlock()
		c.tell()
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(pause):
		}
	}
}

func (c *Collector) said(i int, r Report, err error) {
	c.mu.Lock()
	if err == nil {
		c.known[i].report = &r
	}
	c.known[i].note(err, false, c.clock.Now())
	c.mu.Unlock()
	c.tell()
}

func (c *Collector) saidNamespaces(all map[string]string, err error) {
	c.mu.Lock()
	if err == nil {
		c.namespace.all, c.namespace.count = fit(all), len(all)
	}
	c.namespace.note(err, false, c.clock.Now())
	c.mu.Unlock()
	c.tell()
}

// tell says that there may be something new.
func (c *Collector) tell() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// due is after how long the account may differ though nobody says anything: trouble counts when it has lasted. 0 is never.
func (c *Collector) due() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, after := c.clock.Now(), time.Duration(0)
	sooner := func(at time.Time) {
		if d := at.Sub(now); d > 0 && (after == 0 || d < after) {
			after = d
		}
	}
	sooner(c.begun.Add(firstWord))
	for i := range c.known {
		if c.known[i].why != nil {
			sooner(c.known[i].since.Add(grace))
		}
	}
	if c.namespace.why != nil {
		sooner(c.namespace.since.Add(grace))
	}
	return after
}

// Account returns what is known now.
func (c *Collector) Account() Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	a := Account{Report: c.merged(), Namespaces: c.namespace.all}
	for _, condition := range []*metav1.Condition{c.startedCondition(now), c.collectedCondition(now), c.namespacesCondition(now)} {
		if condition != nil {
			a.Conditions = append(a.Conditions, *condition)
		}
	}
	return a
}

// merged is what all providers know together. Of what two know, the first one's word counts.
func (c *Collector) merged() *Report {
	all := &Report{Properties: map[string]string{}}
	for i := range c.known {
		r := c.known[i].report
		if r == nil {
			return nil
		}
		for name, value := range r.Properties {
			if _, taken := all.Properties[name]; !taken {
				all.Properties[name] = value
			}
		}
		for _, list := range []struct {
			into *corev1.ResourceList
			from corev1.ResourceList
		}{{&all.Capacity, r.Capacity}, {&all.Allocatable, r.Allocatable}, {&all.Available, r.Available}} {
			if *list.into == nil {
				*list.into = maps.Clone(list.from)
			}
		}
	}
	return all
}

// startedCondition tells whether every provider has begun.
func (c *Collector) startedCondition(now time.Time) *metav1.Condition {
	var failed, late, waits []string
	for i, p := range c.providers {
		w := &c.known[i]
		switch {
		case w.report != nil:
		case w.why != nil && w.ended:
			failed = append(failed, fmt.Sprintf("%s: %v", p.Name(), w.why))
		case c.begun.IsZero() || now.Before(c.begun.Add(firstWord)):
			waits = append(waits, p.Name())
		default:
			late = append(late, c.lateness(p.Name(), &w.trouble))
		}
	}
	switch {
	case len(failed) > 0:
		return says(clusterv1.ConditionPropertyProviderStarted, metav1.ConditionFalse, clusterv1.ReasonPropertyProviderFailedToStart,
			fmt.Sprintf("cannot begin to look at %s; tried again every %s", strings.Join(failed, "; "), pause))
	case len(late) > 0:
		return says(clusterv1.ConditionPropertyProviderStarted, metav1.ConditionFalse, clusterv1.ReasonPropertyProviderTimedOut,
			strings.Join(late, "; ")+"; goes on trying")
	case len(waits) > 0:
		return nil
	}
	return says(clusterv1.ConditionPropertyProviderStarted, metav1.ConditionTrue, clusterv1.ReasonPropertyProviderStarted,
		"looks at "+strings.Join(c.names(), ", "))
}

func (c *Collector) lateness(name string, t *trouble) string {
	late := fmt.Sprintf("nothing is known of %s after %s", name, firstWord)
	if t.why != nil {
		late += ": " + t.why.Error()
	}
	return late
}

func (c *Collector) names() []string {
	names := make([]string, len(c.providers))
	for i, p := range c.providers {
		names[i] = p.Name()
	}
	return names
}

// collectedCondition tells whether what is told is what is so now.
func (c *Collector) collectedCondition(now time.Time) *metav1.Condition {
	var troubles []string
	undecided, timedOut := false, false
	for i, p := range c.providers {
		w := &c.known[i]
		switch {
		case w.why != nil && !now.Before(w.since.Add(grace)):
			troubles = append(troubles, fmt.Sprintf("%s (since %s): %v", p.Name(), w.since.UTC().Format(time.RFC3339), w.why))
		case w.report == nil && !c.begun.IsZero() && !now.Before(c.begun.Add(firstWord)):
			timedOut = true
		case w.report == nil:
			undecided = true
		}
	}
	switch {
	case len(troubles) > 0:
		return says(clusterv1.ConditionPropertyCollectionSucceeded, metav1.ConditionFalse, clusterv1.ReasonPropertyCollectionFailed,
			"what is told of the cluster stays as it was last seen, since these cannot be looked at: "+strings.Join(troubles, "; "))
	case timedOut:
		return says(clusterv1.ConditionPropertyCollectionSucceeded, metav1.ConditionFalse, clusterv1.ReasonPropertyCollectionTimedOut,
			fmt.Sprintf("not everything is known of the cluster after %s; goes on trying", firstWord))
	case undecided:
		return nil
	}
	return says(clusterv1.ConditionPropertyCollectionSucceeded, metav1.ConditionTrue, clusterv1.ReasonPropertiesCollected,
		"what is told of the cluster follows it")
}

func says(conditionType string, status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// sortedKeys are a map's keys in their order.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
