package work

import (
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestWhenMembershipChanges: a member's bindings are looked at when it can be reached, or no longer, and not each time its
// agent reports how much of its CPU is free.
func TestWhenMembershipChanges(t *testing.T) {
	t.Parallel()
	member := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "1"}}
	member.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent, Conditions: []metav1.Condition{
		{Type: clusterv1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Healthy"},
	}}}
	member.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "Joined"}}
	for name, tc := range map[string]struct {
		change func(*clusterv1.MemberCluster)
		want   bool
	}{
		"a label": {change: func(m *clusterv1.MemberCluster) { m.Labels = map[string]string{"zone": "a"} }},
		"a taint": {change: func(m *clusterv1.MemberCluster) { m.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: "NoSchedule"}} }},
		"a property": {change: func(m *clusterv1.MemberCluster) {
			m.Status.Properties = map[string]clusterv1.PropertyValue{"p": {Value: "1"}}
		}},
		"its usage": {change: func(m *clusterv1.MemberCluster) {
			m.Status.ResourceUsage.Available = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}},
		"a namespace": {change: func(m *clusterv1.MemberCluster) { m.Status.Namespaces = map[string]string{"demo": ""} }},
		"it is lost": {change: func(m *clusterv1.MemberCluster) {
			m.Status.AgentStatus[0].Conditions[0].Reason = clusterv1.ReasonHeartbeatLost
		}, want: true},
		"it has not joined":    {change: func(m *clusterv1.MemberCluster) { m.Status.Conditions[0].Status = metav1.ConditionFalse }, want: true},
		"it leaves":            {change: func(m *clusterv1.MemberCluster) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, want: true},
		"another has its name": {change: func(m *clusterv1.MemberCluster) { m.UID = "2" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := member.DeepCopy()
			tc.change(after)
			if got := whenMembershipChanges().Update(event.UpdateEvent{ObjectOld: member, ObjectNew: after}); got != tc.want {
				t.Errorf("passes %t, want %t", got, tc.want)
			}
		})
	}
}
