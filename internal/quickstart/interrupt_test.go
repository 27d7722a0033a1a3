package quickstart

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The sandbox's command is interrupted and not killed: it writes down what it has started.
func TestInterrupted(t *testing.T) {
	f := &Fleet{Root: t.TempDir(), Dir: t.TempDir()}
	bin := filepath.Join(f.Root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/usr/bin/env bash\ntrap 'echo wrote it down; exit 1' INT\necho started\nwhile :; do read -rt 0.1 <> <(:) || :; done\n"
	if err := os.WriteFile(filepath.Join(bin, "sandbox"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	f.Out = writer
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		ended <- f.Sandbox(ctx, "up")
		writer.Close()
	}()
	said := bufio.NewScanner(reader)
	if !said.Scan() || said.Text() != "started" {
		t.Fatalf("the command said %q: %v", said.Text(), said.Err())
	}
	interrupt()
	var rest []string
	for said.Scan() {
		rest = append(rest, said.Text())
	}
	if got := strings.Join(rest, "\n"); got != "wrote it down" {
		t.Errorf("interrupted, the command said %q", got)
	}
	if err := <-ended; !errors.Is(err, ErrSandbox) {
		t.Errorf("got %v, want that the sandbox's command failed", err)
	}
}
