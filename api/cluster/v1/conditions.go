package v1

const (
	// NodeCountProperty is the property with the number of nodes.
	NodeCountProperty = "kubernetes-fleet.io/node-count"
	// KubernetesVersionProperty is the property with the version of the cluster's API server, such as v1.37.2.
	KubernetesVersionProperty = "k8s.io/k8s-version"

	// LabelMemberName is, on a MemberCluster, its own name, so that selectors can choose it.
	LabelMemberName = "kubernetes-fleet.io/member-name"
	// LabelIsFleetResource is "true" on what the hub makes for a member.
	LabelIsFleetResource = "kubernetes-fleet.io/is-fleet-resource"
	// FinalizerMemberCluster holds a MemberCluster until its agent has left.
	FinalizerMemberCluster = "kubernetes-fleet.io/membercluster-finalizer"

	// RoleNamePrefix and RoleBindingNamePrefix, with the cluster's name, name its rights in its namespace.
	RoleNamePrefix        = "fleet-role-"
	RoleBindingNamePrefix = "fleet-rolebinding-"
	// BootstrapServiceAccount is the service account, in a cluster's namespace, whose tokens may ask once for a certificate.
	BootstrapServiceAccount = "fleet-bootstrap"
	// HeartbeatLease is the Lease, in a cluster's namespace, that the agent renews.
	HeartbeatLease = "fleet-heartbeat"
	// AgentUserPrefix, the cluster's name, a colon and the MemberCluster's UID make the agent's user name on the hub.
	AgentUserPrefix = "fleetwright:member:"
	// AgentsGroup is the group of all agents that joined by certificate.
	AgentsGroup = "fleetwright:members"
	// AnnotationClusterID is, on a certificate signing request, the kube-system UID of the cluster that asks.
	AnnotationClusterID = "fleetwright.io/cluster-id"
	// BootstrapRoleName is the role, in a cluster's namespace, with which the bootstrap account finds out what to ask for.
	BootstrapRoleName = "fleet-bootstrap"
	// CertificateRoleNamePrefix, with the cluster's name, names the cluster role that lets its agent ask for certificates.
	CertificateRoleNamePrefix = "fleetwright:member-certificates:"
	// FinalizerMemberRights holds an agent's rights and its InternalMemberCluster for as long as there are Works for it,
	// so that deleting its namespace by accident does not keep it from answering for them.
	FinalizerMemberRights = "fleetwright.io/member-rights"
)

// Condition types.
const (
	// ConditionReadyToJoin: do the namespace, rights and InternalMemberCluster exist?
	ConditionReadyToJoin = "ReadyToJoin"
	// ConditionJoined: is the cluster a member?
	ConditionJoined = "Joined"
	// ConditionHealthy: does the cluster's API server answer its agent?
	ConditionHealthy = "Healthy"
	// ConditionClusterIDConflict, on a MemberCluster, is True while a second cluster signs in under its name, and absent
	// otherwise.
	ConditionClusterIDConflict = "ClusterIDConflict"
	// ConditionPropertyProviderStarted: has the agent begun to look at all that it tells of the cluster?
	ConditionPropertyProviderStarted = "ClusterPropertyProviderStarted"
	// ConditionPropertyCollectionSucceeded: are properties and resource usage as they are in the cluster now?
	ConditionPropertyCollectionSucceeded = "ClusterPropertyCollectionSucceeded"
	// ConditionNamespaceCollectionSucceeded: does status.namespaces have all namespaces of the cluster?
	ConditionNamespaceCollectionSucceeded = "NamespaceCollectionSucceeded"
)

// Reasons.
const (
	// ReasonReadyToJoin: all that an agent needs exists.
	ReasonReadyToJoin = "MemberClusterReadyToJoin"
	// ReasonNotReadyToJoin: the cluster is leaving or has left.
	ReasonNotReadyToJoin = "MemberClusterNotReadyToJoin"
	// ReasonJoined: the agent has joined (MemberCluster).
	ReasonJoined = "MemberClusterJoined"
	// ReasonLeft: the agent has left (MemberCluster).
	ReasonLeft = "MemberClusterLeft"
	// ReasonJoinStateUnknown: the agent has not said, or is not heard of any more (MemberCluster).
	ReasonJoinStateUnknown = "MemberClusterJoinStateUnknown"
	// ReasonClusterIDMismatch: a second cluster signs in under this name and is refused.
	ReasonClusterIDMismatch = "MemberClusterIDMismatch"
	// ReasonAgentJoined: joined (agent).
	ReasonAgentJoined = "InternalMemberClusterJoined"
	// ReasonAgentLeft: left (agent).
	ReasonAgentLeft = "InternalMemberClusterLeft"
	// ReasonAgentFailedToLeave: could not leave; the message says why (agent).
	ReasonAgentFailedToLeave = "InternalMemberClusterFailedToLeave"
	// ReasonHealthy: the member's API server answers (agent).
	ReasonHealthy = "InternalMemberClusterHealthy"
	// ReasonUnhealthy: the member's API server does not answer (agent).
	ReasonUnhealthy = "InternalMemberClusterUnhealthy"
	// ReasonHeartbeatLost: no sign of life for three periods; set by the hub.
	ReasonHeartbeatLost = "MemberAgentHeartbeatLost"
	// ReasonPropertyProviderStarted: everything is looked at.
	ReasonPropertyProviderStarted = "Started"
	// ReasonPropertyProviderTimedOut: something is not known a minute after the agent began to look.
	ReasonPropertyProviderTimedOut = "TimedOut"
	// ReasonPropertyProviderFailedToStart: something cannot be looked at; the message says what and why.
	ReasonPropertyProviderFailedToStart = "FailedToStart"
	// ReasonPropertiesCollected: what is told follows the cluster.
	ReasonPropertiesCollected = "PropertiesCollected"
	// ReasonPropertyCollectionTimedOut: not everything is known a minute after the agent began to look.
	ReasonPropertyCollectionTimedOut = "TimedOut"
	// ReasonPropertyCollectionFailed: for half a minute something could not be read; what was read of it before is still told.
	ReasonPropertyCollectionFailed = "CollectionFailed"
	// ReasonNamespaceCollectionSucceeded: all namespaces are told of.
	ReasonNamespaceCollectionSucceeded = "Succeeded"
	// ReasonNamespaceCollectionDegraded: namespaces could not be read, or there are more than the status has room for.
	ReasonNamespaceCollectionDegraded = "Degraded"
)
