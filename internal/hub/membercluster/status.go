package membercluster

import (
	"fmt"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// longestWord is how long a message of an agent may be, in bytes; longestMessage is the same for our own conditions, which
	// quote it. The API refuses a whole status with one of more than 32 KiB.
	longestWord, longestMessage = 1024, 4096
)

// observed is all that the status of a MemberCluster depends on.
type observed struct {
	cluster *clusterv1.MemberCluster
	// internal is where the agent reports; nil if there is none.
	internal *clusterv1.InternalMemberCluster
	// unready says why what the agent needs is not all there; empty if it is.
	unready string
	// verdict is what is to be thought of the agent's silence.
	verdict verdict
	// conflicting tells whether a second cluster signs in under the name, and otherID is that cluster's ID; it may be
	// unknown.
	conflicting bool
	otherID     string
	now         time.Time
}

// agent returns the member agent's entry, or nil.
func agent(statuses []clusterv1.AgentStatus) *clusterv1.AgentStatus {
	for i := range statuses {
		if statuses[i].Type == clusterv1.MemberAgent {
			return &statuses[i]
		}
	}
	return nil
}

// agentCondition returns a condition of the member agent, or nil.
func agentCondition(statuses []clusterv1.AgentStatus, conditionType string) *metav1.Condition {
	if a := agent(statuses); a != nil {
		return meta.FindStatusCondition(a.Conditions, conditionType)
	}
	return nil
}

// hasLeft tells whether the agent has done what it was last asked, which was to leave.
func hasLeft(internal *clusterv1.InternalMemberCluster) bool {
	joined := agentCondition(internal.Status.AgentStatus, clusterv1.ConditionJoined)
	return internal.Spec.State == clusterv1.ClusterStateLeave && joined != nil &&
		joined.Status == metav1.ConditionFalse && joined.ObservedGeneration >= internal.Generation
}

// status computes the status of a MemberCluster. It changes nothing that it is given.
func status(o observed) *clusterv1.MemberClusterStatus {
	s := o.cluster.Status.DeepCopy()
	if o.internal != nil {
		takeOver(s, o)
	}
	if o.verdict.lost {
		markLost(s, o)
	}
	setCondition(s, o, readyToJoin(o))
	setCondition(s, o, joined(s, o))
	if conflict := clusterIDConflict(o); conflict != nil {
		setCondition(s, o, *conflict)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, clusterv1.ConditionClusterIDConflict)
	}
	return s
}

func setCondition(s *clusterv1.MemberClusterStatus, o observed, condition metav1.Condition) {
	condition.ObservedGeneration = o.cluster.Generation
	condition.LastTransitionTime = metav1.NewTime(o.now)
	condition.Message = placement.Cut(condition.Message, longestMessage)
	meta.SetStatusCondition(&s.Conditions, condition)
}

// takeOver copies the agent's account. What an agent has not reported yet, since its InternalMemberCluster was made again,
// stays as it was.
func takeOver(s *clusterv1.MemberClusterStatus, o observed) {
	reported := o.internal.Status.DeepCopy()
	if s.ClusterID == "" {
		s.ClusterID = o.internal.Spec.ClusterID
	}
	if s.ClusterID == "" {
		s.ClusterID = reported.ClusterID
	}
	if agent(reported.AgentStatus) == nil {
		return
	}
	s.Properties, s.ResourceUsage, s.Namespaces = reported.Properties, reported.ResourceUsage, reported.Namespaces
	takeOverCollection(s, o)
	for i := range reported.AgentStatus {
		a := &reported.AgentStatus[i]
		for j := range a.Conditions {
			condition := &a.Conditions[j]
			condition.Message = placement.Cut(condition.Message, longestWord)
			before := conditionOf(s.AgentStatus, a.Type, condition.Type)
			switch {
			case condition.ObservedGeneration >= o.internal.Generation:
				condition.ObservedGeneration = o.cluster.Generation
			case before != nil:
				condition.ObservedGeneration = before.ObservedGeneration
			default:
				condition.ObservedGeneration = 0
			}
			switch {
			case before == nil:
			case before.Status == condition.Status:
				condition.LastTransitionTime = before.LastTransitionTime
			case before.Reason == clusterv1.ReasonHeartbeatLost:
				condition.LastTransitionTime = metav1.NewTime(o.now)
			}
		}
		if o.verdict.lost { // the newest sign may have been seen on the Lease alone
			if before := entryOf(s.AgentStatus, a.Type); before != nil && a.LastReceivedHeartbeat.Before(&before.LastReceivedHeartbeat) {
				a.LastReceivedHeartbeat = before.LastReceivedHeartbeat
			}
		}
	}
	// The hub's own word on a lost agent is found again by markLost.
	if lost := agentCondition(s.AgentStatus, clusterv1.ConditionHealthy); lost != nil && o.verdict.lost && lost.Reason == clusterv1.ReasonHeartbeatLost {
		meta.RemoveStatusCondition(&agent(reported.AgentStatus).Conditions, clusterv1.ConditionHealthy)
		a := agent(reported.AgentStatus)
		a.Conditions = append(a.Conditions, *lost)
	}
	s.AgentStatus = reported.AgentStatus
}

// collection are the conditions by which an agent says how well it finds out about its cluster.
var collection = []string{
	clusterv1.ConditionPropertyProviderStarted, clusterv1.ConditionPropertyCollectionSucceeded, clusterv1.ConditionNamespaceCollectionSucceeded,
}

// takeOverCollection copies those conditions. What an agent does not say, one of an earlier version for instance, is not said.
func takeOverCollection(s *clusterv1.MemberClusterStatus, o observed) {
	for _, conditionType := range collection {
		reported := meta.FindStatusCondition(o.internal.Status.Conditions, conditionType)
		if reported == nil {
			meta.RemoveStatusCondition(&s.Conditions, conditionType)
			continue
		}
		condition := *reported
		condition.ObservedGeneration = o.cluster.Generation
		condition.Message = placement.Cut(condition.Message, longestWord)
		meta.SetStatusCondition(&s.Conditions, condition)
	}
}

func entryOf(statuses []clusterv1.AgentStatus, t clusterv1.AgentType) *clusterv1.AgentStatus {
	for i := range statuses {
		if statuses[i].Type == t {
			return &statuses[i]
		}
	}
	return nil
}

func conditionOf(statuses []clusterv1.AgentStatus, t clusterv1.AgentType, conditionType string) *metav1.Condition {
	if entry := entryOf(statuses, t); entry != nil {
		return meta.FindStatusCondition(entry.Conditions, conditionType)
	}
	return nil
}

// markLost says, on the agent's health, that nothing was heard of it.
func markLost(s *clusterv1.MemberClusterStatus, o observed) {
	a := agent(s.AgentStatus)
	if a == nil {
		return
	}
	if since := metav1.NewTime(o.verdict.since.Truncate(time.Second)); !o.verdict.since.IsZero() && a.LastReceivedHeartbeat.Before(&since) {
		a.LastReceivedHeartbeat = since
	}
	healthy := meta.FindStatusCondition(a.Conditions, clusterv1.ConditionHealthy)
	if healthy != nil && healthy.Reason == clusterv1.ReasonHeartbeatLost {
		healthy.ObservedGeneration = o.cluster.Generation
		return
	}
	meta.SetStatusCondition(&a.Conditions, metav1.Condition{
		Type:               clusterv1.ConditionHealthy,
		Status:             metav1.ConditionUnknown,
		Reason:             clusterv1.ReasonHeartbeatLost,
		Message:            fmt.Sprintf("no sign of life from the agent of cluster %s since %s", o.cluster.Name, clockTime(a.LastReceivedHeartbeat.Time)),
		ObservedGeneration: o.cluster.Generation,
		LastTransitionTime: metav1.NewTime(o.now),
	})
}

func readyToJoin(o observed) metav1.Condition {
	if o.unready != "" {
		return metav1.Condition{Type: clusterv1.ConditionReadyToJoin, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonNotReadyToJoin, Message: o.unready}
	}
	return metav1.Condition{
		Type: clusterv1.ConditionReadyToJoin, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonReadyToJoin,
		Message: fmt.Sprintf("namespace %s and the agent's rights in it exist", placement.MemberNamespace(o.cluster.Name)),
	}
}

// joined tells from the agent's word, already taken over into s, whether the cluster is a member.
func joined(s *clusterv1.MemberClusterStatus, o observed) metav1.Condition {
	result := metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionUnknown, Reason: clusterv1.ReasonJoinStateUnknown}
	word := agentCondition(s.AgentStatus, clusterv1.ConditionJoined)
	switch {
	case word != nil && word.Reason == clusterv1.ReasonAgentLeft && o.cluster.DeletionTimestamp != nil:
		result.Status, result.Reason, result.Message = metav1.ConditionFalse, clusterv1.ReasonLeft, word.Message
	case word == nil:
		result.Message = howToJoin(o.cluster)
	case o.verdict.lost:
		since := clockTime(agent(s.AgentStatus).LastReceivedHeartbeat.Time)
		result.Message = fmt.Sprintf("no sign of life from the agent of cluster %s since %s; what was placed there stays as it is. "+
			"Check in the cluster that the agent runs and that its log shows no errors, and that it reaches the hub's API server", o.cluster.Name, since)
	case word.Status == metav1.ConditionTrue:
		result.Status, result.Reason, result.Message = metav1.ConditionTrue, clusterv1.ReasonJoined, "the agent has joined"
		if deleted := o.cluster.DeletionTimestamp; deleted != nil {
			result.Message += ", and the cluster is leaving since " + clockTime(deleted.Time)
		}
	default:
		result.Message = "the agent reports: " + word.Message
	}
	return result
}

func howToJoin(cluster *clusterv1.MemberCluster) string {
	if id := cluster.Spec.Identity; id != nil {
		as := id.Kind + " " + id.Name
		if id.Kind == rbacv1.ServiceAccountKind {
			as = id.Kind + " " + id.Namespace + "/" + id.Name
		}
		return fmt.Sprintf("no agent has joined yet: start fleetwright-agent in the cluster with --cluster-name=%s and --token-file, a file with a token of %s", cluster.Name, as)
	}
	return fmt.Sprintf("no agent has joined yet: start fleetwright-agent in the cluster with --cluster-name=%s and --bootstrap-token-file, a file with what "+
		"`kubectl create token %s -n %s` prints", cluster.Name, clusterv1.BootstrapServiceAccount, placement.MemberNamespace(cluster.Name))
}

func clusterIDConflict(o observed) *metav1.Condition {
	if !o.conflicting {
		return nil
	}
	if o.otherID == "" { // recorded before this process began
		return meta.FindStatusCondition(o.cluster.Status.Conditions, clusterv1.ConditionClusterIDConflict)
	}
	return &metav1.Condition{
		Type:    clusterv1.ConditionClusterIDConflict,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1.ReasonClusterIDMismatch,
		Message: conflictMessage(o.cluster, o.otherID),
	}
}

func conflictMessage(cluster *clusterv1.MemberCluster, otherID string) string {
	return fmt.Sprintf("a second cluster, whose kube-system namespace has the UID %s, tries to sign in as %s and is refused; the member is the cluster with %s. "+
		"Stop the second one's agent, or give it a MemberCluster of its own; if it replaces the first, delete this MemberCluster and make it again",
		otherID, cluster.Name, cluster.Status.ClusterID)
}

// clockTime writes a time for people.
func clockTime(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}
