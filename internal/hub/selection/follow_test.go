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
				client: client, clock: clock, gvr: gvr,
				begun:   func(bool) { begun++ },
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
