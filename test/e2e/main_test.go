// Package e2e runs the product as its users do: real control planes, the real programs, kubectl's own verbs. `make
// test-e2e` builds what it needs and starts a sandbox of its own.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetwright/fleetwright/internal/quickstart"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// fleet is shared by the tests of this package, which use namespaces and names of their own. Tests that kill servers
// start another one.
var fleet *quickstart.Fleet

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(klog.Background()) // what API servers warn of
	fleet = &quickstart.Fleet{
		Root: framework.Root(), Dir: filepath.Join(framework.Root(), ".sandbox-e2e"), Members: 3, HeartbeatSeconds: 2, Out: os.Stderr,
		HubArgs: []string{"--skipped-namespaces", "skipped", "--descheduling-interval", "3s"}, AgentArgs: []string{"--unschedulable-after", "2s"},
	}
	// With E2E_KEEP the sandbox is taken as it is, and stays: for whoever writes a test and runs it again and again.
	if os.Getenv("E2E_KEEP") == "" {
		defer func() {
			if err := fleet.Down(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, "stop the sandbox:", err)
			}
		}()
		// What a run that was broken off has left behind must not decide about this one.
		if err := fleet.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "clear the sandbox away:", err)
			return 1
		}
	}
	if err := fleet.Up(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "start the sandbox:", err)
		return 1
	}
	return m.Run()
}

// clientFor returns the administrator's client for a context: hub, member1 and so on.
func clientFor(t testing.TB, f *quickstart.Fleet, context string) client.WithWatch {
	t.Helper()
	c, _, err := f.Client(context)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
