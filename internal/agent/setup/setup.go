package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fleetwright/fleetwright/internal/agent/identity"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// memberQPS and memberBurst keep an agent that applies a large change from crowding out others in its cluster.
	memberQPS, memberBurst = 100, 200
	// shortestRetry and longestRetry bound the time after which something that failed is tried again.
	shortestRetry, longestRetry = time.Second, 30 * time.Second
)

// Options are what an operator may set.
type Options struct {
	// ClusterName is the name of the MemberCluster.
	ClusterName string
	// HubURL is where the hub's API server is; HubCAFile holds, in PEM, who vouches for it.
	HubURL, HubCAFile string
	// BootstrapTokenFile holds a token that is good for one certificate; TokenFile a token to sign in with instead.
	BootstrapTokenFile, TokenFile string
	// MemberKubeconfig reaches the cluster; empty inside it.
	MemberKubeconfig string
	// CredentialsDir keeps the certificate; empty keeps it in a Secret in Namespace.
	CredentialsDir, Namespace string
	// CertificateLife is how long a certificate is asked to live; 0 is the longest that the hub approves.
	CertificateLife time.Duration
	// MetricsAddress and ProbeAddress are where metrics and health are served; "0" serves none.
	MetricsAddress, ProbeAddress string
	// UnschedulableAfter is how long pods must have found no node for the hub to be told; 0 is 30 seconds.
	UnschedulableAfter time.Duration
	// Clock is the clock.
	Clock clock.WithTicker
	// Log is told what people who run the agent should know.
	Log logr.Logger
}

// Validate says what is missing.
func (o *Options) Validate() error {
	switch {
	case o.ClusterName == "":
		return errors.New("--cluster-name is needed: the name of the MemberCluster on the hub")
	case o.HubURL == "":
		return errors.New("--hub-url is needed: the address of the hub's API server, such as https://hub.example.com:6443")
	case o.BootstrapTokenFile != "" && o.TokenFile != "":
		return errors.New("give either --bootstrap-token-file or --token-file")
	}
	return nil
}

// Agent is an agent at work.
type Agent struct {
	Options
	member    *rest.Config
	clusterID string
	identity  *identity.Identity
	servers   *servers
}

// Run works until ctx ends.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	a := &Agent{Options: o}
	var err error
	if a.servers, err = serve(o.MetricsAddress, o.ProbeAddress, o.Log); err != nil {
		return err
	}
	defer a.servers.close()
	if a.member, err = memberConfig(o.MemberKubeconfig); err != nil {
		return err
	}
	member, err := memberClient(a.member)
	if err != nil {
		return err
	}
	if a.clusterID, err = a.readClusterID(ctx, member); err != nil {
		return ended(ctx, err)
	}
	if a.identity, err = a.newIdentity(member); err != nil {
		return err
	}
	if err := a.identity.Establish(ctx); err != nil {
		return ended(ctx, err)
	}
	done := make(chan error, 1)
	go func() { done <- a.identity.Run(ctx) }()
	err = a.memberships(ctx)
	return errors.Join(ended(ctx, err), <-done)
}

// ended takes an error that came of being told to stop for none.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it ended because it was told to
	}
	return err
}

func (a *Agent) newIdentity(member client.Client) (*identity.Identity, error) {
	o := identity.Options{
		Cluster: a.ClusterName, ClusterID: a.clusterID, HubURL: a.HubURL,
		BootstrapTokenFile: a.BootstrapTokenFile, TokenFile: a.TokenFile,
		Store: &identity.SecretStore{Client: member, Namespace: a.Namespace},
		Life:  a.CertificateLife, Clock: a.Clock, Log: a.Log.WithName("identity"),
	}
	if a.CredentialsDir != "" {
		o.Store = identity.DirStore(a.CredentialsDir)
	}
	if a.HubCAFile != "" {
		var err error
		if o.HubCA, err = os.ReadFile(a.HubCAFile); err != nil {
			return nil, fmt.Errorf("read the hub's CA: %w", err)
		}
	}
	return identity.New(o)
}

func memberConfig(kubeconfig string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the member's API server: %w", err)
	}
	config.QPS, config.Burst = memberQPS, memberBurst
	return config, nil
}

// memberClient knows the few kinds that the agent itself needs of its cluster.
func memberClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client for the member: %w", err)
	}
	return c, nil
}

// readClusterID reads what tells this cluster from all others: the UID of its kube-system namespace.
func (a *Agent) readClusterID(ctx context.Context, member client.Client) (string, error) {
	namespace := &corev1.Namespace{}
	err := a.persist(ctx, "read namespace kube-system of the member", nil, func() error {
		return member.Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace)
	})
	return string(namespace.UID), err
}

// persist repeats an attempt until it succeeds, and logs once what is in the way. It does not wait for long when it is woken.
func (a *Agent) persist(ctx context.Context, what string, woken <-chan struct{}, attempt func() error) error {
	told := ""
	for pause := shortestRetry; ; pause = max(shortestRetry, min(2*pause, longestRetry)) {
		err := attempt()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			a.Log.Info("cannot "+what+" yet", "why", told)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-woken:
			pause = 0
		case <-a.Clock.After(pause):
		}
	}
}
