// Package options is what all commands of kubectl amc share: kubectl's own flags, the streams and the way to the hub.
package options

import (
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are the shared options of a command.
type Options struct {
	genericiooptions.IOStreams
	// Flags are kubectl's: --context, --kubeconfig, --namespace and so on. They say which hub is meant.
	Flags *genericclioptions.ConfigFlags
}

// New returns options with kubectl's defaults.
func New(streams genericiooptions.IOStreams) *Options {
	return &Options{IOStreams: streams, Flags: genericclioptions.NewConfigFlags(true)}
}

// Hub returns a client for the hub.
func (o *Options) Hub() (client.Client, error) {
	config, err := o.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the hub: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{placementv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the API's types: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the hub: %w", err)
	}
	return c, nil
}

// Namespace returns what --namespace says; empty where it says nothing.
func (o *Options) Namespace() string {
	if o.Flags.Namespace == nil {
		return ""
	}
	return *o.Flags.Namespace
}
