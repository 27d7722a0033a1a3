// Package build compiles what a sandbox runs from the sources of public Go modules.
package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fleetwright/fleetwright/sandbox/internal/kruise"
	"github.com/fleetwright/fleetwright/sandbox/internal/kwok"
)

// Names of the targets.
const (
	Kubernetes = "kubernetes"
	KWOK       = "kwok"
	Kruise     = "kruise"
)

// folders are where the targets go among the programs.
var folders = map[string]string{Kubernetes: "k8s", KWOK: "kwok", Kruise: "kruise"}

// Folder returns the folder of a target among the programs.
func Folder(bin, name string) string { return filepath.Join(bin, folders[name]) }

// target is one program and what belongs beside it.
type target struct {
	// name is also the folder of its module among the sandbox's sources.
	name string
	// program is its file name there.
	program string
	// module is the public module that it is built from, pkg the package to build.
	module, pkg string
	// needs are targets that must be built before.
	needs []string
	// ldflags returns what else to tell the linker, given the version of the public module. It may be missing.
	ldflags func(version string) string
	// finish adds what belongs beside the program. The source is the folder of the public module.
	finish func(ctx context.Context, b *builder, source string) error
}

// targets are all targets, in the order in which they are built.
var targets = []target{
	{
		name:    Kubernetes,
		program: "fleetwright-k8s",
		module:  "k8s.io/kubernetes",
		pkg:     ".",
		ldflags: kubernetesVersion,
		finish:  linkKubernetesTools,
	},
	{
		name:    KWOK,
		program: "kwok",
		module:  "sigs.k8s.io/kwok",
		pkg:     "sigs.k8s.io/kwok/cmd/kwok",
		finish:  copyStages,
	},
	{
		name:    Kruise,
		program: "rollouts",
		module:  "github.com/openkruise/rollouts",
		pkg:     "github.com/openkruise/rollouts",
		needs:   []string{Kubernetes},
		finish:  renderManifests,
	},
}

// kubernetesTools are the names that the Kubernetes program is called by.
var kubernetesTools = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

// linkKubernetesTools gives the Kubernetes program its names. kubectl gets one among the programs for users as well.
func linkKubernetesTools(_ context.Context, b *builder, _ string) error {
	folder := Folder(b.Bin, Kubernetes)
	for _, tool := range kubernetesTools {
		if err := link("fleetwright-k8s", filepath.Join(folder, tool)); err != nil {
			return err
		}
	}
	return link(filepath.Join(filepath.Base(folder), "kubectl"), filepath.Join(b.Bin, "kubectl"))
}

// copyStages copies the files that tell KWOK how nodes and pods live.
func copyStages(_ context.Context, b *builder, source string) error {
	for _, stage := range kwok.Stages {
		content, err := os.ReadFile(filepath.Join(source, "kustomize", "stage", filepath.FromSlash(stage)))
		if err != nil {
			return fmt.Errorf("reading a stage of KWOK: %w", err)
		}
		file := kwok.StageFile(Folder(b.Bin, KWOK), stage)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("creating the folder of KWOK's stages: %w", err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("writing a stage of KWOK: %w", err)
		}
	}
	return nil
}

// renderManifests renders what a cluster needs for Kruise Rollouts.
func renderManifests(ctx context.Context, b *builder, source string) error {
	kubectl := filepath.Join(Folder(b.Bin, Kubernetes), "kubectl")
	rendered, err := b.output(ctx, source, nil, kubectl, "kustomize", filepath.Join("config", "default"))
	if err != nil {
		return err
	}
	manifests, err := kruise.SelectManifests([]byte(rendered))
	if err != nil {
		return err
	}
	file := filepath.Join(Folder(b.Bin, Kruise), kruise.ManifestsFile)
	if err := os.WriteFile(file, manifests, 0o644); err != nil {
		return fmt.Errorf("writing Kruise's manifests: %w", err)
	}
	return nil
}

// link makes a symbolic link, in place of what is there.
func link(to, path string) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing a left-over link: %w", err)
	}
	if err := os.Symlink(to, next); err != nil {
		return fmt.Errorf("linking: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("linking: %w", err)
	}
	return nil
}
