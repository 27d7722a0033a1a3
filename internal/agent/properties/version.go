package properties

import (
	"context"
	"fmt"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// versionPeriod is how often the API server is asked for its version: an upgrade tells nobody.
	versionPeriod = 10 * time.Minute
	// answerWithin is how long its answer may take.
	answerWithin = 10 * time.Second
)

// Version finds out which Kubernetes a cluster runs.
type Version struct {
	// Member reaches the cluster.
	Member *rest.Config
	// Clock is the clock.
	Clock clock.WithTicker
}

// Name says what is looked at.
func (v *Version) Name() string { return "the API server's version" }

// Run asks again and again until ctx ends; sooner while there is no answer.
func (v *Version) Run(ctx context.Context, say func(Report, error)) error {
	config := rest.CopyConfig(v.Member)
	config.Timeout = answerWithin
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for the member's version: %w", err)
	}
	for {
		wait := versionPeriod
		version, err := client.ServerVersion()
		if err != nil {
			wait = pause
			say(Report{}, fmt.Errorf("ask for it: %w", err))
		} else {
			say(Report{Properties: map[string]string{clusterv1.KubernetesVersionProperty: version.GitVersion}}, nil)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.Clock.After(wait):
		}
	}
}
