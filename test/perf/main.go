// Command perf measures the product on a sandbox of ten real members and prints a table. It never fails on a time:
// figures are for people to compare. `make bench` calls it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/fleetwright/fleetwright/internal/quickstart"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// figure is one measured row.
type figure struct{ what, budget, measured string }

// bench is what the scenarios share.
type bench struct {
	fleet   *quickstart.Fleet
	hub     client.WithWatch
	members map[string]client.WithWatch
	writes  *writeCounter
	rounds  int
	silence time.Duration
	figures []figure
	// details are what the writes of a run consist of.
	details []string
}

func main() {
	root := flag.String("root", ".", "the repository's root")
	members := flag.Int("members", 10, "how many members; they have an API server and an agent alone")
	rounds := flag.Int("rounds", 5, "how often each time is taken; the median is printed")
	only := flag.String("only", "", "the one scenario to measure: runs, rolling, memory, idle or bulk; all without it")
	silence := flag.Duration("silence", 5*time.Minute, "how long the idle hub is watched")
	flag.Parse()
	log.SetLogger(klog.Background()) // what API servers warn of
	if err := run(*root, *only, *members, *rounds, *silence); err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

func run(root, only string, members, rounds int, silence time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find the repository's root: %w", err)
	}
	b := &bench{
		fleet:   &quickstart.Fleet{Root: root, Dir: filepath.Join(root, ".sandbox-bench"), BareMembers: members, Out: os.Stderr},
		members: map[string]client.WithWatch{}, rounds: rounds, silence: silence,
	}
	defer func() {
		if err := b.fleet.Down(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintln(os.Stderr, "stop the sandbox:", err)
		}
	}()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for _, scenario := range []struct {
		name    string
		measure func(context.Context) error
	}{{"runs", b.updateRuns}, {"rolling", b.rollingUpdates}, {"rolling", b.drift}, {"memory", b.memory}, {"idle", b.idle}, {"policies", b.policies}, {"bulk", b.bulk}} {
		if only != "" && scenario.name != only {
			continue
		}
		if err := scenario.measure(ctx); err != nil {
			return err
		}
	}
	return b.print()
}

func (b *bench) prepare(ctx context.Context) error {
	if err := b.fleet.Up(ctx); err != nil {
		return err
	}
	hub, config, err := b.fleet.Client("hub")
	if err != nil {
		return err
	}
	b.hub = hub
	if b.writes, err = newWriteCounter(config); err != nil {
		return err
	}
	for _, name := range b.fleet.Names() {
		if b.members[name], _, err = b.fleet.Client(name); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) add(what, budget, format string, args ...any) {
	b.figures = append(b.figures, figure{what, budget, fmt.Sprintf(format, args...)})
	fmt.Fprintf(os.Stderr, "%s: %s\n", what, b.figures[len(b.figures)-1].measured)
}

func (b *bench) print() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tBUDGET\tMEASURED")
	for _, f := range b.figures {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.what, f.budget, f.measured)
	}
	if len(b.details) == 0 {
		return w.Flush()
	}
	fmt.Fprintln(w, "\nWRITES OF A RUN\tRANGE\tVERB\tRESOURCE\tBY")
	for _, line := range b.details {
		fmt.Fprintln(w, line)
	}
	return w.Flush()
}
