// Package sandbox runs a hub and its members on one machine: it decides what has to run, and keeps track of it.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fleetwright/fleetwright/sandbox/internal/build"
	"github.com/fleetwright/fleetwright/sandbox/internal/controlplane"
	"github.com/fleetwright/fleetwright/sandbox/internal/kubeconfig"
	"github.com/fleetwright/fleetwright/sandbox/internal/lock"
	"github.com/fleetwright/fleetwright/sandbox/internal/report"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// What is in a sandbox's folder, the state file aside.
const (
	lockFile       = "lock"
	kubeconfigFile = "kubeconfig"
	logsFolder     = "logs"
	clustersFolder = "clusters"
	etcdFolder     = "etcd"
)

// ErrNone is the error when there is no sandbox in a folder.
var ErrNone = errors.New("no sandbox")

// Sandbox is a sandbox that this process may change, because it holds the sandbox's lock.
type Sandbox struct {
	dir    string
	report *report.Report
	lock   *lock.Lock

	// mu guards state, which several clusters change as they start.
	mu    sync.Mutex
	state *state.State
}

// Open takes the lock of the sandbox in a folder and reads its state, which is empty if there is no sandbox yet. The
// purpose is what others who want the lock are told; they are waited for, at most for the time given.
func Open(ctx context.Context, dir, purpose string, patience time.Duration, r *report.Report) (*Sandbox, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the sandbox's folder: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	var held *lock.Lock
	if patience > 0 {
		held, err = lock.Wait(ctx, path, purpose, patience)
	} else {
		held, err = lock.Try(path, purpose)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", dir, err)
	}
	s := &Sandbox{dir: dir, report: r, lock: held}
	s.state, err = state.Load(dir)
	if errors.Is(err, os.ErrNotExist) {
		s.state, err = state.New(), s.refuseForeignFolder()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox %s: %w", dir, err), held.Release())
	}
	return s, nil
}

// OpenExisting is Open for a sandbox that must be there.
func OpenExisting(ctx context.Context, dir, purpose string, patience time.Duration, r *report.Report) (*Sandbox, error) {
	if _, err := View(dir); err != nil {
		return nil, err
	}
	return Open(ctx, dir, purpose, patience, r)
}

// View returns the state of a sandbox for reading.
func View(dir string) (*state.State, error) {
	s, err := state.Load(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in folder %s: start one with \"sandbox up\"", ErrNone, dir)
	}
	return s, err
}

// Close gives the sandbox's lock up. What was started goes on running.
func (s *Sandbox) Close() error { return s.lock.Release() }

// Kubeconfig returns the path of the file with a context for each cluster.
func (s *Sandbox) Kubeconfig() string { return filepath.Join(s.dir, kubeconfigFile) }

// refuseForeignFolder keeps a sandbox out of a folder with other content.
func (s *Sandbox) refuseForeignFolder() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("looking into the sandbox's folder: %w", err)
	}
	for _, entry := range entries {
		if !slices.Contains(ownEntries, entry.Name()) {
			return fmt.Errorf("the folder is no sandbox but has content, for example %s: choose another", entry.Name())
		}
	}
	return nil
}

// ownEntries is all that a sandbox writes to its folder.
var ownEntries = []string{
	state.FileName, state.FileName + ".new", kubeconfigFile, kubeconfigFile + ".new",
	logsFolder, clustersFolder, etcdFolder, lockFile,
}

func (s *Sandbox) logs() string { return filepath.Join(s.dir, logsFolder) }

// save writes the state. The caller holds mu.
func (s *Sandbox) save() error { return s.state.Save(s.dir) }

// ports returns the ports for some purposes, choosing those that are not chosen yet.
func (s *Sandbox) ports(purposes ...string) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen := make([]int, len(purposes))
	for i, purpose := range purposes {
		var err error
		if chosen[i], err = s.state.Port(purpose); err != nil {
			return nil, err
		}
	}
	return chosen, s.save()
}

// plane describes a cluster's control plane.
func (s *Sandbox) plane(cluster string) (*controlplane.Plane, error) {
	ports, err := s.ports("etcd", cluster+"-apiserver", cluster+"-controller-manager", cluster+"-scheduler")
	if err != nil {
		return nil, err
	}
	return &controlplane.Plane{
		Name:                  cluster,
		Hub:                   cluster == state.Hub,
		Dir:                   filepath.Join(s.dir, clustersFolder, cluster),
		Bin:                   build.Folder(s.state.Bin, build.Kubernetes),
		Logs:                  s.logs(),
		EtcdPort:              ports[0],
		Port:                  ports[1],
		ControllerManagerPort: ports[2],
		SchedulerPort:         ports[3],
	}, nil
}

// writeKubeconfig writes the file with a context for each cluster.
func (s *Sandbox) writeKubeconfig() error {
	var files []string
	for _, cluster := range s.state.Clusters {
		files = append(files, cluster.Kubeconfig)
	}
	return kubeconfig.Merge(s.Kubeconfig(), files...)
}
