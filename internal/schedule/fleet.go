// Package schedule decides which clusters a placement is given, and why. It looks at a snapshot of the fleet that does
// not change under it, does no I/O, and gives the same answer to the same question.
package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is what scheduling knows of a member.
type Cluster struct {
	// Name and UID are the MemberCluster's.
	Name string
	UID  types.UID
	// Labels are what selectors look at.
	Labels map[string]string
	// Leaving tells whether its MemberCluster is being deleted.
	Leaving bool
	// Disconnected says why the cluster cannot be worked with now; empty for one that has joined and is healthy.
	Disconnected string
	// Taints keep placements off that do not tolerate them.
	Taints []clusterv1.Taint
	// Properties and Usage are what its agent reports of it.
	Properties map[string]clusterv1.PropertyValue
	Usage      clusterv1.ResourceUsage
	// Namespaces are those of the cluster, where NamespacesKnown.
	Namespaces      map[string]string
	NamespacesKnown bool
}

// SameStanding tells whether two observations of a member differ in nothing but its taints and what its agent
// reports of the cluster's properties.
func (c *Cluster) SameStanding(other *Cluster) bool {
	return c.Name == other.Name && c.UID == other.UID && c.Leaving == other.Leaving && c.Disconnected == other.Disconnected &&
		maps.Equal(c.Labels, other.Labels)
}

// Fleet is all clusters at one moment, sorted by name.
type Fleet struct {
	clusters []Cluster
}

// NewFleet makes a fleet of clusters in any order.
func NewFleet(clusters []Cluster) Fleet {
	sorted := slices.Clone(clusters)
	slices.SortFunc(sorted, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return Fleet{clusters: sorted}
}

// Names returns the names of all clusters, sorted.
func (f Fleet) Names() []string {
	names := make([]string, len(f.clusters))
	for i := range f.clusters {
		names[i] = f.clusters[i].Name
	}
	return names
}

// Cluster returns the cluster with a name, or nil.
func (f Fleet) Cluster(name string) *Cluster {
	i, found := slices.BinarySearchFunc(f.clusters, name, func(c Cluster, n string) int { return cmp.Compare(c.Name, n) })
	if !found {
		return nil
	}
	return &f.clusters[i]
}

// ObserveAll reads members as Observe does.
func ObserveAll(members []clusterv1.MemberCluster) []Cluster {
	clusters := make([]Cluster, len(members))
	for i := range members {
		clusters[i] = Observe(&members[i])
	}
	return clusters
}

// Observe tells what scheduling needs to know of a MemberCluster.
func Observe(m *clusterv1.MemberCluster) Cluster {
	return Cluster{
		Name:         m.Name,
		UID:          m.UID,
		Labels:       m.Labels,
		Leaving:      !m.DeletionTimestamp.IsZero(),
		Disconnected: disconnected(m),
		Taints:       m.Spec.Taints,
		Properties:   m.Status.Properties,
		Usage:        m.Status.ResourceUsage,
		Namespaces:   m.Status.Namespaces,
		// Where the agent does not tell of all of them, that one is not among them means nothing.
		NamespacesKnown: meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ConditionNamespaceCollectionSucceeded),
	}
}

// NotOnlineYet is why a cluster is disconnected of whose agent the hub has heard nothing so far.
const NotOnlineYet = "member agent not online yet"

// disconnected says why a member cannot be worked with. It names moments and not durations, so that the same state
// always reads the same.
func disconnected(m *clusterv1.MemberCluster) string {
	i := slices.IndexFunc(m.Status.AgentStatus, func(a clusterv1.AgentStatus) bool { return a.Type == clusterv1.MemberAgent })
	if i < 0 {
		return NotOnlineYet
	}
	agent := m.Status.AgentStatus[i]
	healthy := meta.FindStatusCondition(agent.Conditions, clusterv1.ConditionHealthy)
	if healthy != nil && healthy.Reason == clusterv1.ReasonHeartbeatLost { // whether it has joined is not known then
		return fmt.Sprintf("no recent heartbeat signals (last received at %s)", moment(agent.LastReceivedHeartbeat))
	}
	if joined := meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionJoined); joined == nil || joined.Status != metav1.ConditionTrue {
		return "member agent not joined yet" + detail(joined)
	}
	switch {
	case healthy == nil:
		return "health condition from member agent is not available"
	case healthy.Status == metav1.ConditionTrue:
		return ""
	default:
		return fmt.Sprintf("unhealthy since %s%s", moment(healthy.LastTransitionTime), detail(healthy))
	}
}

func moment(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }

func detail(c *metav1.Condition) string {
	if c == nil || c.Message == "" {
		return ""
	}
	return ": " + placement.Quote(c.Message)
}
