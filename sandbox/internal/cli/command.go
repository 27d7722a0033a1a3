// Package cli is the command line of the sandbox program.
package cli

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetwright/fleetwright/sandbox/internal/report"
	"github.com/fleetwright/fleetwright/sandbox/internal/sandbox"
)

// patience is how long a short command waits for another one that changes the same sandbox.
const patience = time.Minute

// options are what all commands have in common.
type options struct {
	dir    string
	bin    string
	source string
	report *report.Report
}

// NewCommand returns the program's command with all its subcommands.
func NewCommand() *cobra.Command {
	o := &options{report: report.New(os.Stderr)}
	root := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a hub and its members on this machine",
		Long: "sandbox runs Kubernetes control planes on this machine, without containers: one called hub and any number of\n" +
			"members. It builds them from source. All that belongs to one sandbox is in one folder, so several can run at once.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&o.dir, "dir", ".sandbox", "the folder of the sandbox")
	root.PersistentFlags().StringVar(&o.bin, "bin", defaultBin(), "the folder for the programs that the sandbox runs")
	root.PersistentFlags().StringVar(&o.source, "source", defaultSource(), "the folder of the sandbox's sources, to build programs from")
	root.AddCommand(
		newUp(o), newDown(o), newAddMember(o), newStatus(o), newLogs(o),
		newRun(o), newKill(o), newStart(o), newKubeconfig(o), newBuild(o),
	)
	return root
}

// open takes the lock of an existing sandbox, waiting for other commands.
func (o *options) open(ctx context.Context, purpose string) (*sandbox.Sandbox, error) {
	return sandbox.OpenExisting(ctx, o.dir, purpose, patience, o.report)
}

// defaultBin is the folder of this program if it is among the others, so that it works from every working directory.
func defaultBin() string {
	const bin = "bin"
	if program, err := os.Executable(); err == nil && filepath.Base(filepath.Dir(program)) == bin {
		return filepath.Dir(program)
	}
	return bin
}

// defaultSource is the folder beside the folder of the programs.
func defaultSource() string {
	return filepath.Join(filepath.Dir(defaultBin()), "sandbox")
}
