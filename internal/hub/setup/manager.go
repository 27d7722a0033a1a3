package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	inventoryv1alpha1 "github.com/fleetwright/fleetwright/api/inventory/v1alpha1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/clusterprofile"
	"github.com/fleetwright/fleetwright/internal/hub/joining"
	"github.com/fleetwright/fleetwright/internal/hub/membercluster"
	"github.com/fleetwright/fleetwright/internal/placement"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options are what an operator may set.
type Options struct {
	// MetricsAddress and ProbeAddress are where metrics and health are served; "0" serves none.
	MetricsAddress, ProbeAddress string
	// LeaderElection lets one of several hubs work at a time, by a Lease in LeaderElectionNamespace.
	LeaderElection          bool
	LeaderElectionNamespace string
	// ForceLeaveAfter is how long a deleted MemberCluster waits for its agent to leave. 0 is the default, 15 minutes; less is
	// an error.
	ForceLeaveAfter time.Duration
	// SkippedNamespaces are never placed, besides those that are reserved.
	SkippedNamespaces Namespaces
	// HubRunsWorkloads tells that the hub's cluster runs workloads of its own: what it binds to itself is then not placed.
	HubRunsWorkloads bool
	// DeschedulingInterval is how often replicas are moved that find no node in their cluster. Default: 2 minutes.
	DeschedulingInterval time.Duration
	// ClusterProfileNamespace is where the ClusterProfiles of the members are. Default: fleetwright-system.
	ClusterProfileNamespace string
}

// rules are the rules of what may be placed.
func (o *Options) rules() placement.Rules {
	return placement.Rules{SkippedNamespaces: o.SkippedNamespaces, HubRunsWorkloads: o.HubRunsWorkloads}
}

// Manager makes the manager with every controller of the hub.
func Manager(config *rest.Config, options Options) (ctrl.Manager, error) {
	if options.ForceLeaveAfter < 0 {
		return nil, fmt.Errorf("--force-leave-after=%s: it must not be less than 0; give the time that a deleted MemberCluster waits for its agent, such as 15m", options.ForceLeaveAfter)
	}
	options.ClusterProfileNamespace = cmp.Or(options.ClusterProfileNamespace, "fleetwright-system")
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's priority and fairness decides who waits, not a limit on our side
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        Scheme(),
		Cache:                         cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: cachedParts(options)},
		Metrics:                       server.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:        options.ProbeAddress,
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              "fleetwright-hub",
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the hub's manager: %w", err)
	}
	if err := manager.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add the health check: %w", err)
	}
	if err := manager.AddReadyzCheck("caches", synced(manager.GetCache())); err != nil {
		return nil, fmt.Errorf("add the readiness check: %w", err)
	}
	if err := addControllers(manager, options); err != nil {
		return nil, err
	}
	return manager, nil
}

// probeTime is how long a readiness check may take; who asks waits a second by default.
const probeTime = 500 * time.Millisecond

// synced checks that the cache has read all that it is to hold: until then no controller works.
func synced(c cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), probeTime)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the hub's API server has not been read yet")
		}
		return nil
	}
}

// Scheme knows the kinds that the hub reads and writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(placementv1.AddToScheme(s))
	utilruntime.Must(clusterv1.AddToScheme(s))
	utilruntime.Must(policyv1alpha1.AddToScheme(s))
	utilruntime.Must(inventoryv1alpha1.AddToScheme(s))
	return s
}

// cachedParts says of which kinds the cache holds a part only.
func cachedParts(options Options) map[client.Object]cache.ByObject {
	parts := withoutContent()
	maps.Copy(parts, membercluster.CacheByObject())
	maps.Copy(parts, joining.CacheByObject())
	maps.Copy(parts, clusterprofile.CacheByObject(options.ClusterProfileNamespace))
	return parts
}

// withoutContent keeps manifests, snapshot content and the statuses of placed objects out of the cache, so that the hub's
// memory does not grow with them. Who needs content reads it live.
func withoutContent() map[client.Object]cache.ByObject {
	strip := func(object any) (any, error) {
		switch o := object.(type) {
		case *placementv1.Work:
			o.ManagedFields = nil
			o.Spec.Workload.Manifests = nil
			if o.Labels[placementv1.LabelParentObject] != "" { // what is summed up on the hub
				return object, nil
			}
			for i := range o.Status.ManifestConditions {
				o.Status.ManifestConditions[i].BackReportedStatus = nil
			}
		case placementv1.ResourceSnapshotObject:
			o.SetManagedFields(nil)
			o.ResourceSnapshotSpec().SelectedResources = nil
		}
		return object, nil
	}
	return map[client.Object]cache.ByObject{
		&placementv1.Work{}:                    {Transform: strip},
		&placementv1.ClusterResourceSnapshot{}: {Transform: strip},
		&placementv1.ResourceSnapshot{}:        {Transform: strip},
	}
}
