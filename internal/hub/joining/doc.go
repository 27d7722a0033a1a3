// Package joining answers the certificate signing requests of agents: those of a cluster's own bootstrap account or agent
// are approved, all others that claim to be an agent's are denied, and the rest is none of its business.
package joining
