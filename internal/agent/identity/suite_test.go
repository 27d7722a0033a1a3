package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var admin *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(framework.RunWithAPIServer(m, &admin))
}

// authority signs certificates: those of agents, and that of the test's own front.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * 365 * time.Hour),
	}}
	a.cert = a.sign(t, a.cert, key.Public())
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate, public any) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (a *authority) pem() []byte { return pemOf(a.cert) }

func pemOf(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: cert.Raw})
}

// hub is a hub's API server behind a front that knows agents by certificates of the test's authority: the server behind it
// knows only its own. The test plays the hub's controllers.
type hub struct {
	t       *testing.T
	client  client.WithWatch
	ca      *authority
	url     string
	cluster *clusterv1.MemberCluster

	mu sync.Mutex
	// serials are those of the certificates that requests came with, in their order; none twice in a row.
	serials []string
	// unwelcome is the serial of a certificate that is answered with 401.
	unwelcome string
}

func newHub(t *testing.T, name string) *hub {
	t.Helper()
	c, err := client.NewWithWatch(admin, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{t: t, client: c, ca: newAuthority(t)}
	h.startFront()
	h.admit(name)
	return h
}

func (h *hub) startFront() {
	target, err := url.Parse(admin.Host)
	if err != nil {
		h.t.Fatal(err)
	}
	transport := func(config *rest.Config) http.RoundTripper {
		rt, err := rest.TransportFor(config)
		if err != nil {
			h.t.Fatal(err)
		}
		return rt
	}
	proxy := func(rt http.RoundTripper) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Transport: rt, FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		}
	}
	asAdmin, asHimself := proxy(transport(admin)), proxy(transport(rest.AnonymousClientConfig(admin)))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	own := h.ca.sign(h.t, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * 365 * time.Hour),
	}, key.Public())
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 {
			asHimself.ServeHTTP(w, r)
			return
		}
		cert := r.TLS.PeerCertificates[0]
		if !h.welcomes(cert.SerialNumber.String()) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
			return
		}
		r.Header.Set("Impersonate-User", cert.Subject.CommonName)
		for _, group := range append(cert.Subject.Organization, "system:authenticated") {
			r.Header.Add("Impersonate-Group", group)
		}
		asAdmin.ServeHTTP(w, r)
	}))
	front.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{own.Raw}, PrivateKey: key}},
		ClientAuth:   tls.RequestClientCert, // as an API server: what is of no use is answered with 401, not in the handshake
		MinVersion:   tls.VersionTLS12,
	}
	front.StartTLS()
	h.t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	h.url = strings.Replace(front.URL, "127.0.0.1", "localhost", 1)
}

func (h *hub) welcomes(serial string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.serials) == 0 || h.serials[len(h.serials)-1] != serial {
		h.serials = append(h.serials, serial)
	}
	return serial != h.unwelcome
}

// refuse answers the certificate that was used last with 401 from now on.
func (h *hub) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unwelcome = h.serials[len(h.serials)-1]
}

// admit makes the MemberCluster, and what an agent of it may do. One that is there is deleted and made again.
func (h *hub) admit(name string) {
	h.t.Helper()
	ctx, ns := h.t.Context(), placement.MemberNamespace(name)
	h.cluster = &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	imc := &clusterv1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: clusterv1.InternalMemberClusterSpec{State: clusterv1.ClusterStateJoin},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: clusterv1.BootstrapServiceAccount}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, old := range []client.Object{h.cluster, imc, account, role, binding} {
		if err := client.IgnoreNotFound(h.client.Delete(ctx, old)); err != nil {
			h.t.Fatal(err)
		}
		old.SetResourceVersion("")
		old.SetUID("")
	}
	if err := h.client.Create(ctx, h.cluster); err != nil {
		h.t.Fatal(err)
	}
	imc.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "MemberCluster", Name: name, UID: h.cluster.UID, Controller: ptr.To(true),
	}}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"internalmemberclusters"}, Verbs: []string{"get"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "watch"},
			ResourceNames: clusterv1.CertificateRequestNames(name, h.cluster.UID),
		},
	}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	binding.Subjects = []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: ns, Name: clusterv1.BootstrapServiceAccount},
		{APIGroup: rbacv1.GroupName, Kind: "User", Name: clusterv1.AgentUser(name, h.cluster.UID)},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := h.client.Create(ctx, namespace); err != nil && !strings.Contains(err.Error(), "already exists") {
		h.t.Fatal(err)
	}
	for _, object := range []client.Object{imc, account, role, binding} {
		if err := h.client.Create(ctx, object); err != nil {
			h.t.Fatal(err)
		}
	}
}

// writeToken writes a new bootstrap token into a file, and returns it.
func (h *hub) writeToken(file string) string {
	h.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: placement.MemberNamespace(h.cluster.Name), Name: clusterv1.BootstrapServiceAccount,
	}}
	request := &authenticationv1.TokenRequest{}
	if err := h.client.SubResource("token").Create(h.t.Context(), account, request); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(request.Status.Token+"\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return request.Status.Token
}

// request waits for the cluster's request in the n-th place.
func (h *hub) request(n int) *certificatesv1.CertificateSigningRequest {
	h.t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	csr.Name = clusterv1.CertificateRequestNames(h.cluster.Name, h.cluster.UID)[n]
	framework.Await(h.t, h.client, csr, "was made", func(*certificatesv1.CertificateSigningRequest) bool { return true })
	return csr
}

// issue approves and signs a request, for a certificate that begins to live at a time and lives as long as is asked.
func (h *hub) issue(csr *certificatesv1.CertificateSigningRequest, from time.Time) {
	h.t.Helper()
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	if err := h.client.SubResource("approval").Update(h.t.Context(), csr); err != nil {
		h.t.Fatal(err)
	}
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		h.t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		h.t.Fatal(err)
	}
	cert := h.ca.sign(h.t, &x509.Certificate{
		SerialNumber: serial, Subject: request.Subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: from, NotAfter: from.Add(time.Duration(*csr.Spec.ExpirationSeconds) * time.Second),
	}, request.PublicKey)
	csr.Status.Certificate = pemOf(cert)
	if err := h.client.Status().Update(h.t.Context(), csr); err != nil {
		h.t.Fatal(err)
	}
}

// deny denies a request.
func (h *hub) deny(csr *certificatesv1.CertificateSigningRequest, why string) {
	h.t.Helper()
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Test", Message: why},
	}
	if err := h.client.SubResource("approval").Update(h.t.Context(), csr); err != nil {
		h.t.Fatal(err)
	}
}

// requests counts the cluster's requests.
func (h *hub) requests() int {
	h.t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	if err := h.client.List(h.t.Context(), &list); err != nil {
		h.t.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		if slices.Contains(clusterv1.CertificateRequestNames(h.cluster.Name, h.cluster.UID), list.Items[i].Name) {
			n++
		}
	}
	return n
}

// log keeps what is logged.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, args)
	}, funcr.Options{Verbosity: 10})
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// options sign in to the hub, with files in a folder.
func (h *hub) options(dir string, c clock.WithTicker, l *log) Options {
	return Options{
		Cluster: h.cluster.Name, ClusterID: "cluster-1", HubURL: h.url, HubCA: h.ca.pem(),
		BootstrapTokenFile: filepath.Join(dir, "token"), Store: DirStore(filepath.Join(dir, "credentials")), Clock: c, Log: l.logger(),
	}
}
