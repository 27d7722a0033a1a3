package sandbox

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetwright/fleetwright/sandbox/internal/process"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// Guest is a process that a user wants to run in the sandbox. Wherever {port:NAME} stands in it, a free port is put,
// the same at every start.
type Guest struct {
	Name    string
	Command []string
	// Env is added to the environment, as K=V.
	Env []string
	// Dir is its working directory.
	Dir string
	// Ready is a URL that answers 200 when it is ready. It may be empty.
	Ready string
}

// Outcome is what Run found to do.
type Outcome string

// Outcomes.
const (
	Started   Outcome = "started"
	Restarted Outcome = "restarted"
	Unchanged Outcome = "already running"
)

var (
	guestName       = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	portPlaceholder = regexp.MustCompile(`\{port:([a-z0-9-]+)\}`)
)

// Run starts a user's process. If one of that name runs, it is left alone when it is the same, with the same program,
// and else replaced. Run does not wait for readiness: see AwaitReady.
func (s *Sandbox) Run(ctx context.Context, g Guest) (Outcome, state.Process, error) {
	spec, err := s.guestProcess(g)
	if err != nil {
		return "", spec, err
	}
	outcome := Started
	if old := s.state.Process(g.Name); old != nil {
		if !old.Guest {
			return "", spec, fmt.Errorf("%s is a part of the sandbox: choose another name", g.Name)
		}
		same, err := sameProcess(*old, spec)
		if err != nil {
			return "", spec, err
		}
		if same && old.Alive() && !old.Stopped() {
			return Unchanged, *old, nil
		}
		if old.Alive() {
			outcome = Restarted
		}
		if err := process.Kill(ctx, old.Identity, grace); err != nil {
			return "", spec, fmt.Errorf("replacing %s: %w", g.Name, err)
		}
	}
	started, err := s.start(spec)
	return outcome, started, err
}

// Start starts processes that ended, as they were last started.
func (s *Sandbox) Start(names ...string) ([]state.Process, error) {
	var started []state.Process
	for _, name := range names {
		spec := s.state.Process(name)
		if spec == nil {
			return started, unknownProcess(s.state, name)
		}
		p, err := s.start(*spec)
		if err != nil {
			return started, err
		}
		started = append(started, p)
	}
	return started, nil
}

// AwaitReady waits until processes are ready. It needs no lock.
func AwaitReady(ctx context.Context, processes ...state.Process) error {
	for _, p := range processes {
		if err := awaitReady(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sandbox) guestProcess(g Guest) (state.Process, error) {
	if !guestName.MatchString(g.Name) {
		return state.Process{}, fmt.Errorf("process name %q: use lower-case letters, digits, dashes and dots", g.Name)
	}
	program, err := exec.LookPath(g.Command[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return state.Process{}, fmt.Errorf("looking for the program of %s: %w", g.Name, err)
	}
	dir, err := filepath.Abs(g.Dir)
	if err != nil {
		return state.Process{}, fmt.Errorf("looking for the working directory of %s: %w", g.Name, err)
	}
	p := state.Process{
		Name:  g.Name,
		Guest: true,
		Dir:   dir,
		Log:   filepath.Join(s.logs(), g.Name+".log"),
	}
	if p.Command, err = s.fillPorts(g.Name, g.Command); err != nil {
		return p, err
	}
	p.Command[0] = program
	if p.Env, err = s.fillPorts(g.Name, g.Env); err != nil {
		return p, err
	}
	ready, err := s.fillPorts(g.Name, []string{g.Ready})
	if err != nil {
		return p, err
	}
	p.Ready = ready[0]
	if address, err := url.Parse(p.Ready); err != nil {
		return p, fmt.Errorf("readiness URL of %s: %w", g.Name, err)
	} else if address.Host != "" {
		p.Address = address.Scheme + "://" + address.Host
	}
	return p, nil
}

// fillPorts puts ports where they are asked for.
func (s *Sandbox) fillPorts(process string, texts []string) ([]string, error) {
	filled := slices.Clone(texts)
	for i, text := range texts {
		for _, match := range portPlaceholder.FindAllStringSubmatch(text, -1) {
			ports, err := s.ports(process + "/" + match[1])
			if err != nil {
				return nil, err
			}
			filled[i] = strings.ReplaceAll(filled[i], match[0], strconv.Itoa(ports[0]))
		}
	}
	return filled, nil
}

// sameProcess reports whether a process was started as it would be now.
func sameProcess(old, now state.Process) (bool, error) {
	program, err := fingerprint(now.Command[0])
	if err != nil {
		return false, fmt.Errorf("process %s: %w", now.Name, err)
	}
	return old.Program == program && slices.Equal(old.Command, now.Command) && slices.Equal(old.Env, now.Env) &&
		old.Dir == now.Dir && old.Ready == now.Ready, nil
}

func unknownProcess(s *state.State, name string) error {
	var names []string
	for _, p := range s.Processes {
		names = append(names, p.Name)
	}
	return fmt.Errorf("no process %q: there are %s", name, strings.Join(names, ", "))
}
