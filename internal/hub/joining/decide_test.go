package joining

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	bootstrapOfM = "system:serviceaccount:fleet-member-m:fleet-bootstrap"
	agentOfM     = "fleetwright:member:m:uid"
)

// sign makes a PEM certificate request.
func sign(t *testing.T, key crypto.Signer, template x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func subject(user string, groups ...string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}
}

// firstRequest is a request of cluster m, made with a bootstrap token, as it should be.
func firstRequest(t *testing.T, uid types.UID) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r-" + string(uid), UID: uid, Annotations: map[string]string{clusterv1.AnnotationClusterID: "cluster-1"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           sign(t, newKey(t), subject(agentOfM, clusterv1.AgentsGroup)),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: ptr.To[int32](longestLife),
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment},
			Username:          bootstrapOfM,
			Extra:             map[string]certificatesv1.ExtraValue{credentialID: {"JTI=1"}},
		},
	}
}

func approve(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
	})
	return csr
}

func TestDecide(t *testing.T) {
	t.Parallel()
	type csr = certificatesv1.CertificateSigningRequest
	for name, tc := range map[string]struct {
		change  func(t *testing.T, r *csr)
		cluster func(m *clusterv1.MemberCluster)
		absent  bool // there is no MemberCluster
		others  func(t *testing.T) []*csr

		wantIgnored  bool
		wantApproved bool
		wantSays     string // in the message of a denial
		wantOther    string
	}{
		"first certificate": {wantApproved: true},
		"shorter life":      {change: func(_ *testing.T, r *csr) { r.Spec.ExpirationSeconds = ptr.To[int32](600) }, wantApproved: true},
		"least usages": {
			change:       func(_ *testing.T, r *csr) { r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth} },
			wantApproved: true,
		},
		"renewal": {change: func(_ *testing.T, r *csr) { r.Spec.Username, r.Spec.Extra = agentOfM, nil }, wantApproved: true},
		"renewal while leaving": {
			change:       func(_ *testing.T, r *csr) { r.Spec.Username, r.Spec.Extra = agentOfM, nil },
			cluster:      func(m *clusterv1.MemberCluster) { m.DeletionTimestamp = ptr.To(metav1.Now()) },
			wantApproved: true,
		},
		"again with a new token": {
			others: func(t *testing.T) []*csr {
				other := approve(firstRequest(t, "2"))
				other.Spec.Extra = map[string]certificatesv1.ExtraValue{credentialID: {"JTI=2"}}
				return []*csr{other}
			},
			cluster:      func(m *clusterv1.MemberCluster) { m.Status.ClusterID = "cluster-1" },
			wantApproved: true,
		},
		"the token served for one that was denied": {
			others: func(t *testing.T) []*csr {
				other := firstRequest(t, "2")
				other.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue}}
				return []*csr{other}
			},
			wantApproved: true,
		},

		"another signer":    {change: func(_ *testing.T, r *csr) { r.Spec.SignerName = "example.com/signer" }, wantIgnored: true},
		"answered already":  {change: func(_ *testing.T, r *csr) { approve(r) }, wantIgnored: true},
		"of somebody else":  {change: func(t *testing.T, r *csr) { r.Spec.Request = sign(t, newKey(t), subject("jane", "developers")) }, wantIgnored: true},
		"no request at all": {change: func(_ *testing.T, r *csr) { r.Spec.Request = []byte("x") }, wantIgnored: true},

		"our group under another name": {
			change: func(t *testing.T, r *csr) {
				r.Spec.Request = sign(t, newKey(t), subject("jane", clusterv1.AgentsGroup))
			},
			wantSays: "the common name must be",
		},
		"our name in another group": {
			change:   func(t *testing.T, r *csr) { r.Spec.Request = sign(t, newKey(t), subject(agentOfM, "developers")) },
			wantSays: "the organization must be",
		},
		"another group beside ours": {
			change: func(t *testing.T, r *csr) {
				r.Spec.Request = sign(t, newKey(t), subject(agentOfM, clusterv1.AgentsGroup, "system:masters"))
			},
			wantSays: "the organization must be",
		},
		"no UID": {
			change: func(t *testing.T, r *csr) {
				r.Spec.Request = sign(t, newKey(t), subject("fleetwright:member:m", clusterv1.AgentsGroup))
			},
			wantSays: "the common name must be",
		},
		"a name that is none": {
			change: func(t *testing.T, r *csr) {
				r.Spec.Request = sign(t, newKey(t), subject("fleetwright:member:../x:uid", clusterv1.AgentsGroup))
			},
			wantSays: "the common name must be",
		},
		"alternative names": {
			change: func(t *testing.T, r *csr) {
				template := subject(agentOfM, clusterv1.AgentsGroup)
				template.DNSNames = []string{"kubernetes"}
				r.Spec.Request = sign(t, newKey(t), template)
			},
			wantSays: "no alternative names",
		},
		"for a server": {
			change: func(_ *testing.T, r *csr) {
				r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
			},
			wantSays: `usage "server auth" is not allowed`,
		},
		"not for a client": {
			change: func(_ *testing.T, r *csr) {
				r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
			},
			wantSays: `usage "client auth" is missing`,
		},
		"without an end": {change: func(_ *testing.T, r *csr) { r.Spec.ExpirationSeconds = nil }, wantSays: "expirationSeconds must be given"},
		"for too long":   {change: func(_ *testing.T, r *csr) { *r.Spec.ExpirationSeconds++ }, wantSays: "at most 604800"},

		"no MemberCluster": {absent: true, wantSays: "there is no MemberCluster m; create it first"},
		"made again since": {cluster: func(m *clusterv1.MemberCluster) { m.UID = "new" }, wantSays: "was deleted and made again since"},
		"with an identity": {cluster: func(m *clusterv1.MemberCluster) { m.Spec.Identity = &rbacv1.Subject{Kind: "User", Name: "jane"} }, wantSays: "has a spec.identity"},
		"being deleted":    {cluster: func(m *clusterv1.MemberCluster) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, wantSays: "is being deleted"},
		"another member's bootstrap account": {
			change:   func(_ *testing.T, r *csr) { r.Spec.Username = "system:serviceaccount:fleet-member-n:fleet-bootstrap" },
			wantSays: "only service account fleet-member-m/fleet-bootstrap",
		},
		"another member's agent": {
			change:   func(_ *testing.T, r *csr) { r.Spec.Username = "fleetwright:member:n:uid" },
			wantSays: "this request was made by fleetwright:member:n:uid",
		},
		"an administrator": {change: func(_ *testing.T, r *csr) { r.Spec.Username = "kubernetes-admin" }, wantSays: "this request was made by kubernetes-admin"},
		"no cluster ID":    {change: func(_ *testing.T, r *csr) { r.Annotations = nil }, wantSays: "is missing"},
		"a second cluster": {cluster: func(m *clusterv1.MemberCluster) { m.Status.ClusterID = "cluster-0" }, wantSays: "comes from another, with cluster-1", wantOther: "cluster-1"},
		"a copied credential": {
			change:   func(_ *testing.T, r *csr) { r.Spec.Username, r.Spec.Extra = agentOfM, nil },
			cluster:  func(m *clusterv1.MemberCluster) { m.Status.ClusterID = "cluster-0" },
			wantSays: "comes from another", wantOther: "cluster-1",
		},
		"a second cluster before the first has reported": {
			others: func(t *testing.T) []*csr {
				other := approve(firstRequest(t, "2"))
				other.Annotations[clusterv1.AnnotationClusterID] = "cluster-0"
				return []*csr{other}
			},
			wantSays: "comes from another, with cluster-1", wantOther: "cluster-1",
		},
		"a token used twice": {
			others:   func(t *testing.T) []*csr { return []*csr{approve(firstRequest(t, "2"))} },
			wantSays: "the bootstrap token was used already, by request r-2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := firstRequest(t, "1")
			if tc.change != nil {
				tc.change(t, r)
			}
			cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid"}}
			if tc.cluster != nil {
				tc.cluster(cluster)
			}
			if tc.absent {
				cluster = nil
			}
			all := []certificatesv1.CertificateSigningRequest{*r}
			if tc.others != nil {
				for _, other := range tc.others(t) {
					all = append(all, *other)
				}
			}
			claimed := read(r)
			if (claimed == nil) != tc.wantIgnored {
				t.Fatalf("ignored: %v, want %v", claimed == nil, tc.wantIgnored)
			}
			if claimed == nil {
				return
			}
			v := decide(r, claimed, cluster)
			if v.first {
				v = decideFirst(r, claimed, all)
			}
			if v.approve != tc.wantApproved || v.otherCluster != tc.wantOther || !strings.Contains(v.message, tc.wantSays) {
				t.Errorf("got %+v, want approved %v, other cluster %q, and a message with %q", v, tc.wantApproved, tc.wantOther, tc.wantSays)
			}
		})
	}
}

func TestRequestSignedByAnotherKey(t *testing.T) {
	t.Parallel()
	r := firstRequest(t, "1")
	block, _ := pem.Decode(r.Spec.Request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	r.Spec.Request = pem.EncodeToMemory(block)
	c := read(r)
	if c == nil {
		t.Fatal("the request is ignored")
	}
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid"}}
	if v := decide(r, c, cluster); v.approve || !strings.Contains(v.message, "not signed by its own key") {
		t.Errorf("got %+v", v)
	}
}

func TestWeakKeys(t *testing.T) {
	t.Parallel()
	rsaKey := func(bits uint) *rsa.PublicKey {
		return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}
	}
	for name, tc := range map[string]struct {
		key  any
		want bool
	}{
		"ECDSA":         {newKey(t).Public(), false},
		"RSA 2048":      {rsaKey(2048), false},
		"RSA 1024":      {rsaKey(1024), true},
		"of no account": {"x", true},
	} {
		if got := weak(&x509.CertificateRequest{PublicKey: tc.key}); got != tc.want {
			t.Errorf("%s: weak is %v, want %v", name, got, tc.want)
		}
	}
}
