// Package heartbeat is the agent's part of membership: it joins, says that it lives and how its cluster is, and leaves when
// the hub asks it to.
package heartbeat
