package clusterprofile_test

import (
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	inventoryv1alpha1 "github.com/fleetwright/fleetwright/api/inventory/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/clusterprofile"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// member is a cluster whose agent says this of its health; nothing where there is no status.
func member(status metav1.ConditionStatus, reason string) *clusterv1.MemberCluster {
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "paris"}}
	agent := clusterv1.AgentStatus{Type: clusterv1.MemberAgent}
	if status != "" {
		agent.Conditions = []metav1.Condition{{Type: clusterv1.ConditionHealthy, Status: status, Reason: reason, Message: "says the agent"}}
	}
	cluster.Status.AgentStatus = []clusterv1.AgentStatus{agent}
	return cluster
}

func TestHealth(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cluster *clusterv1.MemberCluster
		want    string
	}{
		"no agent":        {&clusterv1.MemberCluster{}, "Unknown/MemberAgentReportedNoStatus"},
		"nothing said":    {member("", ""), "Unknown/MemberAgentReportedNoHealthInfo"},
		"not known":       {member("Unknown", "Odd"), "Unknown/MemberAgentReportedNoHealthInfo"},
		"silent":          {member("Unknown", clusterv1.ReasonHeartbeatLost), "False/MemberAgentHeartbeatLost"},
		"healthy":         {member("True", clusterv1.ReasonHealthy), "True/MemberClusterAPIServerHealthy"},
		"does not answer": {member("False", clusterv1.ReasonUnhealthy), "False/MemberClusterAPIServerUnhealthy"},
	} {
		got := clusterprofile.Status(tc.cluster, &inventoryv1alpha1.ClusterProfileStatus{}, 3, noon).Conditions
		if len(got) != 1 || got[0].Type != "ControlPlaneHealthy" || string(got[0].Status)+"/"+got[0].Reason != tc.want || got[0].ObservedGeneration != 3 {
			t.Errorf("%s: got %+v, want %s", name, got, tc.want)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	cluster := member("True", clusterv1.ReasonHealthy)
	seen := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	set := func(minutes int, nodes string) {
		cluster.Status.Properties = map[string]clusterv1.PropertyValue{
			clusterv1.NodeCountProperty:         {Value: nodes, ObservationTime: seen(minutes)},
			clusterv1.KubernetesVersionProperty: {Value: "v1.37.2", ObservationTime: seen(minutes)},
			"empty":                             {ObservationTime: seen(minutes)},
			"long":                              {Value: strings.Repeat("x", 1025), ObservationTime: seen(minutes)},
		}
	}
	set(0, "2")
	others := &inventoryv1alpha1.ClusterProfileStatus{Conditions: []metav1.Condition{{Type: "TheirOwn", Status: "True"}}}
	first := clusterprofile.Status(cluster, others, 1, noon)
	want := []inventoryv1alpha1.Property{
		{Name: "k8s.io/k8s-version", Value: "v1.37.2", LastObservedTime: ptr.To(seen(0))},
		{Name: "kubernetes-fleet.io/node-count", Value: "2", LastObservedTime: ptr.To(seen(0))},
	}
	if diff := cmp.Diff(want, first.Properties); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if first.Version.Kubernetes != "v1.37.2" || first.Conditions[0].Type != "TheirOwn" {
		t.Errorf("got version %q, conditions %+v", first.Version.Kubernetes, first.Conditions)
	}
	// A heartbeat is no news: nothing is written for it.
	set(2, "2")
	if diff := cmp.Diff(first, clusterprofile.Status(cluster, first, 1, noon.Add(2*time.Minute))); diff != "" {
		t.Errorf("after a heartbeat (-before +after):\n%s", diff)
	}
	set(4, "3")
	changed := clusterprofile.Status(cluster, first, 1, noon.Add(4*time.Minute))
	want[1] = inventoryv1alpha1.Property{Name: "kubernetes-fleet.io/node-count", Value: "3", LastObservedTime: ptr.To(seen(4))}
	if diff := cmp.Diff(want, changed.Properties); diff != "" {
		t.Errorf("properties, one of which changed (-want +got):\n%s", diff)
	}
}
