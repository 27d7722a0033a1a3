// Command fleetwright-hub runs the controllers of the hub.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fleetwright/fleetwright/internal/hub/setup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/client/config" // the flag --kubeconfig
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	var options setup.Options
	flag.StringVar(&options.MetricsAddress, "metrics-bind-address", "127.0.0.1:8080", "where metrics are served, to anybody who reaches it; 0 serves none")
	flag.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served; 0 serves none")
	flag.BoolVar(&options.LeaderElection, "leader-elect", false, "let one of several hubs work at a time")
	flag.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "fleetwright-system", "where the Lease of the leader is")
	flag.DurationVar(&options.ForceLeaveAfter, "force-leave-after", 15*time.Minute, "how long a deleted MemberCluster waits for its agent to leave; 0 is 15m")
	flag.DurationVar(&options.DeschedulingInterval, "descheduling-interval", 2*time.Minute, "how often replicas of divided workloads are moved that find no node in their cluster")
	flag.Var(&options.SkippedNamespaces, "skipped-namespaces", "namespaces that are never placed, with commas between, besides those that are reserved")
	flag.BoolVar(&options.HubRunsWorkloads, "hub-runs-workloads", false, "the hub's cluster runs workloads of its own: PersistentVolumeClaims, which it binds to its own volumes, are not placed")
	flag.StringVar(&options.ClusterProfileNamespace, "cluster-profile-namespace", "fleetwright-system", "where the ClusterProfile of each member is kept")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	logger := zap.New(zap.UseFlagOptions(&logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client")) // what client-go and the leader election say, in the same form

	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, "fleetwright-hub:", err)
		os.Exit(1)
	}
}

func run(options setup.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("read how to reach the hub's API server: %w", err)
	}
	manager, err := setup.Manager(config, options)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
