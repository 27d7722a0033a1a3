// Package pki issues the certificates of a sandbox's control planes.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// validity is how long a certificate holds: longer than any sandbox.
const validity = 5 * 365 * 24 * time.Hour

// PEM block types.
const (
	certificateBlock = "CERTIFICATE"
	privateKeyBlock  = "PRIVATE KEY"
	publicKeyBlock   = "PUBLIC KEY"
)

// Pair names the two files of a certificate and its private key.
type Pair struct {
	Cert, Key string
}

// PairAt returns the pair PATH.crt and PATH.key.
func PairAt(path string) Pair {
	return Pair{Cert: path + ".crt", Key: path + ".key"}
}

// Authority is a certificate authority.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// LoadOrCreateAuthority reads an authority from its files, or creates it and them.
func LoadOrCreateAuthority(files Pair, commonName string) (*Authority, error) {
	a, err := loadAuthority(files)
	if errors.Is(err, os.ErrNotExist) {
		a, err = createAuthority(files, commonName)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", files.Cert, err)
	}
	return a, nil
}

// Client describes the holder of a client certificate.
type Client struct {
	User   string
	Groups []string
}

// IssueClient returns a certificate and private key, both PEM, that authenticate a client.
func (a *Authority) IssueClient(c Client) (cert, key []byte, err error) {
	cert, key, err = a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: c.User, Organization: c.Groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("issuing a client certificate for %q: %w", c.User, err)
	}
	return cert, key, nil
}

// EnsureClient writes a client certificate to files, unless they are there.
func (a *Authority) EnsureClient(files Pair, c Client) error {
	return ensure(files, func() (cert, key []byte, err error) { return a.IssueClient(c) })
}

// EnsureServer writes a certificate for a server's names and addresses to files, unless they are there.
func (a *Authority) EnsureServer(files Pair, commonName string, hosts ...string) error {
	return ensure(files, func() (cert, key []byte, err error) {
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: commonName},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		for _, host := range hosts {
			if ip := net.ParseIP(host); ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else {
				template.DNSNames = append(template.DNSNames, host)
			}
		}
		cert, key, err = a.issue(template)
		if err != nil {
			return nil, nil, fmt.Errorf("issuing a server certificate for %q: %w", commonName, err)
		}
		return cert, key, nil
	})
}

// EnsureSigningKey writes a key pair without a certificate to files, unless they are there: the private key to the
// pair's Key, the public key to its Cert.
func EnsureSigningKey(files Pair) error {
	return ensure(files, func() (public, private []byte, err error) {
		signer, private, err := newKey()
		if err != nil {
			return nil, nil, err
		}
		der, err := x509.MarshalPKIXPublicKey(signer.Public())
		if err != nil {
			return nil, nil, fmt.Errorf("encoding a public key: %w", err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: publicKeyBlock, Bytes: der}), private, nil
	})
}

// issue completes a template for a certificate that is no authority, and signs it.
func (a *Authority) issue(template *x509.Certificate) (cert, key []byte, err error) {
	signer, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := sign(template, a.cert, signer.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), key, nil
}

func createAuthority(files Pair, commonName string) (*Authority, error) {
	signer, key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := sign(template, template, signer.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading back the certificate: %w", err)
	}
	if err := write(files, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), key); err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: signer}, nil
}

func loadAuthority(files Pair) (*Authority, error) {
	certDER, err := readBlock(files.Cert, certificateBlock)
	if err != nil {
		return nil, err
	}
	keyDER, err := readBlock(files.Key, privateKeyBlock)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, fmt.Errorf("reading certificate %s: %w", files.Cert, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("reading private key %s: %w", files.Key, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key %s cannot sign", files.Key)
	}
	return &Authority{cert: cert, key: signer}, nil
}

// sign fills in what all certificates of a sandbox have in common, and signs.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	template.SerialNumber = serial
	// A little in the past, so that a clock that is set back does not make it invalid.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return der, nil
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a private key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: privateKeyBlock, Bytes: der}), nil
}
