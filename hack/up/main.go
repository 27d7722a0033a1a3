// Command up starts a sandbox with the product on it, and prints what to type next; with -down it stops it all and removes
// its state. `make up` and `make down` call it.
package main

import (
	"context"
	"errors"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *root, *dir, *members, *bare, *down)
	interrupted := ctx.Err() != nil
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, explain(err, interrupted, *down))
		os.Exit(1)
	}
}

func run(ctx context.Context, root, dir string, members, bare int, down bool) error {
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
A hub and %d members are up. For kubectl and kubectl amc in your shell, type

  export KUBECONFIG=%s PATH=%s:$PATH

and follow docs/tutorials/staged-update.md. make down stops everything.
`, members+bare, fleet.Kubeconfig(), filepath.Join(root, "bin"))
	return nil
}

// explain says what became of it, and what to do.
func explain(err error, interrupted, down bool) string {
	switch {
	case interrupted && down:
		return "\nInterrupted. What is not stopped yet keeps running: make down goes on."
	case interrupted:
		return "\nInterrupted. What was started keeps running: make up goes on, make down removes it."
	case errors.Is(err, quickstart.ErrSandbox) && !down:
		return fmt.Sprintf("up: %v: see above\nWhat was started keeps running: make up tries again, and make down removes it. Fewer members need less of the\n"+
			"machine: make down, and then make up MEMBERS=2. README.md says what each needs.", err)
	default:
		return fmt.Sprintf("up: %v", err)
	}
}
