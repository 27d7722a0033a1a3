package selection

import (
	"fmt"
	"net/http"

	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Connect makes a Selector and Watches that talk to one hub over an existing HTTP client.
func Connect(config *rest.Config, http *http.Client, rules placement.Rules, clock clock.WithTicker) (*Selector, *Watches, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return nil, nil, fmt.Errorf("make a discovery client: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for all kinds: %w", err)
	}
	metadata, err := metadata.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return &Selector{Discovery: d, Client: objects, Rules: rules}, NewWatches(d, metadata, clock), nil
}
