// Package process starts programs that outlive the one that started them, recognises them again later, and ends them.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is how often the end of a process is looked for. The kernel tells only a parent, which is usually gone.
const pollInterval = 10 * time.Millisecond

// killPatience is how long the kernel may take to end what was killed.
const killPatience = 30 * time.Second

// Command says what to start.
type Command struct {
	// Args is the program, as an absolute path, and its arguments.
	Args []string
	// Env is added to the environment of the starting program, as K=V.
	Env []string
	// Dir is the working directory.
	Dir string
	// Log is the file that takes standard output and standard error. It is appended to.
	Log string
}

// Start starts a command in a session of its own, so that neither an interrupt from the terminal nor the end of this
// program reaches it. Its processes are in one process group, which Kill ends as a whole.
func Start(c Command) (Identity, error) {
	if err := os.MkdirAll(filepath.Dir(c.Log), 0o755); err != nil {
		return Identity{}, fmt.Errorf("creating the folder of log file %s: %w", c.Log, err)
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return Identity{}, fmt.Errorf("opening log file %s: %w", c.Log, err)
	}
	defer log.Close()
	if _, err := fmt.Fprintf(log, "--- started %s: %s\n", time.Now().Format(time.RFC3339), strings.Join(c.Args, " ")); err != nil {
		return Identity{}, fmt.Errorf("writing log file %s: %w", c.Log, err)
	}

	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir = c.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Identity{}, fmt.Errorf("starting %s: %w", c.Args[0], err)
	}

	// Read before anybody waits for the process: until then its entry in /proc stays, even if it ends at once.
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		return Identity{}, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	// How it ends is for its log to say. Waiting only keeps it from lingering as a zombie of this program.
	go func() { _ = cmd.Wait() }()
	return id, nil
}

// Signal sends a signal to the process group that the identified process leads. It returns false, and does nothing,
// when that very process is not there any more.
func Signal(id Identity, sig syscall.Signal) (bool, error) {
	if !id.Alive() {
		return false, nil
	}
	err := unix.Kill(-id.PID, sig)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sending %s to process group %d: %w", unix.SignalName(sig), id.PID, err)
	}
	return true, nil
}

// Kill ends the process group that the identified process leads and waits until all of it is gone. With a grace period
// above zero it asks with SIGTERM first; what is left after that, with or without its leader, is ended. A process that is not
// there any more, or whose number now belongs to another process, is left alone.
func Kill(ctx context.Context, id Identity, grace time.Duration) error {
	if grace > 0 {
		found, err := Signal(id, syscall.SIGTERM)
		if err != nil || !found {
			return err
		}
		// A stopped process cannot act on SIGTERM before it is continued.
		if _, err := Signal(id, syscall.SIGCONT); err != nil {
			return err
		}
		err = waitGroupGone(ctx, id, grace)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// Its leader may have ended, and by now the rest.
		if runs, err := id.groupRuns(); err != nil || !runs {
			return err
		}
		if err := unix.Kill(-id.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("sending SIGKILL to process group %d: %w", id.PID, err)
		}
		return waitGroupGone(ctx, id, killPatience)
	}
	found, err := Signal(id, syscall.SIGKILL)
	if err != nil || !found {
		return err
	}
	return waitGroupGone(ctx, id, killPatience)
}

// waitGroupGone waits until the group that the process leads, or led, has ended.
func waitGroupGone(ctx context.Context, id Identity, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(context.Context) (bool, error) {
		if id.Alive() {
			return false, nil
		}
		runs, err := id.groupRuns()
		return !runs, err
	})
	if err != nil {
		return fmt.Errorf("waiting for process group %d to end: %w", id.PID, err)
	}
	return nil
}

// WaitGone waits until the identified process has ended.
func WaitGone(ctx context.Context, id Identity, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(context.Context) (bool, error) {
		return !id.Alive(), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for process %d to end: %w", id.PID, err)
	}
	return nil
}
