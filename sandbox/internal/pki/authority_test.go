package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

func TestAuthoritySurvivesAReload(t *testing.T) {
	files := PairAt(filepath.Join(t.TempDir(), "pki", "ca"))
	first, err := LoadOrCreateAuthority(files, "hub")
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadOrCreateAuthority(files, "hub")
	if err != nil {
		t.Fatal(err)
	}
	if !first.cert.Equal(second.cert) {
		t.Error("a second call created another authority")
	}
	if info, err := os.Stat(files.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key is not for its owner alone: %v, %v", info, err)
	}
}

func TestClientCertificate(t *testing.T) {
	a := newAuthority(t)
	cert, key, err := a.IssueClient(Client{User: "admin", Groups: []string{"fleetwright:admins", "devs"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		t.Errorf("certificate and key do not belong together: %v", err)
	}
	parsed := parse(t, cert)
	if parsed.Subject.CommonName != "admin" || len(parsed.Subject.Organization) != 2 {
		t.Errorf("got subject %s", parsed.Subject)
	}
	verify(t, a, parsed, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true)
	verify(t, a, parsed, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, false)
	verify(t, newAuthority(t), parsed, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, false)
}

func TestServerCertificate(t *testing.T) {
	a := newAuthority(t)
	files := PairAt(filepath.Join(t.TempDir(), "serving"))
	if err := a.EnsureServer(files, "kube-apiserver", "localhost", "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		verify(t, a, parse(t, before), x509.VerifyOptions{DNSName: host}, true)
	}
	verify(t, a, parse(t, before), x509.VerifyOptions{DNSName: "elsewhere"}, false)

	if err := a.EnsureServer(files, "kube-apiserver", "localhost"); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("a second call issued another certificate")
	}
}

func TestSigningKey(t *testing.T) {
	files := Pair{Cert: filepath.Join(t.TempDir(), "sa.pub"), Key: filepath.Join(t.TempDir(), "sa.key")}
	if err := EnsureSigningKey(files); err != nil {
		t.Fatal(err)
	}
	public, err := readBlock(files.Cert, publicKeyBlock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParsePKIXPublicKey(public); err != nil {
		t.Error(err)
	}
	if _, err := readBlock(files.Key, privateKeyBlock); err != nil {
		t.Error(err)
	}
	if _, err := readBlock(files.Key, certificateBlock); err == nil {
		t.Error("a private key passes for a certificate")
	}
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := LoadOrCreateAuthority(PairAt(filepath.Join(t.TempDir(), "ca")), "test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func parse(t *testing.T, content []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatal("no PEM block")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func verify(t *testing.T, a *Authority, cert *x509.Certificate, opts x509.VerifyOptions, want bool) {
	t.Helper()
	opts.Roots = x509.NewCertPool()
	opts.Roots.AddCert(a.cert)
	if len(opts.KeyUsages) == 0 {
		opts.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if _, err := cert.Verify(opts); (err == nil) != want {
		t.Errorf("certificate for %s and %v: verification gave %v, want success %v", cert.Subject, opts, err, want)
	}
}
