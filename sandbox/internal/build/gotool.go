package build

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// goTool runs a command of the Go tool in a module and returns its output. Each line that it writes to standard error
// goes to line, which returns whether it understood it; those that are not understood are in the error.
func (b *builder) goTool(ctx context.Context, module string, line func(string) bool, args ...string) (string, error) {
	return b.output(ctx, module, line, "go", args...)
}

func (b *builder) output(ctx context.Context, dir string, line func(string) bool, name string, args ...string) (string, error) {
	what := name + " " + args[0]
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off")
	// The Go tool cleans up when it is interrupted, but not when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second

	var out strings.Builder
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", fmt.Errorf("running %s in %s: %w", what, dir, err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("running %s in %s: %w", what, dir, err)
	}
	complaints := readLines(stderr, line)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("running %s in %s: %w", what, dir, context.Cause(ctx))
		}
		return "", fmt.Errorf("running %s in %s: %w\n%s", what, dir, err, complaints)
	}
	return strings.TrimSpace(out.String()), nil
}

// readLines passes on each line and returns those that were not understood.
func readLines(from io.Reader, line func(string) bool) string {
	var rest strings.Builder
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		if line == nil || !line(scanner.Text()) {
			rest.WriteString(scanner.Text() + "\n")
		}
	}
	// A line too long for the scanner: go on reading, or the program would wait for ever to write.
	_, _ = io.Copy(&rest, from)
	return rest.String()
}
