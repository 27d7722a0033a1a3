package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/apply"
	"github.com/fleetwright/fleetwright/internal/agent/heartbeat"
	"github.com/fleetwright/fleetwright/internal/agent/properties"
	"github.com/fleetwright/fleetwright/internal/placement"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// memberships serves one membership after the other: when a cluster has left, it may become a member again.
func (a *Agent) memberships(ctx context.Context) error {
	hub := a.identity.Config()
	scheme, mapper, err := hubKinds()
	if err != nil {
		return err
	}
	reader, err := client.New(hub, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("make a client for the hub: %w", err)
	}
	var retries retries
	for {
		key := client.ObjectKey{Namespace: placement.MemberNamespace(a.ClusterName), Name: a.ClusterName}
		if err := a.persist(ctx, "read what the hub asks", a.identity.Changed(), func() error { return reader.Get(ctx, key, &clusterv1.InternalMemberCluster{}) }); err != nil {
			return ended(ctx, err)
		}
		a.servers.ready.Store(true)
		began := a.Clock.Now()
		why, err := a.membership(ctx, hub, scheme, mapper)
		a.servers.ready.Store(false)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it ended because it was told to
		}
		pause, news := retries.next(a.Clock.Since(began), err)
		switch {
		case err == nil:
			a.Log.Info("the membership is over; waits for another", "why", why)
		case news:
			a.Log.Error(err, "begins again, ever more seldom while this goes on")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.Clock.After(pause):
		}
	}
}

// retries paces what fails at once, again and again.
type retries struct {
	pause time.Duration
	told  string
}

// next returns how long to wait after something ended, with an error or without: twice as long each time while it fails in
// less than the longest pause. It tells whether the error is another than the last.
func (r *retries) next(lasted time.Duration, err error) (pause time.Duration, news bool) {
	if err == nil || lasted > longestRetry {
		*r = retries{}
	}
	r.pause = max(shortestRetry, min(2*r.pause, longestRetry))
	if err == nil {
		return r.pause, false
	}
	news = err.Error() != r.told
	r.told = err.Error()
	return r.pause, news
}

// membership serves one membership, and returns why it is over.
func (a *Agent) membership(ctx context.Context, hub *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper) (why string, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	mgr, err := a.manager(hub, scheme, mapper)
	if err != nil {
		return "", err
	}
	workloads, err := apply.New(apply.Options{
		Member: a.member, Namespace: placement.MemberNamespace(a.ClusterName), Clock: a.Clock,
		Recorder: mgr.GetEventRecorder("fleetwright-agent"), UnschedulableAfter: a.UnschedulableAfter,
	})
	if err != nil {
		return "", err
	}
	if err := workloads.SetupWithManager(mgr); err != nil {
		return "", err
	}
	err = heartbeat.Add(mgr, heartbeat.Options{
		Cluster: a.ClusterName, ClusterID: a.clusterID, Member: a.member,
		Properties: a.properties(), Workloads: workloads, Clock: a.Clock,
		Over: func(why string) { stop(errors.New(why)) },
	})
	if err != nil {
		return "", err
	}
	if err := mgr.Start(ctx); err != nil {
		return "", fmt.Errorf("serve the membership: %w", err)
	}
	return context.Cause(ctx).Error(), nil
}

// properties finds out about the cluster. A provider that knows more is added here.
func (a *Agent) properties() *properties.Collector {
	return properties.NewCollector(a.Clock, &properties.Namespaces{Member: a.member, Clock: a.Clock},
		properties.NewBuiltin(a.member, a.Clock), &properties.Version{Member: a.member, Clock: a.Clock})
}

// manager sees nothing of the hub but the cluster's own namespace.
func (a *Agent) manager(hub *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper) (ctrl.Manager, error) {
	hub = rest.CopyConfig(hub)
	hub.QPS = -1 // the hub's priority and fairness decides who waits
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme:         scheme,
		MapperProvider: mapperProvider(mapper),
		Logger:         a.Log,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{placement.MemberNamespace(a.ClusterName): {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
		Metrics:                server.Options{BindAddress: "0"}, // served by the process, which outlives a membership
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)}, // a later membership has the same controllers
	})
	if err != nil {
		return nil, fmt.Errorf("make the agent's manager: %w", err)
	}
	return mgr, nil
}

// hubKinds are the kinds that an agent knows of the hub, and where they are found: nothing need be discovered.
func hubKinds() (*runtime.Scheme, meta.RESTMapper, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(placementv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		return nil, nil, fmt.Errorf("register API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Work", "WorkList"} { // a cache looks lists up by their own kind
		mapper.Add(placementv1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(clusterv1.GroupVersion.WithKind("InternalMemberCluster"), meta.RESTScopeNamespace)
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	return scheme, mapper, nil
}
