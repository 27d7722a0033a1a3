package main

import (
	"slices"
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	of := func(path string, imports ...string) goPackage {
		for i, p := range imports {
			if !strings.Contains(p, ".") && strings.Contains(p, "/") {
				imports[i] = module + p
			}
		}
		return goPackage{ImportPath: path, Imports: imports}
	}
	ours := func(path string, imports ...string) goPackage { return of(module+path, imports...) }
	for name, tc := range map[string]struct {
		packages []goPackage
		want     []string
	}{
		"the right direction": {packages: []goPackage{
			ours("api/placement/v1", "k8s.io/api/core/v1"), ours("internal/schedule", "api/placement/v1"),
			ours("internal/hub/scheduler", "internal/schedule", "internal/hub/consistency", "k8s.io/client-go/rest"),
			ours("cmd/fleetwright-hub", "internal/hub/setup"), ours("test/e2e", "internal/hub/setup", "internal/agent/apply"),
		}},
		"hub and agent": {
			packages: []goPackage{ours("internal/hub/work", "internal/agent/apply")},
			want:     []string{"internal/hub/work: imports internal/agent/apply; hub may import api, pure"},
		},
		"upwards": {
			packages: []goPackage{ours("api/placement/v1", "internal/placement"), ours("internal/render", "internal/hub/work")},
			want: []string{
				"api/placement/v1: imports internal/placement; api may import nothing of the others",
				"internal/render: imports internal/hub/work; pure may import api",
			},
		},
		"a client, by way of another package": {
			packages: []goPackage{ours("internal/view", "example.com/friend"), of("example.com/friend", "sigs.k8s.io/controller-runtime/pkg/client")},
			want: []string{
				"internal/view: decides, and so must not be able to talk to a cluster; it imports example.com/friend → sigs.k8s.io/controller-runtime/pkg/client",
			},
		},
		"no layer": {
			packages: []goPackage{ours("pkg/stuff")},
			want:     []string{"pkg/stuff: belongs to no layer; add its folder to hack/tools/repolint/imports.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkImports(tc.packages); !slices.Equal(got, tc.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestFiles(t *testing.T) {
	const clock = "package schedule\n\nimport \"time\"\n\nvar t = time.Now()\n"
	for name, tc := range map[string]struct {
		file, content string
		want          []string
	}{
		"a clock where things are decided": {
			file: "internal/schedule/decide.go", content: clock,
			want: []string{"internal/schedule/decide.go:5: time.Now: what decides is told the time by its caller, so that every decision can be repeated"},
		},
		"a clock in a test":       {file: "internal/schedule/decide_test.go", content: clock},
		"a clock in a controller": {file: "internal/hub/scheduler/controller.go", content: clock},
		"sleep in a controller": {
			file: "internal/hub/work/controller.go", content: strings.Replace(clock, "time.Now()", "time.Sleep", 1),
			want: []string{"internal/hub/work/controller.go:5: time.Sleep: wait for what is waited for, with a context"},
		},
		"durations are no clock": {file: "internal/schedule/decide.go", content: strings.Replace(clock, "time.Now()", "time.Second", 1)},
		"a long file": {
			file: "internal/hub/work/controller.go", content: "package work\n" + strings.Repeat("\n", 700),
			want: []string{"internal/hub/work/controller.go:700: has 701 lines, the most is 700"},
		},
		"a long main": {
			file: "cmd/x/main.go", content: "package main\n" + strings.Repeat("\n", 80),
			want: []string{"cmd/x/main.go:80: has 81 lines, the most for a main.go is 80: move what it does to internal"},
		},
		"a vague name": {
			file: "internal/hub/util/x.go", content: "package util\n",
			want: []string{"internal/hub/util/x.go:1: package util: name it by what it is for"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkFile(tc.file, []byte(tc.content)); !slices.Equal(got, tc.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestReasons(t *testing.T) {
	const file = "package v1\n\nconst (\n\tReasonTold = \"Told\"\n\tReasonSecret = \"Secret\"\n\tConditionJoined = \"Joined\"\n)\n"
	got, err := unexplained("api/x/v1/conditions.go", []byte(file), "| Told | ToldSecretly |")
	want := []string{"api/x/v1/conditions.go:5: no page in docs says what reason Secret means; docs/status.md is the place"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, error %v; want %q", got, err, want)
	}
}
