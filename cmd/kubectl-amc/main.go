// Command kubectl-amc is a plugin of kubectl for the fleet: kubectl amc.
package main

import (
	"fmt"
	"os"

	"github.com/fleetwright/fleetwright/internal/cli"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if err := cli.NewCommand(streams).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
