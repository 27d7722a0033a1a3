package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetwright/fleetwright/sandbox/internal/process"
)

// grace is how long a user's process may take to end when it is asked to.
const grace = 10 * time.Second

// Down ends all of the sandbox's processes and removes its files. The processes of users are ended first and given
// time; what they run on is of no use afterwards and is given none.
func (s *Sandbox) Down(ctx context.Context) error {
	if err := s.endAll(ctx, true, grace); err != nil {
		return err
	}
	if err := s.endAll(ctx, false, 0); err != nil {
		return err
	}
	for _, entry := range ownEntries {
		if err := os.RemoveAll(filepath.Join(s.dir, entry)); err != nil {
			return fmt.Errorf("removing the sandbox: %w", err)
		}
	}
	// Not when something else is in it.
	if err := os.Remove(s.dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("removing the sandbox's folder: %w", err)
	}
	return nil
}

// endAll ends all processes that are users', or all that are not.
func (s *Sandbox) endAll(ctx context.Context, guests bool, grace time.Duration) error {
	var group errgroup.Group
	for _, p := range s.state.Processes {
		if p.Guest != guests {
			continue
		}
		group.Go(func() error {
			if err := process.Kill(ctx, p.Identity, grace); err != nil {
				return fmt.Errorf("ending %s: %w", p.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Signal sends a signal to processes. After one that ends a process it waits until the process is gone.
func (s *Sandbox) Signal(ctx context.Context, signal syscall.Signal, names ...string) error {
	for _, name := range names {
		p := s.state.Process(name)
		if p == nil {
			return unknownProcess(s.state, name)
		}
		found, err := process.Signal(p.Identity, signal)
		if err != nil {
			return fmt.Errorf("signalling %s: %w", name, err)
		}
		if !found {
			return fmt.Errorf("%s does not run", name)
		}
	}
	if signal != syscall.SIGKILL && signal != syscall.SIGTERM {
		return nil
	}
	for _, name := range names {
		if err := process.WaitGone(ctx, s.state.Process(name).Identity, time.Minute); err != nil {
			return fmt.Errorf("ending %s: %w", name, err)
		}
	}
	return nil
}
