// Command up starts a sandbox with the product on it, and prints what to type next; with -down it stops it all and removes
// its state. `make up` and `make down` call it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/fleetwright/fleetwright/internal/quickstart"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	root := flag.String("root", ".", "the repository's root")
	dir := flag.String("dir", ".sandbox", "where the sandbox keeps its state")
	members := flag.Int("members", 3, "how many members")
	bare := flag.Int("bare", 0, "how many further members with an API server and an agent alone")
	down := flag.Bool("down", false, "stop it all and remove its state")
	flag.Parse()
	log.SetLogger(klog.Background()) // what API servers warn of
	if err := run(*root, *dir, *members, *bare, *down); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func run(root, dir string, members, bare int, down bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find the repository's root: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find the sandbox's folder: %w", err)
	}
	fleet := &quickstart.Fleet{Root: root, Dir: dir, Members: members, BareMembers: bare, Out: os.Stdout}
	if down {
		return fleet.Down(ctx)
	}
	if err := fleet.Up(ctx); err != nil {
		return err
	}
	fmt.Printf(`
A hub and %d members are up. Type next:

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get memberclusters
  kubectl amc run --help

docs/tutorials/staged-update.md takes it from here; make down stops everything.
`, members+bare, fleet.Kubeconfig(), filepath.Join(root, "bin"))
	return nil
}
