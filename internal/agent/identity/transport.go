package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/connrotation"

	"github.com/fleetwright/fleetwright/internal/placement"
)

// wire carries requests to the hub with whatever certificate is current, and notices when the hub refuses it.
type wire struct {
	current atomic.Pointer[certificate]
	dialer  *connrotation.Dialer
	http    *http.Transport
	// ours is the part of a request's path that says that it is about the agent's own namespace: what the hub forbids
	// there it forbids because it does not know the agent any more.
	ours string
	// unauthorized tells whether the certificate itself was refused, and not only a right of its holder.
	unauthorized atomic.Bool
	// refused receives a token when the hub refuses the certificate.
	refused chan struct{}
}

func newWire(cluster string, roots *x509.CertPool) *wire {
	w := &wire{
		dialer:  connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext),
		ours:    "/namespaces/" + placement.MemberNamespace(cluster) + "/",
		refused: make(chan struct{}, 1),
	}
	w.http = utilnet.SetTransportDefaults(&http.Transport{
		DialContext:         w.dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 4,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, GetClientCertificate: w.certificate},
	})
	return w
}

func (w *wire) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if c := w.current.Load(); c != nil {
		return &c.Certificate, nil
	}
	return &tls.Certificate{}, nil // none: the hub answers that it does not know us
}

// use makes a certificate the current one. Connections made with the one before are closed, since a connection keeps the
// identity that it began with; watches begin again by themselves.
func (w *wire) use(c *certificate) {
	w.current.Store(c)
	w.unauthorized.Store(false)
	w.dialer.CloseAll()
}

// RoundTrip carries one request.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.http.RoundTrip(request)
	switch {
	case err != nil:
		var failed *net.OpError
		if errors.As(err, &failed) && failed.Op == "remote error" {
			w.unauthorized.Store(true) // refused in the handshake
			w.refuse()
		}
	case response.StatusCode == http.StatusUnauthorized:
		w.unauthorized.Store(true)
		w.refuse()
	case response.StatusCode == http.StatusForbidden && strings.Contains(request.URL.Path, w.ours):
		w.refuse()
	}
	return response, err
}

func (w *wire) refuse() {
	select {
	case w.refused <- struct{}{}:
	default:
	}
}

// CloseIdleConnections lets an http.Client close what is idle.
func (w *wire) CloseIdleConnections() { w.http.CloseIdleConnections() }
