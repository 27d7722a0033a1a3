package heartbeat

import (
	"maps"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/agent/properties"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// facts are all that the agent's account of its cluster depends on.
type facts struct {
	clusterID string
	// joined is what to say about being a member; nil while that is not decided.
	joined *metav1.Condition
	// health is what the member's API server answered last; nil before it was asked.
	health *health
	// cluster is what is known of the cluster.
	cluster properties.Account
	now     time.Time
}

// health is what the member's API server says of itself.
type health struct {
	ok      bool
	message string
}

// account computes the status of an InternalMemberCluster. What is not known yet, after a restart, stays as it was.
func account(imc *clusterv1.InternalMemberCluster, f facts) *clusterv1.InternalMemberClusterStatus {
	s := imc.Status.DeepCopy()
	s.ClusterID = f.clusterID
	now := metav1.NewTime(f.now.Truncate(time.Second))
	if f.cluster.Report != nil {
		takeReport(s, f.cluster.Report, now)
	}
	if f.cluster.Namespaces != nil {
		s.Namespaces = f.cluster.Namespaces
	}
	for _, condition := range f.cluster.Conditions {
		condition.ObservedGeneration, condition.LastTransitionTime = imc.Generation, now
		condition.Message = placement.Cut(condition.Message, maxComplaint)
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	a := entry(s)
	if f.joined != nil {
		condition := *f.joined
		condition.Type, condition.ObservedGeneration, condition.LastTransitionTime = clusterv1.ConditionJoined, imc.Generation, now
		meta.SetStatusCondition(&a.Conditions, condition)
	}
	if f.health != nil {
		condition := metav1.Condition{
			Type: clusterv1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonHealthy, Message: f.health.message,
			ObservedGeneration: imc.Generation, LastTransitionTime: now,
		}
		if !f.health.ok {
			condition.Status, condition.Reason = metav1.ConditionFalse, clusterv1.ReasonUnhealthy
		}
		meta.SetStatusCondition(&a.Conditions, condition)
	}
	a.LastReceivedHeartbeat = now
	return s
}

// entry returns the member agent's entry, which it makes if there is none.
func entry(s *clusterv1.InternalMemberClusterStatus) *clusterv1.AgentStatus {
	for i := range s.AgentStatus {
		if s.AgentStatus[i].Type == clusterv1.MemberAgent {
			return &s.AgentStatus[i]
		}
	}
	s.AgentStatus = append(s.AgentStatus, clusterv1.AgentStatus{Type: clusterv1.MemberAgent})
	return &s.AgentStatus[len(s.AgentStatus)-1]
}

func takeReport(s *clusterv1.InternalMemberClusterStatus, r *properties.Report, now metav1.Time) {
	s.ResourceUsage = clusterv1.ResourceUsage{Capacity: r.Capacity, Allocatable: r.Allocatable, Available: r.Available, ObservationTime: now}
	s.Properties = make(map[string]clusterv1.PropertyValue, len(r.Properties))
	for name, value := range r.Properties {
		s.Properties[name] = clusterv1.PropertyValue{Value: value, ObservationTime: now}
	}
}

// silence is for how long after the last account the next can wait: not at all, if it has news.
func silence(last, next *clusterv1.InternalMemberClusterStatus) time.Duration {
	before, after := timeless(last), timeless(next)
	if equality.Semantic.DeepEqual(before, after) {
		return accountPeriod
	}
	before.ResourceUsage.Available, after.ResourceUsage.Available = nil, nil
	if equality.Semantic.DeepEqual(before, after) {
		return churnPeriod
	}
	return 0
}

// timeless is an account without the times at which it was given.
func timeless(s *clusterv1.InternalMemberClusterStatus) *clusterv1.InternalMemberClusterStatus {
	s = s.DeepCopy()
	s.ResourceUsage.ObservationTime = metav1.Time{}
	for name := range maps.Clone(s.Properties) {
		s.Properties[name] = clusterv1.PropertyValue{Value: s.Properties[name].Value}
	}
	for i := range s.AgentStatus {
		s.AgentStatus[i].LastReceivedHeartbeat = metav1.Time{}
	}
	return s
}

// lastHeartbeat is when the account was last given.
func lastHeartbeat(s *clusterv1.InternalMemberClusterStatus) time.Time {
	for i := range s.AgentStatus {
		if s.AgentStatus[i].Type == clusterv1.MemberAgent {
			return s.AgentStatus[i].LastReceivedHeartbeat.Time
		}
	}
	return time.Time{}
}
