package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetwright/fleetwright/sandbox/internal/build"
	"github.com/fleetwright/fleetwright/sandbox/internal/controlplane"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// FullMember is what a member has when it is to run workloads.
var FullMember = state.Parts{ControllerManager: true, Scheduler: true, Nodes: 2, Kruise: true}

// BareMember is what a member has that is only written to: an API server alone.
var BareMember = state.Parts{}

// hubParts is what a hub has.
var hubParts = state.Parts{ControllerManager: true}

// UpOptions say what should run.
type UpOptions struct {
	// Bin is the folder of the programs.
	Bin string
	// Source is the folder that missing programs are built from. Empty means that none is missing.
	Source string
	// Members is how many members there should be at least, named member1 and so on.
	Members int
	// Full is what each of them has.
	Full state.Parts
	// Bare is how many bare members there should be at least, named on from the others.
	Bare int
	// Timeout is how long everything may take to be ready, not counting the build.
	Timeout time.Duration
}

// Up starts what does not run of a hub and its members, and waits until all of it is ready.
func (s *Sandbox) Up(ctx context.Context, o UpOptions) error {
	added, err := s.plan(o)
	if err != nil {
		return err
	}
	if err := s.useBin(ctx, o.Bin, o.Source); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not ready within %s", o.Timeout))
	defer cancel()

	begin := time.Now()
	if err := s.prepareClusters(added); err != nil {
		return err
	}
	if err := s.startEtcd(ctx); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, cluster := range s.state.Clusters {
		group.Go(func() error { return s.startCluster(groupCtx, cluster) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.startGuests(ctx); err != nil {
		return err
	}
	s.report.Line("The hub and %d members are ready after %s. Kubeconfig: %s",
		len(s.state.Clusters)-1, time.Since(begin).Round(100*time.Millisecond), s.Kubeconfig())
	return nil
}

// AddMember starts one more member, and waits until it is ready. Without a name it is named on from the others.
func (s *Sandbox) AddMember(ctx context.Context, name string, parts state.Parts, source string, timeout time.Duration) error {
	for i := 1; name == ""; i++ {
		if candidate := memberName(i); s.state.Cluster(candidate) == nil {
			name = candidate
		}
	}
	if s.state.Cluster(name) != nil {
		return fmt.Errorf("there is a cluster %s already", name)
	}
	if err := s.useBin(ctx, s.state.Bin, source); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready within %s", timeout))
	defer cancel()
	if err := s.prepareClusters([]state.Cluster{{Name: name, Parts: parts}}); err != nil {
		return err
	}
	if err := s.startEtcd(ctx); err != nil {
		return err
	}
	return s.startCluster(ctx, *s.state.Cluster(name))
}

// plan returns the clusters that are missing. A member that is there must be as it is asked for.
func (s *Sandbox) plan(o UpOptions) ([]state.Cluster, error) {
	if o.Members < 0 || o.Bare < 0 || o.Full.Nodes < 0 {
		return nil, errors.New("numbers of members and nodes must not be negative")
	}
	wanted := []state.Cluster{{Name: state.Hub, Parts: hubParts}}
	for i := range o.Members {
		wanted = append(wanted, state.Cluster{Name: memberName(i + 1), Parts: o.Full})
	}
	for i := range o.Bare {
		wanted = append(wanted, state.Cluster{Name: memberName(o.Members + i + 1), Parts: BareMember})
	}
	var added []state.Cluster
	for _, w := range wanted {
		switch existing := s.state.Cluster(w.Name); {
		case existing == nil:
			added = append(added, w)
		case existing.Parts != w.Parts:
			return nil, fmt.Errorf("%s was started with %s and is now asked for with %s: take the sandbox down first",
				w.Name, describe(existing.Parts), describe(w.Parts))
		}
	}
	return added, nil
}

func memberName(number int) string { return "member" + strconv.Itoa(number) }

// describe names what a cluster has besides its API server.
func describe(p state.Parts) string {
	if p == BareMember {
		return "an API server alone"
	}
	return fmt.Sprintf("controllerManager=%t scheduler=%t nodes=%d kruise=%t", p.ControllerManager, p.Scheduler, p.Nodes, p.Kruise)
}

// useBin builds what is missing of the programs and records where they are.
func (s *Sandbox) useBin(ctx context.Context, bin, source string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return fmt.Errorf("finding the folder for programs: %w", err)
	}
	s.mu.Lock()
	s.state.Bin = bin
	err = s.save()
	s.mu.Unlock()
	if err != nil || source == "" {
		return err
	}
	return build.Run(ctx, build.Options{Source: source, Bin: bin, Report: s.report})
}

// prepareClusters writes the certificates of clusters and records them.
func (s *Sandbox) prepareClusters(clusters []state.Cluster) error {
	for _, cluster := range clusters {
		plane, err := s.plane(cluster.Name)
		if err != nil {
			return err
		}
		if err := plane.WriteFiles(); err != nil {
			return fmt.Errorf("preparing cluster %s: %w", cluster.Name, err)
		}
		cluster.Server = plane.URL()
		cluster.CAFile = plane.CAFile()
		cluster.Kubeconfig = plane.AdminKubeconfig()
		s.mu.Lock()
		s.state.Clusters = append(s.state.Clusters, cluster)
		err = s.save()
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return s.writeKubeconfig()
}

func (s *Sandbox) startEtcd(ctx context.Context) error {
	ports, err := s.ports("etcd", "etcd-peer")
	if err != nil {
		return err
	}
	bin := build.Folder(s.state.Bin, build.Kubernetes)
	return s.ensure(ctx, controlplane.Etcd(bin, filepath.Join(s.dir, etcdFolder), s.logs(), ports[0], ports[1]))
}

// startGuests starts those processes of users that do not run.
func (s *Sandbox) startGuests(ctx context.Context) error {
	for _, p := range s.state.Processes {
		if !p.Guest {
			continue
		}
		if err := s.ensure(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
