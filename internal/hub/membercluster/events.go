package membercluster

import (
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
)

// Reasons of the events on a MemberCluster, besides those of its conditions.
const (
	// EventNamespaceCreated: the cluster's namespace was made.
	EventNamespaceCreated = "NamespaceCreated"
	// EventRoleCreated and EventRoleUpdated: the agent's role was made or repaired.
	EventRoleCreated = "RoleCreated"
	EventRoleUpdated = "RoleUpdated"
	// EventRoleBindingCreated and EventRoleBindingUpdated: the agent's role binding was made or repaired.
	EventRoleBindingCreated = "RoleBindingCreated"
	EventRoleBindingUpdated = "RoleBindingUpdated"
	// EventInternalMemberClusterCreated and EventInternalMemberClusterUpdated: what the agent is asked was written.
	EventInternalMemberClusterCreated = "InternalMemberClusterCreated"
	EventInternalMemberClusterUpdated = "InternalMemberClusterSpecUpdated"
	// EventForceLeft: the cluster was removed without its agent's word.
	EventForceLeft = "MemberClusterForceLeft"
)

// event records an event on the cluster; without a reason there is none.
func (c *Controller) event(cluster *clusterv1.MemberCluster, eventType, reason, note string, args ...any) {
	if reason == "" || c.Recorder == nil {
		return
	}
	c.Recorder.Eventf(cluster, nil, eventType, reason, "Reconcile", "%s", placement.Note(fmt.Sprintf(note, args...)))
}
