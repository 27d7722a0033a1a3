package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/sandbox/internal/lock"
	"github.com/fleetwright/fleetwright/sandbox/internal/report"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// open opens a sandbox in a folder and takes it down at the end of the test.
func open(t *testing.T, dir string) *Sandbox {
	t.Helper()
	s, err := Open(t.Context(), dir, "testing", 0, report.New(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context is cancelled by now.
		if err := errors.Join(s.Down(context.WithoutCancel(t.Context())), s.Close()); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return s
}

func TestPlan(t *testing.T) {
	existing := []state.Cluster{
		{Name: state.Hub, Parts: hubParts},
		{Name: "member1", Parts: FullMember},
		{Name: "member2", Parts: BareMember},
	}
	withoutKruise := FullMember
	withoutKruise.Kruise = false
	for name, tc := range map[string]struct {
		clusters []state.Cluster
		options  UpOptions
		want     string
		wantErr  string
	}{
		"from nothing":             {options: UpOptions{Members: 2, Full: FullMember}, want: "hub member1 member2"},
		"bare numbers follow":      {options: UpOptions{Members: 1, Bare: 2, Full: FullMember}, want: "hub member1 member2 member3"},
		"only a hub":               {want: "hub"},
		"all is there":             {clusters: existing, options: UpOptions{Members: 1, Bare: 1, Full: FullMember}},
		"less than is there":       {clusters: existing, options: UpOptions{Members: 1, Full: FullMember}},
		"more of the last kind":    {clusters: existing, options: UpOptions{Members: 1, Bare: 2, Full: FullMember}, want: "member3"},
		"a bare one asked as full": {clusters: existing, options: UpOptions{Members: 2, Full: FullMember}, wantErr: "member2 was started with an API server alone"},
		"other parts":              {clusters: existing, options: UpOptions{Members: 1, Full: withoutKruise}, wantErr: "kruise=false"},
		"negative":                 {options: UpOptions{Members: -1}, wantErr: "must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Sandbox{state: &state.State{Clusters: tc.clusters}}
			added, err := s.plan(tc.options)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %v, want an error with %q", err, tc.wantErr)
				}
				return
			}
			var got []string
			for _, c := range added {
				got = append(got, c.Name)
			}
			if err != nil || strings.Join(got, " ") != tc.want {
				t.Errorf("got %v (%v), want %q", got, err, tc.want)
			}
		})
	}
}

func TestOpenRefusesAForeignFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir, "testing", 0, report.New(os.Stderr))
	if err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("got %v, want an error that names what is in the folder", err)
	}
}

func TestOnlyOneChangesASandboxAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	open(t, dir)
	if _, err := Open(t.Context(), dir, "testing", 0, report.New(os.Stderr)); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
}

func TestViewOfNoSandbox(t *testing.T) {
	if _, err := View(t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
	_, err := OpenExisting(t.Context(), filepath.Join(t.TempDir(), "x"), "testing", 0, report.New(os.Stderr))
	if !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
}

func TestLastLines(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		lines   int
		want    string
	}{
		"fewer than asked for": {"a\nb\n", 5, "a\nb\n"},
		"only the last":        {"a\nb\nc\n", 2, "b\nc\n"},
		"unfinished last line": {"a\nb", 1, "b\n"},
		"none asked for":       {"a\n", 0, ""},
		"empty":                {"", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastLines(strings.NewReader(tc.content), tc.lines); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
