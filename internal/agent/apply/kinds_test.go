package apply

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// TestKindsDoNotWait is a member that does not say what it serves of one API version: what is asked of another one does not
// wait for that, and who asks may give up.
func TestKindsDoNotWait(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	var answers atomic.Int32
	var a *Applier
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/silent.example.com/v1", func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	mux.HandleFunc("/apis/example.com/v1", func(w http.ResponseWriter, _ *http.Request) {
		if answers.Add(1) == 1 {
			a.kinds.forget() // a definition changes while the member answers
		}
		w.Header().Set("Content-Type", "application/json")
		err := json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "example.com/v1",
			APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing", Namespaced: true}},
		})
		if err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	var err error
	if a, err = New(Options{Member: &rest.Config{Host: server.URL}, Namespace: "fleet-member-a", Clock: clock.RealClock{}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	gaveUp := make(chan error, 1)
	go func() {
		_, err := a.kinds.find(ctx, schema.GroupVersionKind{Group: "silent.example.com", Version: "v1", Kind: "Thing"})
		gaveUp <- err
	}()
	<-asked
	thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	for range 3 {
		if r, err := a.kinds.find(t.Context(), thing); err != nil || r.Resource != "things" {
			t.Errorf("found %v, error %v", r, err)
		}
	}
	if n := answers.Load(); n != 2 {
		t.Errorf("the member was asked %d times; want it asked again after a definition changed, and then no more", n)
	}
	// That a kind is not there is remembered for a while by those who ask often, until it comes or a definition changes.
	var missed atomic.Int32
	mux.HandleFunc("/apis/missing.example.com/v1", func(w http.ResponseWriter, _ *http.Request) {
		missed.Add(1)
		w.WriteHeader(http.StatusNotFound)
	})
	gone, now := schema.GroupVersionKind{Group: "missing.example.com", Version: "v1", Kind: "Thing"}, time.Unix(0, 0)
	recall := func(want int32) {
		t.Helper()
		if _, err := a.kinds.recall(t.Context(), gone, now); !errors.Is(err, errUnknownKind) || missed.Load() != want {
			t.Errorf("error %v, and the member was asked %d times, want %d", err, missed.Load(), want)
		}
	}
	recall(1)
	now = now.Add(absence - time.Second)
	recall(1)
	now = now.Add(time.Second)
	recall(2)
	a.kinds.forget()
	recall(3)
	if r, err := a.kinds.recall(t.Context(), thing, now); err != nil || r.Resource != "things" {
		t.Errorf("found %v, error %v", r, err)
	}
	stop()
	if err := <-gaveUp; !unreachable(err) {
		t.Errorf("who gave up was told %v", err)
	}
}
