package joining

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// longestLife is the longest that a certificate may live, in seconds: 7 days.
	longestLife = 7 * 24 * 3600
	// credentialID is the key under which the API server tells which token a request was made with.
	credentialID = "authentication.kubernetes.io/credential-id"
	// shortestRSA is the least number of bits of an RSA key.
	shortestRSA = 2048
)

// claim is whom a request says it is for.
type claim struct {
	cluster string
	uid     types.UID
	request *x509.CertificateRequest
}

// verdict is the answer to a request.
type verdict struct {
	approve bool
	// first says that there is no answer yet: the request is made with a bootstrap token, and decideFirst answers it.
	first bool
	// message says why, for people.
	message string
	// otherCluster is set if the request comes from a second cluster: its ID.
	otherCluster string
}

func deny(format string, args ...any) verdict { return verdict{message: fmt.Sprintf(format, args...)} }

// read returns what a request claims, or nil if it does not claim to be an agent's or is answered already.
func read(csr *certificatesv1.CertificateSigningRequest) *claim {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || answered(csr) {
		return nil
	}
	request, err := parse(csr.Spec.Request)
	if err != nil {
		return nil
	}
	rest, isUser := strings.CutPrefix(request.Subject.CommonName, clusterv1.AgentUserPrefix)
	if !isUser && !slices.Contains(request.Subject.Organization, clusterv1.AgentsGroup) {
		return nil
	}
	c := &claim{request: request}
	if isUser {
		name, uid, _ := strings.Cut(rest, ":")
		c.cluster, c.uid = name, types.UID(uid)
	}
	return c
}

func answered(csr *certificatesv1.CertificateSigningRequest) bool {
	for _, condition := range csr.Status.Conditions {
		switch condition.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return true
		}
	}
	return false
}

func approved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved && c.Status == corev1.ConditionTrue
	})
}

func parse(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("not a PEM certificate request")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// decide answers a request that claims to be an agent's, or leaves it to decideFirst. cluster is the MemberCluster that it
// names, nil if there is none.
func decide(csr *certificatesv1.CertificateSigningRequest, c *claim, cluster *clusterv1.MemberCluster) verdict {
	if message := malformed(csr, c); message != "" {
		return verdict{message: message}
	}
	switch {
	case cluster == nil:
		return deny("there is no MemberCluster %s; create it first", c.cluster)
	case cluster.UID != c.uid:
		return deny("MemberCluster %s was deleted and made again since: its UID is %s now; let the agent join anew with a token of the new one", c.cluster, cluster.UID)
	case cluster.Spec.Identity != nil:
		return deny("MemberCluster %s has a spec.identity: its agent signs in as that and needs no certificate", c.cluster)
	}
	bootstrap := csr.Spec.Username == bootstrapUser(c.cluster)
	renewal := csr.Spec.Username == clusterv1.AgentUser(c.cluster, c.uid)
	if !bootstrap && !renewal {
		return deny("only service account %s/%s or the agent's own certificate may ask for a certificate of cluster %s; this request was made by %s",
			placementv1.MemberNamespacePrefix+c.cluster, clusterv1.BootstrapServiceAccount, c.cluster, csr.Spec.Username)
	}
	id := csr.Annotations[clusterv1.AnnotationClusterID]
	if id == "" {
		return deny("annotation %s, the UID of the cluster's kube-system namespace, is missing", clusterv1.AnnotationClusterID)
	}
	if recorded := cluster.Status.ClusterID; recorded != "" && recorded != id {
		return otherCluster(c.cluster, recorded, id)
	}
	if renewal {
		return verdict{approve: true, message: "the agent of cluster " + c.cluster + " renews its certificate"}
	}
	if cluster.DeletionTimestamp != nil {
		return deny("MemberCluster %s is being deleted", c.cluster)
	}
	return verdict{first: true}
}

// decideFirst answers a request made with a bootstrap token. A token is good for one certificate, so that one that leaks
// after it was used is worth nothing; and until the first cluster has reported, the first that was approved counts as it.
// others are all requests to the signer, read live.
func decideFirst(csr *certificatesv1.CertificateSigningRequest, c *claim, others []certificatesv1.CertificateSigningRequest) verdict {
	id := csr.Annotations[clusterv1.AnnotationClusterID]
	for i := range others {
		other := &others[i]
		if other.UID == csr.UID || !approved(other) || other.Spec.Username != csr.Spec.Username {
			continue
		}
		request, err := parse(other.Spec.Request)
		if err != nil || request.Subject.CommonName != c.request.Subject.CommonName {
			continue
		}
		if first := other.Annotations[clusterv1.AnnotationClusterID]; first != id {
			return otherCluster(c.cluster, first, id)
		}
		if token(other) == token(csr) {
			return deny("the bootstrap token was used already, by request %s; make another with `kubectl create token %s -n %s`",
				other.Name, clusterv1.BootstrapServiceAccount, placementv1.MemberNamespacePrefix+c.cluster)
		}
	}
	return verdict{approve: true, message: "cluster " + c.cluster + " joins with a bootstrap token"}
}

func otherCluster(name, recorded, id string) verdict {
	v := deny("cluster %s is the one whose kube-system namespace has the UID %s, and this request comes from another, with %s; "+
		"give that one a MemberCluster of its own, or, if it replaces the first, delete MemberCluster %s and make it again", name, recorded, id, name)
	v.otherCluster = id
	return v
}

// token tells requests made with different tokens apart.
func token(csr *certificatesv1.CertificateSigningRequest) string {
	return strings.Join(csr.Spec.Extra[credentialID], ",")
}

func bootstrapUser(cluster string) string {
	return "system:serviceaccount:" + placementv1.MemberNamespacePrefix + cluster + ":" + clusterv1.BootstrapServiceAccount
}

// malformed says what is wrong with the request itself; empty if nothing is.
func malformed(csr *certificatesv1.CertificateSigningRequest, c *claim) string {
	request := c.request
	switch {
	case len(validation.IsDNS1123Label(c.cluster)) > 0 || c.uid == "" || request.Subject.CommonName != clusterv1.AgentUser(c.cluster, c.uid):
		return fmt.Sprintf("the common name must be %s, the cluster's name, a colon and the UID of its MemberCluster", clusterv1.AgentUserPrefix)
	case len(request.Subject.Organization) != 1 || request.Subject.Organization[0] != clusterv1.AgentsGroup:
		return "the organization must be " + clusterv1.AgentsGroup + " and nothing else"
	case len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0:
		return "a certificate of an agent has no alternative names"
	case !slices.Contains(csr.Spec.Usages, certificatesv1.UsageClientAuth):
		return "usage \"client auth\" is missing"
	case csr.Spec.ExpirationSeconds == nil || *csr.Spec.ExpirationSeconds > longestLife:
		return fmt.Sprintf("expirationSeconds must be given and at most %d", longestLife)
	}
	for _, usage := range csr.Spec.Usages {
		switch usage {
		case certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Sprintf("usage %q is not allowed", usage)
		}
	}
	if weak(request) {
		return fmt.Sprintf("the key must be ECDSA, Ed25519, or RSA of at least %d bits", shortestRSA)
	}
	if err := request.CheckSignature(); err != nil {
		return "the request is not signed by its own key"
	}
	return ""
}

func weak(request *x509.CertificateRequest) bool {
	switch key := request.PublicKey.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return false
	case *rsa.PublicKey:
		return key.N.BitLen() < shortestRSA
	}
	return true
}
