package heartbeat

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/agent/properties"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestAccount(t *testing.T) {
	t.Parallel()
	imc := &clusterv1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	all := facts{
		clusterID: "id", joined: &metav1.Condition{Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAgentJoined, Message: "applies"},
		health: &health{ok: true, message: "ready"}, now: noon,
		cluster: properties.Account{
			Report: &properties.Report{
				Properties: map[string]string{clusterv1.NodeCountProperty: "2"},
				Available:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
			},
			Namespaces: map[string]string{"default": "", "app": "app-work"},
			Conditions: []metav1.Condition{{Type: clusterv1.ConditionNamespaceCollectionSucceeded, Status: "True", Reason: clusterv1.ReasonNamespaceCollectionSucceeded, Message: "all"}},
		},
	}
	first := account(imc, all)
	want := &clusterv1.InternalMemberClusterStatus{
		ClusterID:     "id",
		Properties:    map[string]clusterv1.PropertyValue{clusterv1.NodeCountProperty: {Value: "2", ObservationTime: metav1.NewTime(noon)}},
		ResourceUsage: clusterv1.ResourceUsage{Available: all.cluster.Report.Available, ObservationTime: metav1.NewTime(noon)},
		Namespaces:    map[string]string{"default": "", "app": "app-work"},
		Conditions: []metav1.Condition{
			{Type: "NamespaceCollectionSucceeded", Status: "True", Reason: "Succeeded", Message: "all", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(noon)},
		},
		AgentStatus: []clusterv1.AgentStatus{{
			Type: clusterv1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(noon),
			Conditions: []metav1.Condition{
				{Type: "Joined", Status: "True", Reason: "InternalMemberClusterJoined", Message: "applies", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(noon)},
				{Type: "Healthy", Status: "True", Reason: "InternalMemberClusterHealthy", Message: "ready", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(noon)},
			},
		}},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
	imc.Status = *first

	// An agent that was restarted knows nothing yet, and takes nothing back.
	if after := account(imc, facts{clusterID: "id", now: noon.Add(time.Hour)}); silence(first, after) != accountPeriod {
		t.Errorf("after a restart (-before +after):\n%s", cmp.Diff(first, after))
	}
	for name, tc := range map[string]struct {
		change func(*facts)
		want   time.Duration
	}{
		"later":       {func(f *facts) { f.now = noon.Add(time.Minute) }, accountPeriod},
		"not healthy": {func(f *facts) { f.health = &health{message: "etcd"} }, 0},
		"another node": {func(f *facts) {
			f.cluster.Report = &properties.Report{Properties: map[string]string{clusterv1.NodeCountProperty: "3"}}
		}, 0},
		"another namespace": {func(f *facts) {
			f.cluster.Namespaces = map[string]string{"default": "", "app": "app-work", "more": ""}
		}, 0},
		"a namespace of another owner": {func(f *facts) {
			f.cluster.Namespaces = map[string]string{"default": "", "app": "other-work"}
		}, 0},
		"namespaces cannot be read any more": {func(f *facts) {
			f.cluster.Conditions = []metav1.Condition{{Type: clusterv1.ConditionNamespaceCollectionSucceeded, Status: "False", Reason: clusterv1.ReasonNamespaceCollectionDegraded}}
		}, 0},
		"pods came": {func(f *facts) {
			report := *all.cluster.Report
			report.Available = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			f.cluster.Report = &report
		}, churnPeriod},
		"pods came, and a node went": {func(f *facts) {
			report := *all.cluster.Report
			report.Available, report.Allocatable = corev1.ResourceList{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			f.cluster.Report = &report
		}, 0},
		"left": {func(f *facts) {
			f.joined = &metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1.ReasonAgentLeft}
		}, 0},
	} {
		f := all
		tc.change(&f)
		if got := silence(first, account(imc, f)); got != tc.want {
			t.Errorf("%s: the account can wait %s, want %s", name, got, tc.want)
		}
	}
	imc.Generation = 4
	if silence(first, account(imc, all)) != 0 {
		t.Error("the account for a new generation is taken for the same")
	}
}

func TestLeavingNamesAFew(t *testing.T) {
	t.Parallel()
	got := leaving([]string{"a", "b", "c", "d", "e", "f", "g"}).Message
	if want := "the agent is leaving; 7 objects are still there: a, b, c, d, e and more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestChecker asks a server that answers otherwise each time.
func TestChecker(t *testing.T) {
	t.Parallel()
	status, body := http.StatusOK, "ok"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	c, err := newChecker(&rest.Config{Host: server.URL}, clock.RealClock{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ask(t.Context()); got != "" {
		t.Errorf("a server that is well: %q", got)
	}
	status, body = http.StatusInternalServerError, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
	want := "the cluster's API server says that it is not ready: 500 Internal Server Error: [-]etcd failed: reason withheld readyz check failed"
	if got := c.ask(t.Context()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	body = strings.Repeat("[+]poststarthook/something-that-is-well ok\n", 40) + "[-]etcd failed: reason withheld\nreadyz check failed\n"
	if got := c.ask(t.Context()); got != want {
		t.Errorf("after many checks that are well: got %q, want %q", got, want)
	}
	body = strings.Repeat("[-]something failed\n", 100)
	if got := c.ask(t.Context()); len(got) > longestComplaint+200 || !strings.Contains(got, "something failed") {
		t.Errorf("a long complaint: %d bytes, %q", len(got), got)
	}
	server.Close()
	if got, want := c.ask(t.Context()), "the cluster's API server does not answer: connection refused"; got != want {
		t.Errorf("a server that is gone: got %q, want %q", got, want)
	}
}

// TestChecksThatFailAlikeSayTheSame asks a server that ends each connection: the error names a port that is another each time.
func TestChecksThatFailAlikeSayTheSame(t *testing.T) {
	t.Parallel()
	reset := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = connection.Close()
	}))
	defer reset.Close()
	c, err := newChecker(&rest.Config{Host: reset.URL}, clock.RealClock{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, want := c.ask(t.Context()), "the cluster's API server does not answer: connection reset by peer"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	at := func(hour int) error {
		return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: fmt.Sprintf("current time %d:00", hour)}}
	}
	for name, tc := range map[string]struct {
		one, other error
		want       string
	}{
		"a certificate": {fmt.Errorf("get: %w", at(1)), fmt.Errorf("get: %w", at(2)), "its certificate has expired or is not valid yet"},
		"a name": {
			&net.DNSError{Name: "kubernetes", Err: "read udp 10.0.0.1:4000->10.0.0.2:53"}, &net.DNSError{Name: "kubernetes", Err: "read udp 10.0.0.1:4001->10.0.0.2:53"},
			"its name kubernetes cannot be resolved",
		},
		"too late":     {os.ErrDeadlineExceeded, fmt.Errorf("read 127.0.0.1:4000: %w", os.ErrDeadlineExceeded), "no answer within 5s"},
		"other errors": {errors.New("10.0.0.1:4000 is odd"), errors.New("10.0.0.1:4001 is odd"), "10.0.0.1 is odd"},
	} {
		if one, other := stable(tc.one), stable(tc.other); one != tc.want || other != tc.want {
			t.Errorf("%s: got %q and %q, want %q", name, one, other, tc.want)
		}
	}
}

// TestTries are those of a leave that fails for a long time: when what keeps it is over, there must still be time for it.
func TestTries(t *testing.T) {
	t.Parallel()
	limiter := tries()
	for i := range 40 {
		if wait := limiter.When(ctrl.Request{}); wait < time.Second || wait > 15*time.Second {
			t.Fatalf("try %d comes after %s, want 1 to 15 s", i, wait)
		}
	}
}

func TestComplaintIsShort(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"one":             {errors.New("no"), "no"},
		"some":            {errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("c"))), "3 things failed: a; b; c"},
		"in others words": {fmt.Errorf("list: %w, %w", errors.New("a"), errors.New("b")), "list: a, b"},
	} {
		if got := complaint(tc.err); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	var many []error
	for range 5000 {
		many = append(many, errors.New("Deployment é/é cannot be removed"))
	}
	if got := complaint(errors.Join(many...)); len(got) > maxComplaint+len("…") || !strings.HasPrefix(got, "5000 things failed: ") || !utf8.ValidString(got) {
		t.Errorf("of 5000 errors are told %d bytes: %q", len(got), got)
	}
}

func TestLastHeartbeat(t *testing.T) {
	t.Parallel()
	if got := lastHeartbeat(&clusterv1.InternalMemberClusterStatus{}); !got.IsZero() {
		t.Errorf("before the first account: %s", got)
	}
	s := account(&clusterv1.InternalMemberCluster{}, facts{now: noon})
	if got := lastHeartbeat(s); !got.Equal(noon) {
		t.Errorf("got %s, want %s", got, noon)
	}
	if c := meta.FindStatusCondition(s.AgentStatus[0].Conditions, clusterv1.ConditionJoined); c != nil {
		t.Errorf("what is not decided is reported: %+v", c)
	}
}
