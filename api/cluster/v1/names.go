package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// certificateRequestNames is how many certificate signing requests an agent may have at a time. One a week is needed, and
// Kubernetes clears them away an hour after they were answered.
const certificateRequestNames = 8

// AgentUser is the hub user that a cluster's certificate names. It names the MemberCluster by UID as well, so that the
// certificate is worth nothing once that object is deleted, even if another is made under the same name.
func AgentUser(cluster string, uid types.UID) string {
	return AgentUserPrefix + cluster + ":" + string(uid)
}

// CertificateRequestNames are the names that a cluster's certificate signing requests may have. They are fixed, so that an
// agent's right to read requests can be limited to its own, and other agents cannot guess them.
func CertificateRequestNames(cluster string, uid types.UID) []string {
	sum := sha256.Sum256([]byte(uid))
	names := make([]string, certificateRequestNames)
	for i := range names {
		names[i] = fmt.Sprintf("fleetwright-%s-%s-%d", cluster, hex.EncodeToString(sum[:6]), i)
	}
	return names
}
