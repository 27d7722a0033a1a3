// Package options is what all commands of kubectl amc share: kubectl's own flags, the streams and the way to the hub.
package options

import (
	"context"
	"fmt"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completeWithin is how long a person may be kept waiting for names to complete.
const completeWithin = 3 * time.Second

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
func (o *Options) Hub() (client.Client, error) { return o.HubWithWatch() }

// HubWithWatch returns a client for the hub that can wait for changes.
func (o *Options) HubWithWatch() (client.WithWatch, error) {
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
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the hub: %w", err)
	}
	return c, nil
}

// Explain says in people's words what an error means that they often run into: the current context is not the hub's.
func Explain(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("this cluster knows nothing of fleets; is the current context the hub's? Choose it with --context: %w", err)
	}
	return err
}

// Complete lists the objects of a list's kind on the hub whose names may be meant, while they are being typed. Without a hub
// there are none.
func (o *Options) Complete(ctx context.Context, list client.ObjectList, filters ...client.ListOption) []string {
	hub, err := o.Hub()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	if err := hub.List(ctx, list, filters...); err != nil {
		return nil
	}
	var names []string
	_ = meta.EachListItem(list, func(object runtime.Object) error { // the function returns no error
		if named, ok := object.(client.Object); ok {
			names = append(names, named.GetName())
		}
		return nil
	})
	return names
}

// CompleteMember completes the one member that a command takes as its argument.
func (o *Options) CompleteMember(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.CompleteMemberFlag(command, args, typed)
}

// CompleteMemberFlag completes a member as the value of a flag.
func (o *Options) CompleteMemberFlag(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return o.Complete(command.Context(), &clusterv1.MemberClusterList{}), cobra.ShellCompDirectiveNoFileComp
}

// Namespace returns what --namespace says; empty where it says nothing.
func (o *Options) Namespace() string {
	if o.Flags.Namespace == nil {
		return ""
	}
	return *o.Flags.Namespace
}
