// Command crdgen finishes the CustomResourceDefinitions that controller-gen makes of the API's Go types, and writes them
// to config/crd: those of the hub in one folder, those of members in another. Per definition it
//
//   - adds v1beta1, served and not stored, with the very schema, columns and subresources of v1 (conversion None); a few
//     kinds are v1beta1 alone;
//   - gives every label selector the rules of a label selector, which the Go type does not carry;
//   - lets no time and no quantity through that Go could not read again.
//
// A definition of an API that is not ours keeps the one version that it has.
//
// `make generate` calls it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// memberKinds are the kinds that live in members; all others live on the hub.
var memberKinds = map[string]bool{"AppliedWork": true}

// asTheyAre are the groups whose kinds keep the one version that they have.
var asTheyAre = map[string]bool{"multicluster.x-k8s.io": true, "policy.one.alibabacloud.com": true, "rollouts.kruise.io": true}

// betaKinds are the kinds that the API has in v1beta1 alone.
var betaKinds = map[string]bool{
	"SchedulingPolicySnapshot": true, "ResourceSnapshot": true, "ResourceBinding": true,
	"ClusterResourcePlacementEviction": true, "ClusterResourcePlacementDisruptionBudget": true,
	"ClusterResourceEnvelope": true, "ResourceEnvelope": true,
}

const header = "# Made by `make generate` from the types in api/. Change those, not this file.\n"

func main() {
	from := flag.String("from", "", "the folder with controller-gen's output")
	to := flag.String("to", "", "the folder whose hub and member subfolders are written; what else is in those is removed")
	flag.Parse()
	if err := run(*from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "crdgen:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list the definitions in %s: %w", from, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("there are no definitions in %q: has controller-gen run?", from)
	}
	written := map[string]map[string]bool{"hub": {}, "member": {}}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a definition: %w", err)
		}
		side, content, err := finish(content)
		if err != nil {
			return fmt.Errorf("finish %s: %w", file, err)
		}
		name := filepath.Base(file)
		if err := os.MkdirAll(filepath.Join(to, side), 0o755); err != nil {
			return fmt.Errorf("make the folder for definitions: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, side, name), content, 0o644); err != nil {
			return fmt.Errorf("write a definition: %w", err)
		}
		written[side][name] = true
	}
	for side, names := range written {
		if err := removeOthers(filepath.Join(to, side), names); err != nil {
			return err
		}
	}
	return nil
}

// finish returns on which side a definition is installed, and its finished text.
func finish(content []byte) (side string, finished []byte, err error) {
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return "", nil, fmt.Errorf("parse it: %w", err)
	}
	spec := object(crd, "spec")
	versions, _ := spec["versions"].([]any)
	if len(versions) != 1 {
		return "", nil, fmt.Errorf("it has %d versions; crdgen expects one", len(versions))
	}
	v1, _ := versions[0].(map[string]any)
	kind, _ := object(spec, "names")["kind"].(string)
	group, _ := spec["group"].(string)
	if v1["name"] != "v1" && !asTheyAre[group] {
		return "", nil, fmt.Errorf("its version is %v; crdgen expects v1", v1["name"])
	}
	if len(object(v1, "subresources")) == 0 {
		delete(v1, "subresources")
	}
	tightenSelectors(object(v1, "schema", "openAPIV3Schema"))
	tightenValues(object(v1, "schema", "openAPIV3Schema"))
	switch {
	case asTheyAre[group]:
		spec["versions"] = []any{v1}
	case betaKinds[kind]:
		v1["name"] = "v1beta1"
		spec["versions"] = []any{v1}
	default:
		spec["versions"] = []any{v1, asV1beta1(v1)}
	}
	spec["conversion"] = map[string]any{"strategy": "None"}
	side = "hub"
	if memberKinds[kind] {
		side = "member"
	}
	text, err := yaml.Marshal(crd)
	if err != nil {
		return "", nil, fmt.Errorf("write it as YAML: %w", err)
	}
	return side, append([]byte(header), text...), nil
}

// asV1beta1 is v1 under its older name: served, and not stored. It shares v1's schema.
func asV1beta1(v1 map[string]any) map[string]any {
	beta := map[string]any{}
	for key, value := range v1 {
		beta[key] = value
	}
	beta["name"], beta["storage"] = "v1beta1", false
	return beta
}

// object returns the object at path, nil where there is none.
func object(parent map[string]any, path ...string) map[string]any {
	for _, key := range path {
		parent, _ = parent[key].(map[string]any)
	}
	return parent
}

// removeOthers removes definitions of kinds that are no more.
func removeOthers(folder string, names map[string]bool) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list the definitions in %s: %w", folder, err)
	}
	for _, file := range files {
		if names[filepath.Base(file)] {
			continue
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("remove the definition of a kind that is no more: %w", err)
		}
	}
	return nil
}
