package heartbeat

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/agent/properties"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestAccount(t *testing.T) {
	t.Parallel()
	imc := &clusterv1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	all := facts{
		clusterID: "id", joined: &metav1.Condition{Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAgentJoined, Message: "applies"},
		health: &health{ok: true, message: "ready"}, now: noon,
		report: &properties.Report{
			Properties: map[string]string{clusterv1.NodeCountProperty: "2"},
			Available:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
		},
	}
	first := account(imc, all)
	want := &clusterv1.InternalMemberClusterStatus{
		ClusterID:     "id",
		Properties:    map[string]clusterv1.PropertyValue{clusterv1.NodeCountProperty: {Value: "2", ObservationTime: metav1.NewTime(noon)}},
		ResourceUsage: clusterv1.ResourceUsage{Available: all.report.Available, ObservationTime: metav1.NewTime(noon)},
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
	if after := account(imc, facts{clusterID: "id", now: noon.Add(time.Hour)}); !sameBut(first, after) {
		t.Errorf("after a restart (-before +after):\n%s", cmp.Diff(first, after))
	}
	for name, tc := range map[string]struct {
		change func(*facts)
		same   bool
	}{
		"later":       {func(f *facts) { f.now = noon.Add(time.Minute) }, true},
		"not healthy": {func(f *facts) { f.health = &health{message: "etcd"} }, false},
		"another node": {func(f *facts) {
			f.report = &properties.Report{Properties: map[string]string{clusterv1.NodeCountProperty: "3"}}
		}, false},
		"left": {func(f *facts) {
			f.joined = &metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1.ReasonAgentLeft}
		}, false},
	} {
		f := all
		tc.change(&f)
		if got := sameBut(first, account(imc, f)); got != tc.same {
			t.Errorf("%s: the same account: %v, want %v", name, got, tc.same)
		}
	}
	imc.Generation = 4
	if sameBut(first, account(imc, all)) {
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
	server.Close()
	if got := c.ask(t.Context()); got == "" {
		t.Error("a server that is gone is well")
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
