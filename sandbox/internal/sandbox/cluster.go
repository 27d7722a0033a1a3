package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetwright/fleetwright/sandbox/internal/build"
	"github.com/fleetwright/fleetwright/sandbox/internal/controlplane"
	"github.com/fleetwright/fleetwright/sandbox/internal/kruise"
	"github.com/fleetwright/fleetwright/sandbox/internal/kwok"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// clusterStart is one cluster on its way to being ready.
type clusterStart struct {
	*Sandbox
	cluster state.Cluster
	plane   *controlplane.Plane
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// startCluster starts what does not run of a cluster and waits until all of it is ready.
func (s *Sandbox) startCluster(ctx context.Context, cluster state.Cluster) error {
	begin := time.Now()
	plane, err := s.plane(cluster.Name)
	if err != nil {
		return err
	}
	if err := s.ensure(ctx, plane.APIServer()); err != nil {
		return err
	}
	c := &clusterStart{Sandbox: s, cluster: cluster, plane: plane}
	if err := c.connect(); err != nil {
		return err
	}
	if err := plane.Prepare(ctx, c.client); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, step := range []struct {
		wanted bool
		start  func(context.Context) error
	}{
		{cluster.Parts.ControllerManager, c.startControllerManager},
		{cluster.Parts.Scheduler, c.startScheduler},
		{cluster.Parts.Nodes > 0, c.startNodes},
		{cluster.Parts.Kruise, c.startKruise},
	} {
		if step.wanted {
			group.Go(func() error { return step.start(groupCtx) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.report.Line("%s is ready after %s", cluster.Name, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

func (c *clusterStart) connect() error {
	config, err := c.plane.RootConfig()
	if err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("preparing access to cluster %s: %w", c.cluster.Name, err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("preparing access to cluster %s: %w", c.cluster.Name, err)
	}
	return nil
}

func (c *clusterStart) startControllerManager(ctx context.Context) error {
	if err := c.ensure(ctx, c.plane.ControllerManager()); err != nil {
		return err
	}
	return c.plane.WaitUsable(ctx, c.client)
}

func (c *clusterStart) startScheduler(ctx context.Context) error {
	return c.ensure(ctx, c.plane.Scheduler())
}

func (c *clusterStart) startNodes(ctx context.Context) error {
	name, count := c.cluster.Name, c.cluster.Parts.Nodes
	if err := kwok.EnsureNodes(ctx, c.client, name, count); err != nil {
		return err
	}
	kubeconfig, err := c.plane.EnsureAddOnKubeconfig("kwok")
	if err != nil {
		return err
	}
	ports, err := c.ports(name + "-kwok")
	if err != nil {
		return err
	}
	bin := build.Folder(c.state.Bin, build.KWOK)
	if err := c.ensure(ctx, kwok.Process(name, bin, c.plane.Dir, c.logs(), kubeconfig, ports[0])); err != nil {
		return err
	}
	return kwok.WaitNodesReady(ctx, c.client, name, count)
}

func (c *clusterStart) startKruise(ctx context.Context) error {
	name := c.cluster.Name
	bin := build.Folder(c.state.Bin, build.Kruise)
	if err := kruise.Install(ctx, c.dynamic, filepath.Join(bin, kruise.ManifestsFile)); err != nil {
		return fmt.Errorf("installing Kruise Rollouts in cluster %s: %w", name, err)
	}
	kubeconfig, err := c.plane.EnsureAddOnKubeconfig("kruise")
	if err != nil {
		return err
	}
	ports, err := c.ports(name+"-kruise-webhook", name+"-kruise-health", name+"-kruise-metrics")
	if err != nil {
		return err
	}
	own := kruise.Ports{Webhook: ports[0], Health: ports[1], Metrics: ports[2]}
	p, err := c.start(kruise.Process(name, bin, c.plane.Dir, c.logs(), kubeconfig, own))
	if err != nil {
		return err
	}
	return await(ctx, p, func(ctx context.Context) error { return kruise.Probe(ctx, c.dynamic) })
}
