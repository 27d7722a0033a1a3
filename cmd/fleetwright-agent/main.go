// Command fleetwright-agent makes the cluster that it runs in a member of a fleet.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fleetwright/fleetwright/internal/agent/setup"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	o := setup.Options{Clock: clock.RealClock{}}
	flag.StringVar(&o.ClusterName, "cluster-name", os.Getenv("MEMBER_CLUSTER_NAME"), "the name of the MemberCluster on the hub")
	flag.StringVar(&o.HubURL, "hub-url", os.Getenv("HUB_SERVER_URL"), "the address of the hub's API server")
	flag.StringVar(&o.HubCAFile, "hub-ca", "", "a file with the hub's CA certificates in PEM; without it the system's are used")
	flag.StringVar(&o.BootstrapTokenFile, "bootstrap-token-file", "", "a file with a token of the cluster's bootstrap account, good for one certificate")
	flag.StringVar(&o.TokenFile, "token-file", "", "a file with a token to sign in with instead of a certificate (spec.identity); it is read again when it changes")
	flag.StringVar(&o.MemberKubeconfig, "member-kubeconfig", "", "how to reach the cluster; not needed inside it")
	flag.StringVar(&o.CredentialsDir, "credentials-dir", "", "a folder to keep the certificate in, instead of a Secret")
	flag.StringVar(&o.Namespace, "namespace", "fleetwright-system", "the agent's namespace in the cluster, with the Secret that keeps the certificate")
	flag.DurationVar(&o.CertificateLife, "certificate-life", 0, "how long a certificate is asked to live; 0 is the longest that the hub approves, 7 days")
	flag.DurationVar(&o.UnschedulableAfter, "unschedulable-after", 30*time.Second, "how long pods of a divided workload must have found no node for the hub to look for another cluster")
	flag.StringVar(&o.MetricsAddress, "metrics-bind-address", "127.0.0.1:8080", "where metrics are served, to anybody who reaches it; 0 serves none")
	flag.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served; 0 serves none")
	logging := zap.Options{StacktraceLevel: zapcore.PanicLevel} // an error's own words say where it comes from
	logging.BindFlags(flag.CommandLine)
	flag.Parse()

	o.Log = zap.New(zap.UseFlagOptions(&logging))
	ctrl.SetLogger(o.Log)
	klog.SetLogger(o.Log.WithName("client"))
	setup.LimitMemory()
	if err := setup.Run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "fleetwright-agent:", err)
		os.Exit(1)
	}
}
