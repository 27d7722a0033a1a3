// Command sandbox runs a hub and its members on one machine: real Kubernetes control planes, built from source, without
// containers. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/fleetwright/fleetwright/sandbox/internal/cli"
)

func main() {
	// Client libraries complain of connections that break while servers start. What matters is in the errors.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.NewCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
