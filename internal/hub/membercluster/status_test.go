package membercluster

import (
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(now.Add(time.Duration(seconds) * time.Second))
}

func word(conditionType string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: at(-600)}
}

// member is a MemberCluster of generation 7 whose InternalMemberCluster has generation 3.
func member(conditions ...metav1.Condition) (*clusterv1.MemberCluster, *clusterv1.InternalMemberCluster) {
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid", Generation: 7}}
	imc := &clusterv1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m", Name: "m", Generation: 3}}
	imc.Spec.State = clusterv1.ClusterStateJoin
	if len(conditions) > 0 {
		imc.Status.ClusterID = "id"
		imc.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent, Conditions: conditions, LastReceivedHeartbeat: at(-60)}}
	}
	return cluster, imc
}

var (
	agentJoined  = word(clusterv1.ConditionJoined, metav1.ConditionTrue, clusterv1.ReasonAgentJoined, "applies", 3)
	agentHealthy = word(clusterv1.ConditionHealthy, metav1.ConditionTrue, clusterv1.ReasonHealthy, "ready", 3)
)

// summary is a condition in a line.
func summary(c *metav1.Condition) string {
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

func TestStatus(t *testing.T) {
	t.Parallel()
	type want struct{ ready, joined, healthy, joinedSays string }
	ready := "True/MemberClusterReadyToJoin"
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		change     func(*observed)
		want       want
	}{
		"no agent yet": {
			want: want{ready, "Unknown/MemberClusterJoinStateUnknown", "", "kubectl create token fleet-bootstrap -n fleet-member-m"},
		},
		"no agent yet, with an identity": {
			change: func(o *observed) {
				o.cluster.Spec.Identity = &rbacv1.Subject{Kind: "ServiceAccount", Namespace: "agents", Name: "m"}
			},
			want: want{ready, "Unknown/MemberClusterJoinStateUnknown", "", "--token-file, a file with a token of ServiceAccount agents/m"},
		},
		"joined and healthy": {
			conditions: []metav1.Condition{agentJoined, agentHealthy},
			want:       want{ready, "True/MemberClusterJoined", "True/InternalMemberClusterHealthy", "the agent has joined"},
		},
		"joined, not healthy": {
			conditions: []metav1.Condition{agentJoined, word(clusterv1.ConditionHealthy, metav1.ConditionFalse, clusterv1.ReasonUnhealthy, "etcd", 3)},
			want:       want{ready, "True/MemberClusterJoined", "False/InternalMemberClusterUnhealthy", "the agent has joined"},
		},
		"not able to join": {
			conditions: []metav1.Condition{word(clusterv1.ConditionJoined, metav1.ConditionUnknown, clusterv1.ReasonAgentFailedToLeave, "no CRD", 3)},
			want:       want{ready, "Unknown/MemberClusterJoinStateUnknown", "", "the agent reports: no CRD"},
		},
		"lost": {
			conditions: []metav1.Condition{agentJoined, agentHealthy},
			change:     func(o *observed) { o.verdict = verdict{lost: true, since: now.Add(-31 * time.Second)} },
			want:       want{ready, "Unknown/MemberClusterJoinStateUnknown", "Unknown/MemberAgentHeartbeatLost", "since 2026-01-01T11:59:29Z"},
		},
		"rights are missing": {
			conditions: []metav1.Condition{agentJoined, agentHealthy},
			change:     func(o *observed) { o.unready = "namespace is going" },
			want:       want{"False/MemberClusterNotReadyToJoin", "True/MemberClusterJoined", "True/InternalMemberClusterHealthy", "the agent has joined"},
		},
		"leaving": {
			conditions: []metav1.Condition{agentJoined, agentHealthy},
			change: func(o *observed) {
				deleted := at(-5)
				o.cluster.DeletionTimestamp = &deleted
				o.internal.Spec.State = clusterv1.ClusterStateLeave
				o.unready = "waits for its agent"
			},
			want: want{"False/MemberClusterNotReadyToJoin", "True/MemberClusterJoined", "True/InternalMemberClusterHealthy", "the agent has joined"},
		},
		"left": {
			conditions: []metav1.Condition{word(clusterv1.ConditionJoined, metav1.ConditionFalse, clusterv1.ReasonAgentLeft, "gone", 3), agentHealthy},
			change: func(o *observed) {
				deleted := at(-5)
				o.cluster.DeletionTimestamp = &deleted
				o.internal.Spec.State = clusterv1.ClusterStateLeave
				o.unready = "is being removed"
			},
			want: want{"False/MemberClusterNotReadyToJoin", "False/MemberClusterLeft", "True/InternalMemberClusterHealthy", "gone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, imc := member(tc.conditions...)
			o := observed{cluster: cluster, internal: imc, now: now}
			if tc.change != nil {
				tc.change(&o)
			}
			before := cluster.DeepCopy()
			s := status(o)
			if diff := cmp.Diff(before, cluster); diff != "" {
				t.Errorf("the MemberCluster itself was changed (-before +after):\n%s", diff)
			}
			joined := meta.FindStatusCondition(s.Conditions, clusterv1.ConditionJoined)
			got := want{
				summary(meta.FindStatusCondition(s.Conditions, clusterv1.ConditionReadyToJoin)), summary(joined),
				summary(agentCondition(s.AgentStatus, clusterv1.ConditionHealthy)), tc.want.joinedSays,
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if !strings.Contains(joined.Message, tc.want.joinedSays) {
				t.Errorf("Joined says %q, want it to contain %q", joined.Message, tc.want.joinedSays)
			}
			for _, c := range s.Conditions {
				if c.ObservedGeneration != cluster.Generation {
					t.Errorf("condition %s has observedGeneration %d, want the MemberCluster's, %d", c.Type, c.ObservedGeneration, cluster.Generation)
				}
			}
			// The same facts once more change nothing: a pass without news writes nothing.
			o.cluster.Status, o.now = *s, now.Add(time.Minute)
			if diff := cmp.Diff(s, status(o)); diff != "" {
				t.Errorf("a second pass differs (-first +second):\n%s", diff)
			}
		})
	}
}

func TestStatusOfAgentIsTakenOver(t *testing.T) {
	t.Parallel()
	cluster, imc := member(agentJoined, word(clusterv1.ConditionHealthy, metav1.ConditionTrue, clusterv1.ReasonHealthy, "ready", 2))
	imc.Status.Properties = map[string]clusterv1.PropertyValue{clusterv1.NodeCountProperty: {Value: "2", ObservationTime: at(-60)}}
	imc.Status.Namespaces = map[string]string{"default": "", "app": "app-work"}
	imc.Status.Conditions = []metav1.Condition{
		word(clusterv1.ConditionPropertyCollectionSucceeded, metav1.ConditionFalse, clusterv1.ReasonPropertyCollectionFailed, strings.Repeat("pods; ", 1000), 3),
		word("Invented", metav1.ConditionTrue, "ByAnAgent", "not ours to say", 3),
	}
	s := status(observed{cluster: cluster, internal: imc, now: now})
	if diff := cmp.Diff(imc.Status.Namespaces, s.Namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	collected := meta.FindStatusCondition(s.Conditions, clusterv1.ConditionPropertyCollectionSucceeded)
	if summary(collected) != "False/CollectionFailed" || len(collected.Message) > longestWord+len("…") || collected.ObservedGeneration != 7 {
		t.Errorf("how well the agent finds out: %+v", collected)
	}
	if meta.FindStatusCondition(s.Conditions, "Invented") != nil {
		t.Error("an agent can say anything in the name of the hub")
	}
	cluster.Status, imc.Status.Conditions = *s, nil
	if c := meta.FindStatusCondition(status(observed{cluster: cluster, internal: imc, now: now}).Conditions, collected.Type); c != nil {
		t.Errorf("what the agent does not say any more is still said: %+v", c)
	}
	if s.ClusterID != "id" {
		t.Errorf("clusterID %q is recorded, want the one that the agent reports", s.ClusterID)
	}
	if diff := cmp.Diff(imc.Status.Properties, s.Properties); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if got := agentCondition(s.AgentStatus, clusterv1.ConditionJoined).ObservedGeneration; got != 7 {
		t.Errorf("a condition for the present InternalMemberCluster has observedGeneration %d, want 7", got)
	}
	if got := agentCondition(s.AgentStatus, clusterv1.ConditionHealthy).ObservedGeneration; got != 0 {
		t.Errorf("a condition for an older one has observedGeneration %d, want 0", got)
	}
}

// TestLossAndRecovery follows an agent that falls silent, is judged again after a restart of the hub, and comes back.
func TestLossAndRecovery(t *testing.T) {
	t.Parallel()
	cluster, imc := member(agentJoined, agentHealthy)
	cluster.Status = *status(observed{cluster: cluster, internal: imc, now: now.Add(-time.Minute)})

	cluster.Status = *status(observed{cluster: cluster, internal: imc, now: now, verdict: verdict{lost: true, since: now.Add(-30 * time.Second)}})
	lost := agentCondition(cluster.Status.AgentStatus, clusterv1.ConditionHealthy)
	if got := lost.LastTransitionTime; !got.Equal(ptr.To(at(0))) {
		t.Errorf("the loss dates from %s, want the moment of the verdict", got)
	}
	if got := agent(cluster.Status.AgentStatus).LastReceivedHeartbeat; !got.Equal(ptr.To(at(-30))) {
		t.Errorf("the last heartbeat dates from %s, want that of the last sign", got)
	}
	// A restarted hub does not know any more since when.
	after := status(observed{cluster: cluster, internal: imc, now: now.Add(time.Hour), verdict: verdict{lost: true}})
	if diff := cmp.Diff(&cluster.Status, after); diff != "" {
		t.Errorf("a restart of the hub changes the status (-before +after):\n%s", diff)
	}

	cluster.Status = *status(observed{cluster: cluster, internal: imc, now: now.Add(2 * time.Hour)})
	healthy := agentCondition(cluster.Status.AgentStatus, clusterv1.ConditionHealthy)
	if summary(healthy) != "True/InternalMemberClusterHealthy" || !healthy.LastTransitionTime.Equal(ptr.To(at(7200))) {
		t.Errorf("after a new sign: %+v, want healthy since that moment", healthy)
	}
	again := status(observed{cluster: cluster, internal: imc, now: now.Add(3 * time.Hour)})
	if diff := cmp.Diff(&cluster.Status, again); diff != "" {
		t.Errorf("the next pass changes it again (-before +after):\n%s", diff)
	}
}

// TestNothingIsForgotten: an InternalMemberCluster that was made again is empty until the agent has answered.
func TestNothingIsForgotten(t *testing.T) {
	t.Parallel()
	cluster, imc := member(agentJoined, agentHealthy)
	cluster.Status = *status(observed{cluster: cluster, internal: imc, now: now})
	_, empty := member()
	for name, internal := range map[string]*clusterv1.InternalMemberCluster{"empty": empty, "absent": nil} {
		if diff := cmp.Diff(&cluster.Status, status(observed{cluster: cluster, internal: internal, now: now.Add(time.Hour)})); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}

func TestSecondCluster(t *testing.T) {
	t.Parallel()
	cluster, imc := member(agentJoined, agentHealthy)
	cluster.Status = *status(observed{cluster: cluster, internal: imc, now: now})
	imc.Status.ClusterID = "other"
	cluster.Status = *status(observed{cluster: cluster, internal: imc, now: now, conflicting: true, otherID: "other"})
	if cluster.Status.ClusterID != "id" {
		t.Errorf("the recorded ID became %q", cluster.Status.ClusterID)
	}
	conflict := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionClusterIDConflict)
	if summary(conflict) != "True/MemberClusterIDMismatch" || !strings.Contains(conflict.Message, "UID other") {
		t.Errorf("got condition %+v", conflict)
	}
	if joined := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionJoined); summary(joined) != "True/MemberClusterJoined" {
		t.Errorf("the member itself is %s", summary(joined))
	}
	// A restarted hub does not know the other's ID any more.
	if diff := cmp.Diff(&cluster.Status, status(observed{cluster: cluster, internal: imc, now: now, conflicting: true})); diff != "" {
		t.Errorf("a restart of the hub changes the status (-before +after):\n%s", diff)
	}
	after := status(observed{cluster: cluster, internal: imc, now: now.Add(time.Hour)})
	if c := meta.FindStatusCondition(after.Conditions, clusterv1.ConditionClusterIDConflict); c != nil {
		t.Errorf("long after the second cluster was seen last there is %+v", c)
	}
}
