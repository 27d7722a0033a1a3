package clusterprofile

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	inventoryv1alpha1 "github.com/fleetwright/fleetwright/api/inventory/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longestName is how long a property's name may be, in characters.
const longestName = 253

// Status is what a ClusterProfile says of a cluster. What others wrote into it stays. It changes nothing that it is given.
func Status(cluster *clusterv1.MemberCluster, before *inventoryv1alpha1.ClusterProfileStatus, generation int64, now time.Time) *inventoryv1alpha1.ClusterProfileStatus {
	s := before.DeepCopy()
	condition := health(cluster)
	condition.Type, condition.ObservedGeneration = inventoryv1alpha1.ConditionControlPlaneHealthy, generation
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&s.Conditions, condition)
	s.Version.Kubernetes = cluster.Status.Properties[clusterv1.KubernetesVersionProperty].Value
	s.Properties = properties(cluster, before)
	return s
}

// health tells whether the control plane works, by the agent's word and the hub's.
func health(cluster *clusterv1.MemberCluster) metav1.Condition {
	i := slices.IndexFunc(cluster.Status.AgentStatus, func(a clusterv1.AgentStatus) bool { return a.Type == clusterv1.MemberAgent })
	if i < 0 {
		return metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: inventoryv1alpha1.ReasonNoAgentStatus, Message: "the cluster's agent has not reported yet",
		}
	}
	healthy := meta.FindStatusCondition(cluster.Status.AgentStatus[i].Conditions, clusterv1.ConditionHealthy)
	switch {
	case healthy != nil && healthy.Reason == clusterv1.ReasonHeartbeatLost:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: inventoryv1alpha1.ReasonHeartbeatLost, Message: healthy.Message}
	case healthy == nil || healthy.Status == metav1.ConditionUnknown:
		return metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: inventoryv1alpha1.ReasonNoHealth, Message: "the agent has not said whether the cluster's API server is ready",
		}
	case healthy.Status == metav1.ConditionTrue:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: inventoryv1alpha1.ReasonHealthy, Message: healthy.Message}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: inventoryv1alpha1.ReasonUnhealthy, Message: healthy.Message}
}

// properties are those of the cluster, in the order of their names. The time of one that has not changed stays: heartbeats
// are no news.
func properties(cluster *clusterv1.MemberCluster, before *inventoryv1alpha1.ClusterProfileStatus) []inventoryv1alpha1.Property {
	known := map[string]inventoryv1alpha1.Property{}
	for _, p := range before.Properties {
		known[p.Name] = p
	}
	var all []inventoryv1alpha1.Property
	for _, name := range slices.Sorted(maps.Keys(cluster.Status.Properties)) {
		now := cluster.Status.Properties[name]
		if name == "" || len(name) > longestName || now.Value == "" || utf8.RuneCountInString(now.Value) > inventoryv1alpha1.LongestValue {
			continue // the schema refuses them, and with them all the rest
		}
		p := known[name]
		if p.Value != now.Value || p.LastObservedTime == nil {
			p = inventoryv1alpha1.Property{Name: name, Value: now.Value, LastObservedTime: now.ObservationTime.DeepCopy()}
		}
		all = append(all, p)
	}
	return all
}
