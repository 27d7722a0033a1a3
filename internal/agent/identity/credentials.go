package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Types of the PEM blocks of a bundle.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
	pendingBlock     = "PENDING PRIVATE KEY"
	tokenBlock       = "TOKEN"
)

// Credentials are what an agent keeps: its certificate with the key, and the key of a certificate that it has asked for, so
// that it can take the answer even if it was restarted in between.
type Credentials struct {
	Certificate []byte // PEM, with the chain
	Key         []byte // PKCS #8, DER
	Pending     []byte // PKCS #8, DER
	// Token is a service account's token that the agent renewed, where it signs in with one.
	Token []byte
}

// encode writes credentials as one bundle, so that they are always stored whole.
func (c *Credentials) encode() []byte {
	var out bytes.Buffer
	if len(c.Certificate) > 0 {
		out.Write(bytes.TrimSpace(c.Certificate))
		out.WriteByte('\n')
		out.Write(pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: c.Key}))
	}
	if len(c.Pending) > 0 {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: pendingBlock, Bytes: c.Pending}))
	}
	if len(c.Token) > 0 {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: tokenBlock, Bytes: c.Token}))
	}
	return out.Bytes()
}

// decode reads a bundle. What it does not know it leaves out.
func decode(bundle []byte) *Credentials {
	c := &Credentials{}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case certificateBlock:
			c.Certificate = append(c.Certificate, pem.EncodeToMemory(block)...)
		case keyBlock:
			c.Key = block.Bytes
		case pendingBlock:
			c.Pending = block.Bytes
		case tokenBlock:
			c.Token = block.Bytes
		}
	}
	return c
}

// certificate is a certificate in use, and what it says.
type certificate struct {
	tls.Certificate
	cluster string
	uid     types.UID // of the MemberCluster that it names
}

// open makes the stored certificate usable. It returns an error if there is none, or none of an agent.
func (c *Credentials) open() (*certificate, error) {
	if len(c.Certificate) == 0 {
		return nil, errors.New("there is no certificate")
	}
	pair, err := tls.X509KeyPair(c.Certificate, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: c.Key}))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
	}
	rest, ok := strings.CutPrefix(pair.Leaf.Subject.CommonName, clusterv1.AgentUserPrefix)
	name, uid, hasUID := strings.Cut(rest, ":")
	if !ok || !hasUID {
		return nil, fmt.Errorf("the certificate names %q, which is no agent", pair.Leaf.Subject.CommonName)
	}
	return &certificate{Certificate: pair, cluster: name, uid: types.UID(uid)}, nil
}

// expired tells whether its life is over. Whether it has begun is left to the hub's clock.
func (c *certificate) expired(now time.Time) bool { return !now.Before(c.Leaf.NotAfter) }

// renewAt is when two thirds of its life are over.
func (c *certificate) renewAt() time.Time {
	return c.Leaf.NotBefore.Add(c.Leaf.NotAfter.Sub(c.Leaf.NotBefore) * 2 / 3)
}

// newKey makes a key.
func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return x509.MarshalPKCS8PrivateKey(key)
}
