package identity

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// establish runs Establish, and fails the test if it does not succeed; the result is there when the channel is closed.
func establish(t *testing.T, ctx context.Context, o Options) (*Identity, <-chan error) { //nolint:revive // the context is not the test's
	t.Helper()
	i, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- i.Establish(ctx) }()
	return i, done
}

func finish(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(framework.Patience):
		t.Fatal("it does not end")
	}
}

// signsIn tells whether the identity can read what the hub asks of its cluster.
func signsIn(t *testing.T, i *Identity) error {
	t.Helper()
	c, err := i.hub(i.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c.Get(t.Context(), client.ObjectKey{Namespace: placement.MemberNamespace(i.Cluster), Name: i.Cluster}, &clusterv1.InternalMemberCluster{})
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, framework.Patience, true, func(context.Context) (bool, error) { return so(), nil })
	if err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
}

// joined returns an identity that has joined.
func joined(t *testing.T, h *hub, dir string, c clock.WithTicker, l *log) *Identity {
	t.Helper()
	h.writeToken(filepath.Join(dir, "token"))
	i, done := establish(t, t.Context(), h.options(dir, c, l))
	h.issue(h.request(0), c.Now())
	finish(t, done)
	if err := signsIn(t, i); err != nil {
		t.Fatalf("with a new certificate: %v", err)
	}
	return i
}

func TestJoin(t *testing.T) {
	h, dir, l := newHub(t, "join"), t.TempDir(), &log{}
	i := joined(t, h, dir, clock.RealClock{}, l)
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}

	csr := h.request(0)
	if got := csr.Annotations[clusterv1.AnnotationClusterID]; got != "cluster-1" {
		t.Errorf("the request says that it comes from cluster %q", got)
	}
	if *csr.Spec.ExpirationSeconds != 604800 {
		t.Errorf("the certificate is asked to live %d s", *csr.Spec.ExpirationSeconds)
	}
	stored, err := i.Store.Load(t.Context())
	if err != nil || len(stored.Pending) > 0 || len(stored.Certificate) == 0 {
		t.Errorf("stored are a certificate of %d bytes and a pending key of %d: %v", len(stored.Certificate), len(stored.Pending), err)
	}
	info, err := os.Stat(filepath.Join(dir, "credentials", bundle))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the key has mode %v: %v", info.Mode(), err)
	}
	// A restart asks for nothing.
	again, done := establish(t, t.Context(), h.options(dir, clock.RealClock{}, l))
	finish(t, done)
	if err := signsIn(t, again); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if n := h.requests(); n != 1 {
		t.Errorf("%d certificates were asked for", n)
	}
	for what, secret := range map[string]string{
		"the token": strings.TrimSpace(string(token)), "the key": base64.StdEncoding.EncodeToString(stored.Key)[:40],
	} {
		if strings.Contains(l.text(), secret) {
			t.Errorf("%s is in the log", what)
		}
	}
}

// TestRestartBetweenRequestAndAnswer: neither the token, which is good for one request, nor the certificate is lost.
func TestRestartBetweenRequestAndAnswer(t *testing.T) {
	h, dir, l := newHub(t, "restart"), t.TempDir(), &log{}
	h.writeToken(filepath.Join(dir, "token"))
	ctx, kill := context.WithCancel(t.Context())
	_, killed := establish(t, ctx, h.options(dir, clock.RealClock{}, l))
	csr := h.request(0)
	kill()
	if err := <-killed; err == nil {
		t.Fatal("it joined without an answer")
	}
	h.issue(csr, time.Now())
	i, done := establish(t, t.Context(), h.options(dir, clock.RealClock{}, l))
	finish(t, done)
	if err := signsIn(t, i); err != nil {
		t.Error(err)
	}
	if n := h.requests(); n != 1 {
		t.Errorf("%d certificates were asked for", n)
	}
}

func TestDeniedUntilThereIsAnotherToken(t *testing.T) {
	h, dir, l := newHub(t, "denied"), t.TempDir(), &log{}
	file := filepath.Join(dir, "token")
	h.writeToken(file)
	i, done := establish(t, t.Context(), h.options(dir, clock.RealClock{}, l))
	h.deny(h.request(0), "not you")
	eventually(t, "the denial is told of", func() bool { return strings.Contains(l.text(), "not you") })
	h.writeToken(file)
	h.issue(h.request(1), time.Now())
	finish(t, done)
	if err := signsIn(t, i); err != nil {
		t.Error(err)
	}
}

func TestTellsWhatIsInTheWay(t *testing.T) {
	h := newHub(t, "obstacles")
	for name, tc := range map[string]struct {
		token  string
		change func(*Options)
		want   string
	}{
		"no file":        {change: func(o *Options) { o.BootstrapTokenFile = "/nowhere/token" }, want: "/nowhere/token"},
		"no flag":        {change: func(o *Options) { o.BootstrapTokenFile = "" }, want: "--bootstrap-token-file"},
		"empty file":     {token: "\n", want: "is empty"},
		"a bad token":    {token: "eyJ.secret.token", want: "does not accept the bootstrap token"},
		"another fleet":  {token: "x", change: func(o *Options) { o.HubCA = newAuthority(t).pem() }, want: "certificate signed by unknown authority"},
		"no hub at all":  {token: "x", change: func(o *Options) { o.HubURL = "https://localhost:1" }, want: "connection refused"},
		"no API to read": {token: "x", change: func(o *Options) { o.Cluster = "nobody" }, want: "does not accept the bootstrap token"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, l := t.TempDir(), &log{}
			if err := os.WriteFile(filepath.Join(dir, "token"), []byte(tc.token), 0o600); err != nil {
				t.Fatal(err)
			}
			o := h.options(dir, clock.RealClock{}, l)
			if tc.change != nil {
				tc.change(&o)
			}
			ctx, stop := context.WithCancel(t.Context())
			_, done := establish(t, ctx, o)
			eventually(t, "it says "+tc.want, func() bool { return strings.Contains(l.text(), tc.want) })
			stop()
			if err := <-done; err == nil {
				t.Error("it joined")
			}
			if strings.Contains(l.text(), "secret") {
				t.Errorf("the token is in the log: %s", l.text())
			}
		})
	}
}

func TestRenewal(t *testing.T) {
	h, dir, l := newHub(t, "renewal"), t.TempDir(), &log{}
	c := clocktesting.NewFakeClock(time.Now())
	i := joined(t, h, dir, c, l)
	go i.Run(t.Context()) //nolint:errcheck // it ends with the test
	first := i.wire.current.Load()
	eventually(t, "it waits for the time to renew", c.HasWaiters)

	c.Step(4 * 24 * time.Hour)
	if n := h.requests(); n != 1 {
		t.Errorf("after four days of seven %d certificates were asked for", n)
	}
	c.Step(24 * time.Hour)
	h.issue(h.request(1), c.Now())
	eventually(t, "the new certificate is in use", func() bool { return i.wire.current.Load() != first })
	<-i.Changed()
	if err := signsIn(t, i); err != nil {
		t.Errorf("with the renewed certificate: %v", err)
	}
	h.mu.Lock()
	serials := len(h.serials)
	h.mu.Unlock()
	if serials != 2 {
		t.Errorf("the hub has seen %d certificates, want the old one and then the new one", serials)
	}
	stored, err := i.Store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if reopened, err := stored.open(); err != nil || !reopened.Leaf.Equal(i.wire.current.Load().Leaf) {
		t.Errorf("the stored certificate is another one: %v", err)
	}
}

func TestRenewalThatFailsIsRepeated(t *testing.T) {
	h, dir, l := newHub(t, "repeat"), t.TempDir(), &log{}
	c := clocktesting.NewFakeClock(time.Now())
	i := joined(t, h, dir, c, l)
	go i.Run(t.Context()) //nolint:errcheck // it ends with the test
	first := i.wire.current.Load()
	eventually(t, "it waits for the time to renew", c.HasWaiters)
	c.Step(5 * 24 * time.Hour)
	h.deny(h.request(1), "not today")
	eventually(t, "the denial is told of", func() bool { return strings.Contains(l.text(), "not today") })
	eventually(t, "it waits to try again", c.HasWaiters)
	c.Step(time.Minute)
	h.issue(h.request(2), c.Now())
	eventually(t, "the new certificate is in use", func() bool { return i.wire.current.Load() != first })
}

// TestClockAhead: to a clock that is far ahead of the hub's every certificate is old; it must not ask for one after the other.
func TestClockAhead(t *testing.T) {
	h, dir, l := newHub(t, "ahead"), t.TempDir(), &log{}
	c := clocktesting.NewFakeClock(time.Now().Add(6 * 24 * time.Hour))
	h.writeToken(filepath.Join(dir, "token"))
	i, done := establish(t, t.Context(), h.options(dir, c, l))
	h.issue(h.request(0), time.Now())
	finish(t, done)
	first := i.wire.current.Load()
	go i.Run(t.Context()) //nolint:errcheck // it ends with the test
	eventually(t, "it waits", c.HasWaiters)
	c.Step(time.Second)
	h.issue(h.request(1), time.Now())
	eventually(t, "the new certificate is in use", func() bool { return i.wire.current.Load() != first })
	eventually(t, "it waits again", c.HasWaiters)
	c.Step(time.Hour)
	if n := h.requests(); n != 2 {
		t.Errorf("%d certificates were asked for", n)
	}
}

func TestRefusedCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster string
		refuse  func(h *hub)
		place   int // of the next request
	}{
		"401": {cluster: "refused", refuse: func(h *hub) { h.refuse() }, place: 1},
		"the MemberCluster was deleted and made again": {cluster: "remade", refuse: func(h *hub) { h.admit(h.cluster.Name) }},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir, l := newHub(t, tc.cluster), t.TempDir(), &log{}
			i := joined(t, h, dir, clock.RealClock{}, l)
			go i.Run(t.Context()) //nolint:errcheck // it ends with the test
			tc.refuse(h)
			if err := os.Remove(filepath.Join(dir, "token")); err != nil {
				t.Fatal(err)
			}
			if err := signsIn(t, i); err == nil {
				t.Fatal("the old certificate is still accepted")
			}
			eventually(t, "it says that it needs a token", func() bool { return strings.Contains(l.text(), "cannot join anew") })
			h.writeToken(filepath.Join(dir, "token"))
			h.issue(h.request(tc.place), time.Now())
			eventually(t, "it signs in again", func() bool { return signsIn(t, i) == nil })
			if got, want := i.wire.current.Load().uid, h.cluster.UID; got != want {
				t.Errorf("the certificate names MemberCluster %s, want %s", got, want)
			}
		})
	}
}

func TestTokenFile(t *testing.T) {
	h, dir, l := newHub(t, "token"), t.TempDir(), &log{}
	o := h.options(dir, clock.RealClock{}, l)
	o.BootstrapTokenFile, o.TokenFile = "", filepath.Join(dir, "identity")
	i, done := establish(t, t.Context(), o)
	eventually(t, "it waits for the token", func() bool { return strings.Contains(l.text(), "no such file") })
	h.writeToken(o.TokenFile)
	finish(t, done)
	if err := signsIn(t, i); err != nil {
		t.Error(err)
	}
	if n := h.requests(); n != 0 {
		t.Errorf("%d certificates were asked for", n)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{Store: DirStore("x"), HubCA: []byte("nothing")}); err == nil {
		t.Error("a CA file without a certificate is accepted")
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a certificate can be kept nowhere, and that is accepted")
	}
}

func TestStores(t *testing.T) {
	c := framework.Client(t, admin)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "store-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	want := &Credentials{Certificate: newAuthority(t).pem(), Key: key, Pending: key}
	for name, store := range map[string]Store{
		"folder": DirStore(filepath.Join(t.TempDir(), "a", "b")),
		"Secret": &SecretStore{Client: c, Namespace: namespace.Name},
	} {
		if got, err := store.Load(t.Context()); err != nil || !cmp.Equal(got, &Credentials{}) {
			t.Errorf("%s: before anything was saved: %v, %v", name, got, err)
		}
		for range 2 {
			if err := store.Save(t.Context(), want); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		got, err := store.Load(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-saved +loaded):\n%s", name, diff)
		}
		if _, err := got.open(); err == nil {
			t.Errorf("%s: a certificate of nobody's is taken for an agent's", name)
		}
	}
}
