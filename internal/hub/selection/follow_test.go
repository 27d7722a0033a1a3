package selection

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// TestFollowerLooksAgain: after every way in which changes can be missed, those who are interested look again.
func TestFollowerLooksAgain(t *testing.T) {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	tooOld := apierrors.NewResourceExpired("too old")
	status := tooOld.Status()
	cases := map[string]struct {
		first func() (watch.Interface, error)
		begun int // how often it begins anew before the change is seen
	}{
		"the version is too old for a watch": {
			first: func() (watch.Interface, error) { return nil, tooOld }, begun: 2,
		},
		"the version grows too old in a watch": {
			first: func() (watch.Interface, error) {
				w := watch.NewFakeWithChanSize(1, false)
				w.Error(&status)
				return w, nil
			},
			begun: 2,
		},
		"the connection breaks": {
			first: func() (watch.Interface, error) { return nil, errors.New("connection refused") }, begun: 2,
		},
		"the watch ends as watches do": {
			first: func() (watch.Interface, error) {
				w := watch.NewFakeWithChanSize(1, false)
				w.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}})
				w.Stop()
				return w, nil
			},
			begun: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			client := fake.NewSimpleMetadataClient(scheme)
			client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			})
			watches, last := 0, watch.NewFakeWithChanSize(1, false)
			last.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "9"}})
			client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
				if watches++; watches == 1 {
					w, err := tc.first()
					return true, w, err
				}
				return true, last, nil
			})
			clock := testingclock.NewFakeClock(time.Now())
			ctx, cancel := context.WithCancel(t.Context())
			begun, changed := 0, make(chan struct{}, 1)
			f := &follower{
				client: client, clock: clock, gvr: gvr, watchable: true,
				begun:   func(bool, bool) { begun++ },
				changed: func(*metav1.PartialObjectMetadata) { changed <- struct{}{} },
			}
			ended := make(chan struct{})
			go func() { defer close(ended); f.run(ctx) }()
			deadline := time.After(time.Minute)
			for waiting := true; waiting; {
				select {
				case <-changed:
					waiting = false
				case <-deadline:
					t.Fatal("the change was not seen")
				case <-time.After(time.Millisecond):
					if clock.HasWaiters() {
						clock.Step(time.Minute)
					}
				}
			}
			cancel()
			last.Stop()
			<-ended
			if begun != tc.begun {
				t.Errorf("began %d times, want %d", begun, tc.begun)
			}
		})
	}
}

// hastyClock lets no time pass: who waits goes on at once, and how long it meant to wait is told.
type hastyClock struct {
	clock.WithTicker
	waits chan time.Duration
}

func (c hastyClock) After(d time.Duration) <-chan time.Time {
	c.waits <- d
	over := make(chan time.Time)
	close(over)
	return over
}

// TestFollowerIsPatient: a kind that can be listed but not watched is asked for less and less often, however it fails.
func TestFollowerIsPatient(t *testing.T) {
	for name, refusal := range map[string]error{
		"the server has no watch":     apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "things"}, "watch"),
		"each version is old already": apierrors.NewResourceExpired("too old"),
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleMetadataClient(runtime.NewScheme())
			client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			})
			client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, refusal })
			clock := hastyClock{waits: make(chan time.Duration)}
			ctx, cancel := context.WithCancel(t.Context())
			var firsts []bool
			f := &follower{
				client: client, clock: clock, gvr: schema.GroupVersionResource{Version: "v1", Resource: "things"}, watchable: true,
				begun:   func(first, _ bool) { firsts = append(firsts, first) },
				changed: func(*metav1.PartialObjectMetadata) {},
			}
			ended := make(chan struct{})
			go func() { defer close(ended); f.run(ctx) }()
			var last time.Duration
			for range 9 {
				select {
				case last = <-clock.waits:
				case <-time.After(time.Minute):
					t.Fatal("it does not wait between its attempts")
				}
			}
			cancel()
			select {
			case <-clock.waits:
			case <-ended:
			}
			<-ended
			if last < 20*time.Second {
				t.Errorf("at the ninth time it waits %s", last)
			}
			if !firsts[0] || firsts[1] || firsts[len(firsts)-1] {
				t.Errorf("first of its beginnings: %v, want the first one alone", firsts)
			}
		})
	}
}

// TestFollowerWithoutWatch: a kind that the API server says cannot be watched is looked at now and then, and never watched.
func TestFollowerWithoutWatch(t *testing.T) {
	client := fake.NewSimpleMetadataClient(runtime.NewScheme())
	clock := hastyClock{waits: make(chan time.Duration)}
	ctx, cancel := context.WithCancel(t.Context())
	begun := 0
	f := &follower{client: client, clock: clock, gvr: schema.GroupVersionResource{Version: "v1", Resource: "things"}, begun: func(bool, bool) { begun++ }}
	ended := make(chan struct{})
	go func() { defer close(ended); f.run(ctx) }()
	for range 2 {
		if wait := <-clock.waits; wait != seldom {
			t.Errorf("it waits %s, want %s", wait, seldom)
		}
	}
	cancel()
	select {
	case <-clock.waits:
	case <-ended:
	}
	<-ended
	if begun < 2 || len(client.Actions()) > 0 {
		t.Errorf("looked %d times, and asked the server %v", begun, client.Actions())
	}
}
