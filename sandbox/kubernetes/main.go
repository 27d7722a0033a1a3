// Command fleetwright-k8s is a whole Kubernetes control plane in one program. It plays the tool it is called as, so that
// symbolic links named etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl share one file: the
// packages they have in common are compiled, linked and kept in memory once.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build information as a metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// tools maps the name a tool is called by to a function that runs it with os.Args and returns the exit code.
var tools = map[string]func() int{
	"etcd": func() int {
		etcdmain.Main(os.Args)
		return 0
	},
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubectl":                 runKubectl,
}

func main() {
	run, ok := tools[filepath.Base(os.Args[0])]
	if !ok && len(os.Args) > 1 {
		// Called by its own name: the tool is the first argument.
		if run, ok = tools[os.Args[1]]; ok {
			os.Args = os.Args[1:]
		}
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "usage: %s TOOL [ARGS...], or call it through a symbolic link named after the tool; tools: %s\n",
			filepath.Base(os.Args[0]), strings.Join(slices.Sorted(maps.Keys(tools)), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		// Prints in kubectl's own style and exits with its code.
		kubectlutil.CheckErr(err)
	}
	return 0
}
