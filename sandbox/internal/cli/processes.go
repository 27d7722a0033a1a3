package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/fleetwright/fleetwright/sandbox/internal/kubeconfig"
	"github.com/fleetwright/fleetwright/sandbox/internal/sandbox"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

func newStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the sandbox's processes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandbox.Status(cmd.Context(), o.dir, cmd.OutOrStdout())
		},
	}
}

func newLogs(o *options) *cobra.Command {
	var tail int
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show the log of a process",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sandbox.Logs(cmd.Context(), o.dir, args[0], tail, follow, cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&tail, "tail", -1, "show only that many lines at the end")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added")
	return cmd
}

func newRun(o *options) *cobra.Command {
	guest := sandbox.Guest{}
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARGS...]",
		Short: "Run a process of your own in the background, with its log among the others",
		Long: "run starts a process in the background. The other commands know it by its name: status, logs, kill, start; up\n" +
			"starts it again if it ended, and down ends it before the control planes. If a process of that name runs already,\n" +
			"with the same command, environment and program file, it is left alone; if anything differs it is replaced.\n\n" +
			"Where {port:WORD} stands in the command, the environment or the readiness URL, a free port is put, the same for\n" +
			"the same name and word at every start.",
		Example: "  sandbox run hub-controllers --env KUBECONFIG=.sandbox/kubeconfig \\\n" +
			"    --ready http://127.0.0.1:{port:health}/readyz -- bin/fleetwright-hub --health-address=127.0.0.1:{port:health}",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return errors.New("give a name, then --, then the command to run")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			guest.Name, guest.Command = args[0], args[1:]
			return o.run(cmd.Context(), guest, timeout)
		},
	}
	cmd.Flags().StringArrayVar(&guest.Env, "env", nil, "K=V to add to the environment; may be given several times")
	cmd.Flags().StringVar(&guest.Dir, "workdir", ".", "the working directory")
	cmd.Flags().StringVar(&guest.Ready, "ready", "", "a URL that answers 200 when the process is ready, which is then waited for")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long it may take to be ready")
	return cmd
}

// run starts a guest under the lock and waits for its readiness without it, so that others can be started meanwhile.
func (o *options) run(ctx context.Context, guest sandbox.Guest, timeout time.Duration) error {
	s, err := o.open(ctx, "sandbox run "+guest.Name)
	if err != nil {
		return err
	}
	outcome, started, err := s.Run(ctx, guest)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if err := awaitReady(ctx, timeout, started); err != nil {
		return err
	}
	o.report.Line("%s: %s, process %d, log %s", guest.Name, outcome, started.PID, started.Log)
	return nil
}

func newKill(o *options) *cobra.Command {
	var signalName string
	cmd := &cobra.Command{
		Use:   "kill NAME...",
		Short: "Send a signal to processes, and wait for their end if it ends them",
		Example: "  sandbox kill member1-apiserver\n" +
			"  sandbox kill --signal STOP member1-agent    # it hangs until CONT",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			signal, err := parseSignal(signalName)
			if err != nil {
				return err
			}
			s, err := o.open(cmd.Context(), "sandbox kill")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			return s.Signal(cmd.Context(), signal, args...)
		},
	}
	cmd.Flags().StringVarP(&signalName, "signal", "s", "KILL", "the signal")
	return cmd
}

func parseSignal(name string) (syscall.Signal, error) {
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "SIG") {
		full = "SIG" + full
	}
	if signal := unix.SignalNum(full); signal != 0 {
		return signal, nil
	}
	return 0, fmt.Errorf("no signal %q", name)
}

func newStart(o *options) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "start NAME...",
		Short: "Start processes that ended again, as they were, and wait until they are ready",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.open(cmd.Context(), "sandbox start")
			if err != nil {
				return err
			}
			started, err := s.Start(args...)
			if err = errors.Join(err, s.Close()); err != nil {
				return err
			}
			return awaitReady(cmd.Context(), timeout, started...)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long they may take to be ready")
	return cmd
}

func newKubeconfig(o *options) *cobra.Command {
	var cluster, user, output string
	var groups []string
	cmd := &cobra.Command{
		Use:     "kubeconfig --user NAME",
		Short:   "Make a kubeconfig for a user of a cluster, with a client certificate",
		Example: "  sandbox kubeconfig --cluster hub --user alice --group approvers --output alice.kubeconfig",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.open(cmd.Context(), "sandbox kubeconfig")
			if err != nil {
				return err
			}
			content, err := s.UserKubeconfig(cluster, user, groups)
			if err = errors.Join(err, s.Close()); err != nil {
				return err
			}
			if output != "" {
				return kubeconfig.WriteFile(output, content)
			}
			if _, err := os.Stdout.Write(content); err != nil {
				return fmt.Errorf("writing the kubeconfig: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", state.Hub, "the cluster")
	cmd.Flags().StringVar(&user, "user", "", "the user's name")
	cmd.Flags().StringArrayVar(&groups, "group", nil, "a group of the user; may be given several times")
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file to write, else standard output")
	cobra.CheckErr(cmd.MarkFlagRequired("user"))
	return cmd
}

func awaitReady(ctx context.Context, timeout time.Duration, processes ...state.Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready within %s", timeout))
	defer cancel()
	return sandbox.AwaitReady(ctx, processes...)
}
