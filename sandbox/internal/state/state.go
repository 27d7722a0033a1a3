// Package state keeps what is known of a sandbox in one file, so that each command finds what earlier ones started.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetwright/fleetwright/sandbox/internal/ports"
	"github.com/fleetwright/fleetwright/sandbox/internal/process"
)

// FileName is the name of the file in a sandbox's folder.
const FileName = "state.json"

// version is the form of the file. A file of another form is refused.
const version = 1

// Hub is the name of the cluster that the others are managed from.
const Hub = "hub"

// State is all that is known of a sandbox.
type State struct {
	Version int `json:"version"`
	// Bin is the folder of the programs it was started from.
	Bin string `json:"bin"`
	// Clusters are the control planes, the hub first, in the order in which they were added.
	Clusters []Cluster `json:"clusters"`
	// Processes are all processes, running or not, in the order in which they were first started.
	Processes []Process `json:"processes"`
	// Ports are the ports handed out, by what they are for. They never change.
	Ports map[string]int `json:"ports"`
}

// Cluster is one control plane.
type Cluster struct {
	Name  string `json:"name"`
	Parts Parts  `json:"parts"`
	// Server is the URL of its API server.
	Server string `json:"server"`
	// CAFile holds the certificate authority of its API server and of its clients.
	CAFile string `json:"caFile"`
	// Kubeconfig is that of its administrator alone.
	Kubeconfig string `json:"kubeconfig"`
}

// Parts says what a control plane has besides its API server.
type Parts struct {
	ControllerManager bool `json:"controllerManager"`
	Scheduler         bool `json:"scheduler"`
	// Nodes is the number of simulated nodes.
	Nodes int `json:"nodes"`
	// Kruise is whether Kruise Rollouts runs.
	Kruise bool `json:"kruise"`
}

// Process is one process and how to start it again.
type Process struct {
	Name string `json:"name"`
	// Cluster is the cluster that it is part of, if it is part of one.
	Cluster string `json:"cluster,omitempty"`
	// Guest is true for a process that a user added: it is ended before what it runs on, and given time for it.
	Guest   bool     `json:"guest,omitempty"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir"`
	// Program is a fingerprint of the program file at the last start.
	Program string `json:"program"`
	// Address is where it serves.
	Address string `json:"address,omitempty"`
	// Ready is a URL that answers 200 when it is ready.
	Ready string `json:"ready,omitempty"`
	// ReadyCAFile holds the certificate authority to trust there, besides the system's.
	ReadyCAFile string `json:"readyCAFile,omitempty"`
	Log         string `json:"log"`
	process.Identity
}

// Load reads the state of the sandbox in a folder. Without a file it returns an error that is os.ErrNotExist.
func Load(dir string) (*State, error) {
	path := filepath.Join(dir, FileName)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the sandbox's state: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(content, s); err != nil {
		return nil, fmt.Errorf("reading the sandbox's state from %s: %w", path, err)
	}
	if s.Version != version {
		return nil, fmt.Errorf("reading the sandbox's state from %s: it has version %d, this program knows %d", path, s.Version, version)
	}
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	return s, nil
}

// New returns the state of a sandbox in which nothing was started.
func New() *State {
	return &State{Version: version, Ports: map[string]int{}}
}

// Save writes the state to a folder. A reader sees the old or the new state, never a part.
func (s *State) Save(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the sandbox's state: %w", err)
	}
	path := filepath.Join(dir, FileName)
	next := path + ".new"
	if err := os.WriteFile(next, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(fmt.Errorf("writing the sandbox's state: %w", err), os.Remove(next))
	}
	return nil
}

// Cluster returns the cluster of a name, or nil. It may be changed in place.
func (s *State) Cluster(name string) *Cluster {
	if i := slices.IndexFunc(s.Clusters, func(c Cluster) bool { return c.Name == name }); i >= 0 {
		return &s.Clusters[i]
	}
	return nil
}

// Process returns the process of a name, or nil. It may be changed in place.
func (s *State) Process(name string) *Process {
	if i := slices.IndexFunc(s.Processes, func(p Process) bool { return p.Name == name }); i >= 0 {
		return &s.Processes[i]
	}
	return nil
}

// SetProcess records a process, in place of the one of that name if there is one.
func (s *State) SetProcess(p Process) {
	if old := s.Process(p.Name); old != nil {
		*old = p
		return
	}
	s.Processes = append(s.Processes, p)
}

// Port returns the port for a purpose: the same as before, or a free one.
func (s *State) Port(purpose string) (int, error) {
	if port, ok := s.Ports[purpose]; ok {
		return port, nil
	}
	port, err := ports.Free(func(candidate int) bool {
		for _, taken := range s.Ports {
			if taken == candidate {
				return true
			}
		}
		return false
	})
	if err != nil {
		return 0, fmt.Errorf("choosing a port for %s: %w", purpose, err)
	}
	s.Ports[purpose] = port
	return port, nil
}
