// Package cli is kubectl amc: one command line for the fleet.
package cli

import (
	"github.com/fleetwright/fleetwright/internal/cli/drain"
	"github.com/fleetwright/fleetwright/internal/cli/explain"
	"github.com/fleetwright/fleetwright/internal/cli/member"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/fleetwright/fleetwright/internal/cli/run"
	"github.com/fleetwright/fleetwright/internal/cli/version"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommand returns the whole command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := options.New(streams)
	command := options.Group(&cobra.Command{
		Use:           "kubectl-amc",
		Short:         "One command line for the fleet",
		Long:          "kubectl amc works with a fleet of clusters through its hub. The current context is the hub's, or the one that --context names.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl amc"},
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	o.Flags.AddFlags(command.PersistentFlags())
	command.AddCommand(drain.NewCommand(o), drain.NewUncordon(o), explain.NewCommand(o), member.NewCommand(o), run.NewCommand(o), version.NewCommand(o))
	return command
}
