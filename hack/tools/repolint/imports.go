package main

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/fleetwright/fleetwright/"

// layer is a part of the repository, and what of the repository it may import beside itself.
type layer struct {
	name string
	// folders are the folders of its packages.
	folders []string
	// imports are the names of layers.
	imports []string
	// everything is set where it may import any layer.
	everything bool
	// pure is set where neither a package nor anything that it imports may be able to talk to a cluster.
	pure bool
}

// layers is the direction of imports: api ← what decides ← hub, agent, command line ← programs. Hub and agent never import
// each other: they meet in the API alone, so that either can be replaced without the other.
var layers = []layer{
	{name: "api", folders: []string{"api"}, pure: true},
	{name: "pure", imports: []string{"api"}, pure: true, folders: []string{
		"internal/placement", "internal/snapshot", "internal/render", "internal/schedule", "internal/rollout", "internal/override", "internal/view",
	}},
	{name: "hub", folders: []string{"internal/hub"}, imports: []string{"api", "pure"}},
	{name: "agent", folders: []string{"internal/agent"}, imports: []string{"api", "pure"}},
	{name: "gateway", folders: []string{"internal/gateway"}, imports: []string{"api", "pure"}},
	// What waits for objects is for those who type or script: controllers are told by their watches.
	{name: "await", folders: []string{"internal/await"}},
	{name: "cli", folders: []string{"internal/cli"}, imports: []string{"api", "pure", "await"}},
	// The quickstart starts the programs as processes; it needs nothing that is in them.
	{name: "quickstart", folders: []string{"internal/quickstart"}, imports: []string{"api", "pure", "await"}},
	{name: "programs", folders: []string{"cmd"}, everything: true},
	{name: "tests and tools", folders: []string{"test", "hack", "config"}, everything: true},
}

// clients are modules by which a program talks to a cluster.
var clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/cli-runtime", "k8s.io/kubectl", "k8s.io/apiserver"}

// checkImports returns the imports that go in a wrong direction.
func checkImports(packages []goPackage) []string {
	var problems []string
	byPath := map[string]goPackage{}
	for _, p := range packages {
		byPath[p.ImportPath] = p
	}
	for _, p := range packages {
		folder, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			continue
		}
		from := layerOf(folder)
		if from == nil {
			problems = append(problems, fmt.Sprintf("%s: belongs to no layer; add its folder to hack/tools/repolint/imports.go", folder))
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module)
			if !ours || from.everything {
				continue
			}
			if l := layerOf(to); l != nil && l != from && !slices.Contains(from.imports, l.name) {
				problems = append(problems, fmt.Sprintf("%s: imports %s; %s may import %s", folder, to, from.name, allowed(from)))
			}
		}
		if from.pure {
			if path := pathToClient(byPath, p.ImportPath, map[string]bool{}); path != nil {
				problems = append(problems, fmt.Sprintf("%s: decides, and so must not be able to talk to a cluster; it imports %s", folder, strings.Join(path[1:], " → ")))
			}
		}
	}
	return problems
}

func allowed(l *layer) string {
	if len(l.imports) == 0 {
		return "nothing of the others"
	}
	return strings.Join(l.imports, ", ")
}

func layerOf(folder string) *layer {
	for i, l := range layers {
		for _, f := range l.folders {
			if folder == f || strings.HasPrefix(folder, f+"/") {
				return &layers[i]
			}
		}
	}
	return nil
}

// pathToClient returns by which imports a package comes to a client, nil if it does not.
func pathToClient(packages map[string]goPackage, path string, seen map[string]bool) []string {
	if seen[path] {
		return nil
	}
	seen[path] = true
	for _, c := range clients {
		if path == c || strings.HasPrefix(path, c+"/") {
			return []string{path}
		}
	}
	for _, imported := range packages[path].Imports {
		if rest := pathToClient(packages, imported, seen); rest != nil {
			return append([]string{path}, rest...)
		}
	}
	return nil
}
