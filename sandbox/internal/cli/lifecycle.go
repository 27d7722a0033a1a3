package cli

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetwright/fleetwright/sandbox/internal/build"
	"github.com/fleetwright/fleetwright/sandbox/internal/sandbox"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

const defaultTimeout = 5 * time.Minute

func newUp(o *options) *cobra.Command {
	up := sandbox.UpOptions{Full: sandbox.FullMember}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start what does not run of the hub and its members, and wait until it is ready",
		Long: "up builds the programs that are missing, starts what does not run of the hub and its members, and waits until\n" +
			"all is ready. Run again it starts what ended meanwhile, adds members if more are asked for, and else does nothing.\n" +
			"Members are never removed: use down for that.",
		Example: "  sandbox up --members 3\n  sandbox up --members 1 --bare 10 --dir /tmp/many\n  sandbox up --members 3 --kruise=false",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s, err := sandbox.Open(cmd.Context(), o.dir, "sandbox up", 0, o.report)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			up.Bin, up.Source = o.bin, o.sourceIf(cmd)
			return s.Up(cmd.Context(), up)
		},
	}
	cmd.Flags().IntVar(&up.Members, "members", 3, "how many members can run workloads; they are named member1, member2, …")
	cmd.Flags().IntVar(&up.Bare, "bare", 0, "how many members more have an API server alone; their numbers follow the others'")
	addPartsFlags(cmd, &up.Full)
	addBuildFlag(cmd)
	cmd.Flags().DurationVar(&up.Timeout, "timeout", defaultTimeout, "how long all may take to be ready, not counting a build")
	return cmd
}

func newAddMember(o *options) *cobra.Command {
	parts := sandbox.FullMember
	var bare bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "add-member [NAME]",
		Short: "Start one more member, and wait until it is ready",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := o.open(cmd.Context(), "sandbox add-member")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			if bare {
				parts = sandbox.BareMember
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return s.AddMember(cmd.Context(), name, parts, o.sourceIf(cmd), timeout)
		},
	}
	cmd.Flags().BoolVar(&bare, "bare", false, "an API server alone")
	addPartsFlags(cmd, &parts)
	addBuildFlag(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "how long it may take to be ready, not counting a build")
	return cmd
}

func newDown(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End all processes of the sandbox and remove its files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s, err := sandbox.OpenExisting(cmd.Context(), o.dir, "sandbox down", 0, o.report)
			if errors.Is(err, sandbox.ErrNone) {
				o.report.Line("There is no sandbox in %s", o.dir)
				return nil
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			if err := s.Down(cmd.Context()); err != nil {
				return err
			}
			o.report.Line("The sandbox in %s is down", o.dir)
			return nil
		},
	}
}

func newBuild(o *options) *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the programs that are missing or were built from other sources",
		Long: "build compiles what the sandbox runs. It can be interrupted and run again: what was compiled is kept.\n" +
			"The folder k8s among the programs serves as KUBEBUILDER_ASSETS of envtest.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return build.Run(cmd.Context(), build.Options{Source: o.source, Bin: o.bin, Only: only, Report: o.report})
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil,
		fmt.Sprintf("build only these and what they need, of %s, %s and %s", build.Kubernetes, build.KWOK, build.Kruise))
	return cmd
}

func addPartsFlags(cmd *cobra.Command, parts *state.Parts) {
	cmd.Flags().BoolVar(&parts.Scheduler, "scheduler", parts.Scheduler, "start a scheduler in members that are not bare")
	cmd.Flags().IntVar(&parts.Nodes, "nodes", parts.Nodes, "how many simulated nodes such members have")
	cmd.Flags().BoolVar(&parts.Kruise, "kruise", parts.Kruise, "start Kruise Rollouts for such members")
}

const buildFlag = "build"

func addBuildFlag(cmd *cobra.Command) {
	cmd.Flags().Bool(buildFlag, true, "build programs that are missing or were built from other sources")
}

// sourceIf returns where to build from, or nothing if the user wants no build or there are no sources.
func (o *options) sourceIf(cmd *cobra.Command) string {
	wanted, err := cmd.Flags().GetBool(buildFlag)
	if err != nil || !wanted {
		return ""
	}
	if _, err := os.Stat(o.source); err != nil && !cmd.Flags().Changed("source") {
		return ""
	}
	return o.source
}
