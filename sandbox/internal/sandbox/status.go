package sandbox

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"text/tabwriter"

	"github.com/fleetwright/fleetwright/sandbox/internal/kubeconfig"
	"github.com/fleetwright/fleetwright/sandbox/internal/pki"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// States of a process.
const (
	ready    = "Ready"
	notReady = "NotReady"
	running  = "Running" // it cannot be asked whether it is ready
	stopped  = "Stopped"
	dead     = "Dead"
)

// Status writes a table of a sandbox's processes.
func Status(ctx context.Context, dir string, out io.Writer) error {
	s, err := View(dir)
	if err != nil {
		return err
	}
	states := make([]string, len(s.Processes))
	var asked sync.WaitGroup
	for i, p := range s.Processes {
		asked.Go(func() { states[i] = condition(ctx, p) })
	}
	asked.Wait()

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tPID\tSTATE\tADDRESS\tLOG")
	for i, p := range s.Processes {
		pid, address := strconv.Itoa(p.PID), p.Address
		if states[i] == dead {
			pid = "-"
		}
		if address == "" {
			address = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Name, pid, states[i], address, p.Log)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// condition returns the state of a process.
func condition(ctx context.Context, p state.Process) string {
	switch {
	case !p.Alive():
		return dead
	case p.Stopped():
		return stopped
	case p.Ready == "":
		return running
	}
	client, err := readinessClient(p)
	if err != nil {
		return notReady
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := askReady(ctx, client, p.Ready); err != nil {
		return notReady
	}
	return ready
}

// UserKubeconfig returns a kubeconfig by which a user reaches a cluster of the sandbox.
func (s *Sandbox) UserKubeconfig(cluster, user string, groups []string) ([]byte, error) {
	if s.state.Cluster(cluster) == nil {
		return nil, fmt.Errorf("no cluster %q in sandbox %s", cluster, s.dir)
	}
	plane, err := s.plane(cluster)
	if err != nil {
		return nil, err
	}
	access, err := plane.Access(pki.Client{User: user, Groups: groups})
	if err != nil {
		return nil, err
	}
	return kubeconfig.Encode(access)
}
