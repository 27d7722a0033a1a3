package properties

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// spoken is what Namespaces said.
type spoken struct {
	all map[string]string
	err error
}

// watchNamespaces has the namespaces of a cluster found out, and returns what is said.
func watchNamespaces(t *testing.T, clock *watchedClock, config *rest.Config) <-chan spoken {
	t.Helper()
	said := make(chan spoken, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- (&Namespaces{Member: config, Clock: clock}).Run(ctx, func(all map[string]string, err error) { said <- spoken{all, err} })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return said
}

func TestNamespaces(t *testing.T) {
	c := framework.Client(t, member)
	clock := newWatchedClock()
	said := watchNamespaces(t, clock, member)
	create := func(name string, owners ...metav1.OwnerReference) *corev1.Namespace {
		t.Helper()
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
		if err := c.Create(t.Context(), n); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		return n
	}
	await := func(what string, so func(map[string]string) bool) {
		t.Helper()
		deadline := time.After(framework.Patience)
		var last spoken
		for {
			select {
			case last = <-said:
				if last.err == nil && so(last.all) {
					return
				}
			case d := <-clock.waits:
				clock.Step(d)
			case <-deadline:
				t.Fatalf("waited for %s; last said: %+v", what, last)
			}
		}
	}
	await("what is there", func(all map[string]string) bool { _, has := all["default"]; return has })
	applied := metav1.OwnerReference{APIVersion: placementv1.GroupVersion.String(), Kind: "AppliedWork", Name: "app-work", UID: "1"}
	stranger := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "AppliedWork", Name: "no-work", UID: "2"}
	placed := create("ns-placed", stranger, applied)
	create("ns-other", stranger)
	await("the new ones", func(all map[string]string) bool {
		owner, has := all["ns-other"]
		return all["ns-placed"] == "app-work" && has && owner == ""
	})

	before := placed.DeepCopy()
	placed.OwnerReferences = nil
	if err := c.Patch(t.Context(), placed, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	await("one that was released", func(all map[string]string) bool { owner, has := all["ns-placed"]; return has && owner == "" })
	// Without a namespace controller it stays for ever, and is going.
	if err := c.Delete(t.Context(), placed); err != nil {
		t.Fatal(err)
	}
	await("one that is going", func(all map[string]string) bool { _, has := all["ns-placed"]; return !has })
}

// TestNamespacesThatCannotBeRead asks an API server that knows nobody.
func TestNamespacesThatCannotBeRead(t *testing.T) {
	stranger := rest.AnonymousClientConfig(member)
	said := watchNamespaces(t, newWatchedClock(), stranger)
	select {
	case first := <-said:
		if first.err == nil || first.all != nil || !strings.HasPrefix(first.err.Error(), "read namespaces: ") {
			t.Errorf("said %v, %v", first.all, first.err)
		}
	case <-time.After(framework.Patience):
		t.Fatal("nothing is said")
	}
}

// TestBuiltinThatCannotRead says so, and goes on trying.
func TestBuiltinThatCannotRead(t *testing.T) {
	b := NewBuiltin(rest.AnonymousClientConfig(member), newWatchedClock())
	said := make(chan error, 100)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, func(_ Report, err error) { said <- err }) }()
	deadline := time.After(framework.Patience)
	for so := false; !so; {
		select {
		case err := <-said:
			if err == nil {
				t.Error("what cannot be read is told of as known")
			}
			so = err != nil && strings.Contains(err.Error(), "read nodes: ") && strings.Contains(err.Error(), "read pods: ")
		case <-deadline:
			t.Fatal("nothing is said")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestVersion(t *testing.T) {
	ask := func(config *rest.Config) (Report, error) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		var report Report
		said := errors.New("nothing")
		if err := (&Version{Member: config, Clock: newWatchedClock()}).Run(ctx, func(r Report, err error) { report, said = r, err; stop() }); err != nil {
			t.Error(err)
		}
		return report, said
	}
	report, err := ask(member)
	if version := report.Properties["k8s.io/k8s-version"]; err != nil || !strings.HasPrefix(version, "v1.") {
		t.Errorf("the version is %q, error %v", version, err)
	}
	nowhere := rest.CopyConfig(member)
	nowhere.Host = "https://127.0.0.1:1"
	if report, err := ask(nowhere); err == nil || report.Properties != nil {
		t.Errorf("a server that does not answer: %v, %v", report, err)
	}
}
