package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetwright/fleetwright/sandbox/internal/report"
)

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		only    []string
		want    []string
		wantErr string
	}{
		"all":                      {want: []string{Kubernetes, KWOK, Kruise}},
		"one":                      {only: []string{KWOK}, want: []string{KWOK}},
		"one that needs another":   {only: []string{Kruise}, want: []string{Kubernetes, Kruise}},
		"always in building order": {only: []string{KWOK, Kubernetes}, want: []string{Kubernetes, KWOK}},
		"unknown":                  {only: []string{"docker"}, wantErr: `no build target "docker"`},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(tc.only)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %v, want an error with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range chosen {
				got = append(got, c.name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestKubernetesVersion(t *testing.T) {
	const v = "-X k8s.io/component-base/version."
	want := v + "gitVersion=v1.37.2 " + v + "gitMajor=1 " + v + "gitMinor=37"
	if got := kubernetesVersion("v1.37.2"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newProgress(report.New(os.Stderr), "kwok", func() time.Time { return now })
	feed := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !p.line(line) {
				t.Errorf("line %q was not understood", line)
			}
		}
	}
	expect := func(want string) {
		t.Helper()
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	feed("go: downloading k8s.io/api v0.37.2", "go: downloading k8s.io/client-go v0.37.2")
	now = now.Add(3 * time.Second)
	expect("kwok: 2 modules downloaded, 3s")

	p.total = 4
	feed("k8s.io/api/core/v1", "internal/abi")
	expect("kwok: 2 of 4 packages compiled (50%), 3s")
	feed("a/b", "c/d", "e/f")
	expect("kwok: 4 of 4 packages compiled (100%), 3s")

	for _, line := range []string{"", "# k8s.io/api", "./main.go:3:5: undefined: x", "go: no such module", "main.go:3:5: undefined"} {
		if p.line(line) {
			t.Errorf("line %q counts as progress", line)
		}
	}
}

func TestReadLinesKeepsWhatIsNotProgress(t *testing.T) {
	long := strings.Repeat("x", 1<<17)
	got := readLines(strings.NewReader("good\nbad\n"+long+"\nlast\n"), func(line string) bool { return line == "good" })
	if !strings.HasPrefix(got, "bad\n") || !strings.HasSuffix(got, "\nlast\n") {
		t.Errorf("got %.20q… of %d bytes", got, len(got))
	}
}

func TestStamp(t *testing.T) {
	module := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stampOf := func(inputs ...string) stamp {
		t.Helper()
		s, err := newStamp(module, inputs...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := newStamp(module); err == nil {
		t.Error("no error for a folder without a module")
	}
	write("go.mod", "module x\n")
	write("main.go", "package main\n")
	first := stampOf("go1.26", "-trimpath")
	write("notes.md", "not built\n")
	if stampOf("go1.26", "-trimpath") != first {
		t.Error("a file that is not built changed the stamp")
	}
	if stampOf("go1.27", "-trimpath") == first {
		t.Error("another Go version did not change the stamp")
	}

	folder := t.TempDir()
	program := filepath.Join(folder, "x")
	if err := first.write(folder); err != nil {
		t.Fatal(err)
	}
	if first.matches(folder, program) {
		t.Error("matches although the program is missing")
	}
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !first.matches(folder, program) {
		t.Error("does not match what it was written for")
	}
	write("main.go", "package main // changed\n")
	if stampOf("go1.26", "-trimpath").matches(folder, program) {
		t.Error("matches although a source file changed")
	}
}

func TestLinkReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tool")
	for _, to := range []string{"one", "two"} {
		if err := link(to, path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(path); err != nil || got != to {
			t.Errorf("got a link to %q (%v), want %q", got, err, to)
		}
	}
}
