package membercluster

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLongWordOfAnAgent: what an agent says is cut, so that it never keeps a status from being written.
func TestLongWordOfAnAgent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 20000)
	cluster, imc := member(word(clusterv1.ConditionJoined, metav1.ConditionUnknown, clusterv1.ReasonAgentFailedToLeave, long, 3))
	s := status(observed{cluster: cluster, internal: imc, now: now, unready: long})
	for _, condition := range append(s.Conditions, s.AgentStatus[0].Conditions...) {
		if len(condition.Message) > longestMessage || !utf8.ValidString(condition.Message) {
			t.Errorf("the message of %s has %d bytes: %.60q", condition.Type, len(condition.Message), condition.Message)
		}
	}
	if got := len(s.AgentStatus[0].Conditions[0].Message); got > longestWord || got < longestWord-4 {
		t.Errorf("the agent's message was cut to %d bytes", got)
	}
	if len(imc.Status.AgentStatus[0].Conditions[0].Message) != len(long) {
		t.Error("what was given was changed")
	}
}

// TestLeavingIsSaid: a member that is leaving says so where people look first.
func TestLeavingIsSaid(t *testing.T) {
	t.Parallel()
	cluster, imc := member(agentJoined, agentHealthy)
	cluster.DeletionTimestamp = &metav1.Time{Time: now}
	joined := meta.FindStatusCondition(status(observed{cluster: cluster, internal: imc, now: now}).Conditions, clusterv1.ConditionJoined)
	if !strings.Contains(joined.Message, "is leaving since "+clockTime(now)) {
		t.Errorf("Joined says %q", joined.Message)
	}
}

// TestNamespaceOfSomebodyElse: a namespace that was there before is not taken over, and stays when the cluster leaves.
func TestNamespaceOfSomebodyElse(t *testing.T) {
	c := hub(t)
	name := "stranger-" + rand.String(5)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(name)}}
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, object := range []client.Object{namespace, cluster} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	framework.Await(t, c, cluster, "refuses the namespace", func(m *clusterv1.MemberCluster) bool {
		ready := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionReadyToJoin)
		return ready != nil && ready.Status == metav1.ConditionFalse && strings.Contains(ready.Message, "Namespace "+namespace.Name+" exists and was not made for this cluster")
	})
	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, c, cluster)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil || namespace.DeletionTimestamp != nil || len(namespace.OwnerReferences) > 0 {
		t.Errorf("the namespace is %+v, %v", namespace.ObjectMeta, err)
	}
}

// TestFinalizerStripped: a MemberCluster that went without the hub leaves no namespace behind that cannot go.
func TestFinalizerStripped(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "stripped", nil)
	join(t, c, cluster, "id")
	work := newWork(t, c, cluster.Name, "w")
	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, c, cluster)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(cluster.Name)}}
	if err := c.Delete(t.Context(), namespace); err != nil { // as garbage collection does
		t.Fatal(err)
	}
	emptyNamespace(t, c, namespace.Name)
	framework.AwaitGone(t, c, work)
	framework.AwaitGone(t, c, namespace)
}

// TestLeaveAfterInternalWasMadeAnew: that an agent has joined is not forgotten with its InternalMemberCluster.
func TestLeaveAfterInternalWasMadeAnew(t *testing.T) {
	t.Parallel()
	joined, imc := member(agentJoined)
	joined.Status.AgentStatus = imc.Status.AgentStatus
	left := joined.DeepCopy()
	left.Status.AgentStatus[0].Conditions[0].Reason = clusterv1.ReasonAgentLeft
	fresh, empty := member()
	for name, tc := range map[string]struct {
		cluster *clusterv1.MemberCluster
		imc     *clusterv1.InternalMemberCluster
		want    bool
	}{
		"joined": {joined, imc, true}, "made anew": {joined, empty, true}, "never joined": {fresh, empty, false},
		"left, made anew": {left, empty, false}, "no place to answer": {joined, nil, false},
	} {
		if got := waits(tc.cluster, tc.imc); got != tc.want {
			t.Errorf("%s: waits is %v, want %v", name, got, tc.want)
		}
	}
	c := &Controller{}
	joined.DeletionTimestamp = &metav1.Time{Time: now}
	if got := c.whatIsWaitedFor(joined, observed{cluster: joined, internal: empty, now: now}); !strings.Contains(got, "waits for its agent") {
		t.Errorf("says %q", got)
	}
}

// TestNamespaceThatStays: a cluster that has left, and whose namespace does not go, quotes why.
func TestNamespaceThatStays(t *testing.T) {
	c := hub(t)
	cluster := newMember(t, c, "stays", nil)
	hubClock.SetTime(time.Now().Add(time.Minute))
	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(cluster.Name)}}
	framework.Await(t, c, namespace, "is being deleted", func(n *corev1.Namespace) bool { return n.DeletionTimestamp != nil })
	const says = "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances"
	namespace.Status.Conditions = []corev1.NamespaceCondition{
		{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Reason: "SomeFinalizersRemain", Message: says, LastTransitionTime: metav1.Now()},
		{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Reason: "ContentDeleted", Message: "fine", LastTransitionTime: metav1.Now()},
	}
	if err := c.Status().Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, c, cluster, "says what holds the namespace", func(m *clusterv1.MemberCluster) bool {
		message := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionReadyToJoin).Message
		return strings.Contains(message, "namespace "+namespace.Name+" is being deleted since") && strings.HasSuffix(message, "still there: "+says)
	})
	emptyNamespace(t, c, namespace.Name)
	framework.AwaitGone(t, c, cluster)
}
