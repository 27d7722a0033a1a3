package identity

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errDenied says that the hub denied a request: asking the same again is of no use.
var errDenied = errors.New("the hub denied the certificate")

// application is one application for a certificate.
type application struct {
	hub       client.WithWatch // signed in as whoever may ask
	cluster   string
	uid       types.UID // of the MemberCluster
	clusterID string    // UID of the member's kube-system namespace
	seconds   int32
	log       logr.Logger
}

// submit asks for a certificate for the key (PKCS #8, DER), or finds the request that asked for it before a restart, and
// returns the certificate once it is there.
func (a *application) submit(ctx context.Context, key []byte) ([]byte, error) {
	csr, err := a.place(ctx, key)
	if err != nil {
		return nil, err
	}
	a.log.Info("asked the hub for a certificate", "request", csr.Name, "user", clusterv1.AgentUser(a.cluster, a.uid))
	for {
		if done, err := outcome(csr); done {
			return csr.Status.Certificate, err
		}
		if err := a.nextChange(ctx, csr); err != nil {
			return nil, err
		}
		if err := a.hub.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			return nil, fmt.Errorf("read certificate signing request %s: %w", csr.Name, err)
		}
	}
}

// place makes the request under the first free name.
func (a *application) place(ctx context.Context, key []byte) (*certificatesv1.CertificateSigningRequest, error) {
	content, public, err := sign(key, clusterv1.AgentUser(a.cluster, a.uid))
	if err != nil {
		return nil, err
	}
	for _, name := range clusterv1.CertificateRequestNames(a.cluster, a.uid) {
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{clusterv1.AnnotationClusterID: a.clusterID}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:           content,
				SignerName:        certificatesv1.KubeAPIServerClientSignerName,
				ExpirationSeconds: ptr.To(a.seconds),
				Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
			},
		}
		err := a.hub.Create(ctx, csr)
		if err == nil {
			return csr, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("ask for a certificate: %w", err)
		}
		existing := &certificatesv1.CertificateSigningRequest{}
		if err := a.hub.Get(ctx, client.ObjectKey{Name: name}, existing); err != nil {
			return nil, fmt.Errorf("read certificate signing request %s: %w", name, err)
		}
		if done, err := outcome(existing); asksFor(existing, public) && (!done || err == nil) {
			return existing, nil
		}
	}
	return nil, errors.New("all names for certificate signing requests of this agent are taken; Kubernetes removes answered ones after an hour")
}

// sign makes a certificate request for a user, and returns it with the public key.
func sign(key []byte, user string) (request, public []byte, err error) {
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("read the key: %w", err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("a key of type %T cannot sign", parsed)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{clusterv1.AgentsGroup}},
	}, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate request: %w", err)
	}
	if public, err = x509.MarshalPKIXPublicKey(signer.Public()); err != nil {
		return nil, nil, fmt.Errorf("read the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), public, nil
}

// asksFor tells whether a request is for a certificate with this public key.
func asksFor(csr *certificatesv1.CertificateSigningRequest, public []byte) bool {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return false
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && bytes.Equal(request.RawSubjectPublicKeyInfo, public)
}

// outcome tells whether a request was answered for good, and how.
func outcome(csr *certificatesv1.CertificateSigningRequest) (done bool, err error) {
	for _, condition := range csr.Status.Conditions {
		switch {
		case condition.Status == corev1.ConditionFalse:
		case condition.Type == certificatesv1.CertificateDenied:
			return true, fmt.Errorf("%w (request %s): %s", errDenied, csr.Name, condition.Message)
		case condition.Type == certificatesv1.CertificateFailed:
			return true, fmt.Errorf("the hub could not sign the certificate (request %s): %s", csr.Name, condition.Message)
		}
	}
	return len(csr.Status.Certificate) > 0, nil
}

// nextChange returns when the request has changed, or when it is worth reading it again.
func (a *application) nextChange(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	w, err := a.hub.Watch(ctx, &certificatesv1.CertificateSigningRequestList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", csr.Name),
		Raw:           &metav1.ListOptions{ResourceVersion: csr.ResourceVersion},
	})
	if err != nil {
		return fmt.Errorf("watch certificate signing request %s: %w", csr.Name, err)
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for the certificate: %w", ctx.Err())
	case event := <-w.ResultChan():
		if event.Type == watch.Deleted {
			return fmt.Errorf("certificate signing request %s was deleted before it was answered", csr.Name)
		}
		return nil
	}
}
