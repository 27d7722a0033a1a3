package run

import (
	"context"
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/spf13/cobra"
)

func newCancel(o *options.Options) *cobra.Command {
	var reason string
	command := &cobra.Command{
		Use:   "cancel RUN [--reason TEXT] [-n NAMESPACE]",
		Short: "End an update run for good; clusters keep what they have",
		Example: `  # End a run. Unlike one that is stopped, it cannot be resumed
  kubectl amc run cancel example-run --reason "the wrong image"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("give the name of one run, such as `kubectl amc run cancel example-run`; got %d names", len(args))
			}
			return checkReason(reason)
		},
		RunE: func(command *cobra.Command, args []string) error {
			return cancel(command.Context(), o, args[0], reason)
		},
		ValidArgsFunction: func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return scopeOf(o).runs(command.Context(), o), cobra.ShellCompDirectiveNoFileComp
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the run later; at most 200 characters")
	return command
}

func cancel(ctx context.Context, o *options.Options, name, reason string) error {
	s := scopeOf(o)
	hub, err := o.HubWithWatch()
	if err != nil {
		return err
	}
	var run placementv1.UpdateRunObject
	err = s.change(ctx, hub, name, &run, func() error {
		status := run.UpdateRunStatus()
		switch {
		case run.UpdateRunSpec().Cancel != nil:
			return fmt.Errorf("update run %q is cancelled already%s", name, byWhom(run.UpdateRunSpec().Cancel))
		case engine.Finished(status):
			return fmt.Errorf("update run %q cannot be cancelled, it has ended already: %s", name, atWork(run))
		}
		run.UpdateRunSpec().Cancel = &placementv1.RunCancellation{Reason: reason}
		return nil
	})
	if err != nil {
		return err
	}
	if err := awaitRun(ctx, hub, run, func() bool { return engine.Finished(run.UpdateRunStatus()) }); err != nil {
		return err
	}
	if run.UpdateRunStatus().Cancelled == nil {
		return fmt.Errorf("update run %q ended before it could be cancelled: %s", name, atWork(run))
	}
	fmt.Fprintf(o.Out, "%s/%s cancelled\n", resource(s.kinds.UpdateRun), name)
	return nil
}

func byWhom(c *placementv1.RunCancellation) string {
	if c.RequestedBy == "" {
		return ""
	}
	return " by " + c.RequestedBy
}
