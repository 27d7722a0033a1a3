// Package membercluster keeps, for every MemberCluster, what its agent needs on the hub: a namespace, the least rights, and
// an InternalMemberCluster through which the two talk. It tells from the agent's signs of life how the cluster is, and lets
// a cluster leave without harm to what was placed there.
package membercluster
