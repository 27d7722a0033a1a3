package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fleetwright/fleetwright/sandbox/internal/lock"
	"github.com/fleetwright/fleetwright/sandbox/internal/report"
)

// Options say what to build from where to where.
type Options struct {
	// Source is the folder of the sandbox's sources, which has a folder with a Go module for each target.
	Source string
	// Bin is the folder that the programs go to.
	Bin string
	// Only names the targets to build. None means all.
	Only []string
	// Report is told how far the build is.
	Report *report.Report
}

// buildFlags are the flags of every build in the project, so that a package that several programs use is compiled once.
var buildFlags = []string{"-trimpath", "-buildvcs=false"}

type builder struct {
	Options
}

// Run builds what is missing or was built from other sources. When it is interrupted, all that was compiled so far
// stays in Go's build cache, and the next run goes on from there.
func Run(ctx context.Context, options Options) error {
	wanted, err := choose(options.Only)
	if err != nil {
		return err
	}
	b := &builder{Options: options}
	if err := os.MkdirAll(b.Bin, 0o755); err != nil {
		return fmt.Errorf("creating the folder for programs: %w", err)
	}
	held, err := b.lock(ctx)
	if err != nil {
		return err
	}
	for _, t := range wanted {
		if err = b.build(ctx, t); err != nil {
			b.Report.Clear()
			err = fmt.Errorf("building %s: %w", t.name, err)
			if ctx.Err() != nil {
				err = fmt.Errorf("%w (run it again to go on: what is compiled is kept)", err)
			}
			break
		}
	}
	return errors.Join(err, held.Release())
}

// choose returns the targets of some names with all that they need, in building order.
func choose(names []string) ([]target, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		i := slices.IndexFunc(targets, func(t target) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no build target %q: there are %s, %s and %s", name, Kubernetes, KWOK, Kruise)
		}
		wanted[name] = true
		for _, need := range targets[i].needs {
			wanted[need] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return len(names) > 0 && !wanted[t.name] }), nil
}

// lock waits for other builds into the same folder.
func (b *builder) lock(ctx context.Context) (*lock.Lock, error) {
	path := filepath.Join(b.Bin, ".build.lock")
	const purpose = "building the sandbox's programs"
	held, err := lock.Try(path, purpose)
	if errors.Is(err, lock.ErrHeld) {
		b.Report.Line("Waiting for another build: %v", err)
		held, err = lock.Wait(ctx, path, purpose, time.Hour)
	}
	return held, err
}

func (b *builder) build(ctx context.Context, t target) error {
	source := filepath.Join(b.Source, t.name)
	version, err := b.goTool(ctx, source, nil, "list", "-m", "-f", "{{.Version}}", t.module)
	if err != nil {
		return err
	}
	goVersion, err := b.goTool(ctx, source, nil, "env", "GOVERSION")
	if err != nil {
		return err
	}
	ldflags := "-s -w"
	if t.ldflags != nil {
		ldflags += " " + t.ldflags(version)
	}
	flags := append(slices.Clone(buildFlags), "-ldflags="+ldflags)

	folder := Folder(b.Bin, t.name)
	stamp, err := newStamp(source, append([]string{goVersion, t.pkg}, flags...)...)
	if err != nil {
		return err
	}
	program := filepath.Join(folder, t.program)
	if stamp.matches(folder, program) {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("creating the folder for its program: %w", err)
	}
	begin := time.Now()
	if err := b.compile(ctx, t, source, program, version, flags); err != nil {
		return err
	}
	moduleDir, err := b.goTool(ctx, source, nil, "list", "-m", "-f", "{{.Dir}}", t.module)
	if err != nil {
		return err
	}
	if err := t.finish(ctx, b, moduleDir); err != nil {
		return err
	}
	b.Report.Line("Built %s %s in %s", t.name, version, time.Since(begin).Round(time.Second))
	return stamp.write(folder)
}

// compile compiles and links a program. It replaces the old one only when the new one is whole.
func (b *builder) compile(ctx context.Context, t target, source, program, version string, flags []string) error {
	b.Report.Line("Building %s %s from source: the first time takes some minutes", t.name, version)
	p := newProgress(b.Report, t.name, time.Now)
	stale, err := b.goTool(ctx, source, p.line, append(append([]string{"list", "-deps"}, buildFlags...),
		"-f", "{{if .Stale}}{{.ImportPath}}{{end}}", t.pkg)...)
	if err != nil {
		return err
	}
	p.total = len(strings.Fields(stale))

	next := filepath.Join(filepath.Dir(program), "."+t.program+".new")
	args := append(append([]string{"build", "-v"}, flags...), "-o", next, t.pkg)
	if _, err := b.goTool(ctx, source, p.line, args...); err != nil {
		return err
	}
	if err := os.Rename(next, program); err != nil {
		return fmt.Errorf("putting the program in place: %w", err)
	}
	return nil
}

// kubernetesVersion sets the version that Kubernetes reports. Clients misbehave with a server of version 0.0.0.
func kubernetesVersion(version string) string {
	const variable = "-X k8s.io/component-base/version."
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return variable + "gitVersion=" + version + " " + variable + "gitMajor=" + major + " " + variable + "gitMinor=" + minor
}
