package identity

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// defaultLife is how long a certificate is asked to live: the longest that the hub approves.
	defaultLife = 7 * 24 * time.Hour
	// shortestRetry and longestRetry bound the time after which a failed attempt is repeated.
	shortestRetry, longestRetry = time.Second, 30 * time.Second
	// deniedRetry is after how long something that was denied is asked again; a new token is taken up earlier.
	deniedRetry = 10 * time.Minute
	// tokenCheck is how often, while a token is wanted, the token file is looked at.
	tokenCheck = 5 * time.Second
	// refusalPause is the least time between two attempts to join anew, and tellAgain that between two log lines of the
	// same kind.
	refusalPause, tellAgain = 10 * time.Second, 5 * time.Minute
)

// Options say how to sign in.
type Options struct {
	// Cluster is the name of the MemberCluster.
	Cluster string
	// ClusterID is the UID of the member's kube-system namespace.
	ClusterID string
	// HubURL and HubCA are where the hub's API server is and, in PEM, who vouches for it; without HubCA the system's roots do.
	HubURL string
	HubCA  []byte
	// BootstrapTokenFile holds a token that is good for one certificate. It is read only when one is needed.
	BootstrapTokenFile string
	// TokenFile, if set, holds the token to sign in with, instead of a certificate. It is read again every minute. The agent
	// renews a service account's token itself, where the hub lets it.
	TokenFile string
	// Store keeps the certificate, and a token that was renewed.
	Store Store
	// Life is how long a certificate is asked to live. Default: 7 days.
	Life time.Duration
	// Clock is the clock.
	Clock clock.WithTicker
	// Log is told what is in the way of a certificate or a token.
	Log logr.Logger
}

// Identity is who the agent is to the hub.
type Identity struct {
	Options
	wire        *wire
	tokens      tokens
	tokenGiven  []byte // what was read from the token file last
	changed     chan struct{}
	credentials *Credentials
	toldLast    time.Time
	told        string
}

// New makes an identity that cannot sign in yet; see Establish.
func New(o Options) (*Identity, error) {
	if o.Life <= 0 {
		o.Life = defaultLife
	}
	var roots *x509.CertPool
	if len(o.HubCA) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(o.HubCA) {
			return nil, errors.New("the hub's CA file holds no certificate in PEM")
		}
	}
	if o.Store == nil {
		return nil, errors.New("there is nowhere to keep the agent's credentials")
	}
	return &Identity{Options: o, wire: newWire(o.Cluster, roots), changed: make(chan struct{}, 1), credentials: &Credentials{}}, nil
}

// Config signs in as the agent. It stays valid when the certificate or the token is renewed.
func (i *Identity) Config() *rest.Config {
	if i.TokenFile != "" {
		return &rest.Config{
			Host: i.HubURL, TLSClientConfig: rest.TLSClientConfig{CAData: i.HubCA}, WrapTransport: transport.TokenSourceWrapTransport(&i.tokens),
		}
	}
	return &rest.Config{Host: i.HubURL, Transport: i.wire}
}

// Changed receives a value when the agent has a new certificate: what the hub refused before it may allow now.
func (i *Identity) Changed() <-chan struct{} { return i.changed }

// Establish returns once the agent can sign in. Until then it tries, and logs what is in the way.
func (i *Identity) Establish(ctx context.Context) error {
	if i.TokenFile != "" {
		return i.persist(ctx, "take up the token", i.takeToken)
	}
	if err := i.persist(ctx, "load the agent's certificate", i.load); err != nil {
		return err
	}
	if i.wire.current.Load() != nil {
		return nil
	}
	return i.persist(ctx, "join the fleet", i.join)
}

// load takes a stored certificate into use, if there is one that is still good.
func (i *Identity) load(ctx context.Context) error {
	credentials, err := i.Store.Load(ctx)
	if err != nil {
		return err
	}
	i.credentials = credentials
	c, err := credentials.open()
	switch {
	case err != nil:
		i.Log.Info("joins with the bootstrap token", "why", err.Error())
	case c.cluster != i.Cluster:
		i.Log.Info("joins with the bootstrap token", "why", "the stored certificate is of cluster "+c.cluster)
		i.credentials.Pending = nil
	case c.expired(i.Clock.Now()):
		i.Log.Info("joins with the bootstrap token", "why", "the stored certificate expired at "+c.Leaf.NotAfter.UTC().Format(time.RFC3339))
	default:
		i.wire.use(c)
	}
	return nil
}

// persist repeats an attempt until it succeeds.
func (i *Identity) persist(ctx context.Context, what string, attempt func(context.Context) error) error {
	pause := shortestRetry
	for {
		token, _ := os.ReadFile(i.BootstrapTokenFile)
		err := attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
		wait := pause
		if errors.Is(err, errDenied) {
			wait = deniedRetry
		}
		i.tell("cannot "+what+" yet", err)
		if err := i.await(ctx, wait, token); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		pause = min(2*pause, longestRetry)
	}
}

// await waits, but not longer than until the bootstrap token is another one than this.
func (i *Identity) await(ctx context.Context, d time.Duration, token []byte) error {
	end := i.Clock.Now().Add(d)
	for left := d; left > 0; left = end.Sub(i.Clock.Now()) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-i.Clock.After(min(left, tokenCheck)):
		}
		if now, err := os.ReadFile(i.BootstrapTokenFile); err == nil && !bytes.Equal(now, token) {
			return nil
		}
	}
	return nil
}

// tell logs what is in the way; the same again only after a while.
func (i *Identity) tell(what string, err error) {
	now := i.Clock.Now()
	if text := what + err.Error(); text != i.told || now.Sub(i.toldLast) >= tellAgain {
		i.Log.Info(what, "why", err.Error())
		i.told, i.toldLast = text, now
	}
}

// join asks for a certificate with the bootstrap token.
func (i *Identity) join(ctx context.Context) error {
	token, err := readToken(i.BootstrapTokenFile)
	if err != nil {
		return err
	}
	hub, err := i.hub(&rest.Config{Host: i.HubURL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: i.HubCA}})
	if err != nil {
		return err
	}
	uid, err := i.membership(ctx, hub)
	if err != nil {
		return err
	}
	return i.obtain(ctx, hub, uid)
}

// renew asks for a certificate with the present one.
func (i *Identity) renew(ctx context.Context) error {
	hub, err := i.hub(i.Config())
	if err != nil {
		return err
	}
	return i.obtain(ctx, hub, i.wire.current.Load().uid)
}

// obtain gets a certificate for this membership and takes it into use. The key is stored before it is asked for, so that a
// restart in between costs neither the token nor the certificate.
func (i *Identity) obtain(ctx context.Context, hub client.WithWatch, uid types.UID) error {
	next := *i.credentials
	if len(next.Pending) == 0 {
		key, err := newKey()
		if err != nil {
			return err
		}
		next.Pending = key
		if err := i.save(ctx, next); err != nil {
			return err
		}
	}
	a := application{hub: hub, cluster: i.Cluster, uid: uid, clusterID: i.ClusterID, seconds: int32(i.Life / time.Second), log: i.Log}
	issued, err := a.submit(ctx, next.Pending)
	if errors.Is(err, errDenied) {
		next.Pending = nil
		return errors.Join(err, i.save(ctx, next))
	}
	if err != nil {
		return err
	}
	next = Credentials{Certificate: issued, Key: next.Pending}
	c, err := next.open()
	if err != nil {
		return fmt.Errorf("the hub's answer is of no use: %w", err)
	}
	if err := i.save(ctx, next); err != nil {
		return err
	}
	i.wire.use(c)
	select {
	case i.changed <- struct{}{}:
	default:
	}
	i.Log.Info("has a certificate", "user", c.Leaf.Subject.CommonName, "until", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

func (i *Identity) save(ctx context.Context, c Credentials) error {
	if err := i.Store.Save(ctx, &c); err != nil {
		return err
	}
	i.credentials = &c
	return nil
}

// membership returns the UID of the MemberCluster, which the hub writes as the owner of the InternalMemberCluster.
func (i *Identity) membership(ctx context.Context, hub client.Client) (types.UID, error) {
	imc := &clusterv1.InternalMemberCluster{}
	key := client.ObjectKey{Namespace: placement.MemberNamespace(i.Cluster), Name: i.Cluster}
	err := hub.Get(ctx, key, imc)
	switch {
	case apierrors.IsUnauthorized(err):
		return "", fmt.Errorf("the hub does not accept the bootstrap token in %s; it may have expired, make another: kubectl create token %s -n %s",
			i.BootstrapTokenFile, clusterv1.BootstrapServiceAccount, key.Namespace)
	case err != nil:
		return "", fmt.Errorf("read what the hub asks of cluster %s: %w", i.Cluster, err)
	}
	owner := metav1.GetControllerOf(imc)
	if owner == nil {
		return "", fmt.Errorf("InternalMemberCluster %s has no owner", key)
	}
	return owner.UID, nil
}

// hub makes a client that knows just the kinds that are needed to join.
func (i *Identity) hub(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), certificatesv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil) // so that nothing need be discovered
	mapper.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	mapper.Add(clusterv1.GroupVersion.WithKind("InternalMemberCluster"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client for the hub: %w", err)
	}
	return c, nil
}

func readToken(file string) (string, error) {
	if file == "" {
		return "", errors.New("a token is needed, and neither --bootstrap-token-file nor --token-file is given")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := string(bytes.TrimSpace(content))
	if token == "" {
		return "", fmt.Errorf("the token file %s is empty", file)
	}
	return token, nil
}
