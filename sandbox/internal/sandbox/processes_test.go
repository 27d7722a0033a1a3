package sandbox

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fleetwright/fleetwright/sandbox/internal/process"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// sleeper is a guest that only waits.
func sleeper(name string, env ...string) Guest {
	return Guest{Name: name, Command: []string{"sleep", "600"}, Env: env, Dir: "."}
}

func TestRunLeavesAloneWhatIsTheSame(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sandbox"))
	run := func(g Guest, want Outcome) state.Process {
		t.Helper()
		outcome, p, err := s.Run(t.Context(), g)
		if err != nil || outcome != want {
			t.Fatalf("got %q, %v; want %q", outcome, err, want)
		}
		if !p.Alive() {
			t.Fatal("it does not run")
		}
		return p
	}
	first := run(sleeper("agent"), Started)
	if again := run(sleeper("agent"), Unchanged); again.PID != first.PID {
		t.Error("it was started again although nothing changed")
	}
	second := run(sleeper("agent", "A=B"), Restarted)
	if first.Alive() {
		t.Error("the replaced process still runs")
	}
	if err := process.Kill(t.Context(), second.Identity, 0); err != nil {
		t.Fatal(err)
	}
	run(sleeper("agent", "A=B"), Started)
	if n := len(s.state.Processes); n != 1 {
		t.Errorf("%d processes are recorded, want 1", n)
	}
}

func TestRunRefuses(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sandbox"))
	s.state.SetProcess(state.Process{Name: "etcd"})
	for name, tc := range map[string]struct {
		guest   Guest
		wantErr string
	}{
		"a name that is no file name": {Guest{Name: "a/b", Command: []string{"sleep"}}, "process name"},
		"a name of the sandbox's own": {sleeper("etcd"), "part of the sandbox"},
		"a program that is not there": {Guest{Name: "x", Command: []string{"/no/such/program"}}, "program of x"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := s.Run(t.Context(), tc.guest); err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want an error with %q", err, tc.wantErr)
			}
		})
	}
}

func TestPortsAreFilledIn(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sandbox"))
	g := sleeper("agent", "PROBE=:{port:health}")
	g.Command = []string{"sleep", "--health={port:health}", "--metrics={port:metrics}"}
	g.Ready = "http://127.0.0.1:{port:health}/readyz"
	first, err := s.guestProcess(g)
	if err != nil {
		t.Fatal(err)
	}
	health, metrics := strconv.Itoa(s.state.Ports["agent/health"]), strconv.Itoa(s.state.Ports["agent/metrics"])
	got := strings.Join(append(first.Command[1:], first.Env[0], first.Ready, first.Address), " ")
	want := "--health=" + health + " --metrics=" + metrics + " PROBE=:" + health +
		" http://127.0.0.1:" + health + "/readyz http://127.0.0.1:" + health
	if got != want || health == metrics {
		t.Errorf("got %s, want %s", got, want)
	}
	again, err := s.guestProcess(g)
	if err != nil || again.Ready != first.Ready {
		t.Errorf("another start gets %s (%v), the first got %s", again.Ready, err, first.Ready)
	}
}

func TestKillAndStart(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sandbox"))
	_, first, err := s.Run(t.Context(), sleeper("agent"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(t.Context(), syscall.SIGKILL, "agent"); err != nil {
		t.Fatal(err)
	}
	if first.Alive() {
		t.Error("it is alive after SIGKILL")
	}
	if err := s.Signal(t.Context(), syscall.SIGKILL, "agent"); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("got %v, want an error that says it does not run", err)
	}
	if err := s.Signal(t.Context(), syscall.SIGKILL, "nobody"); err == nil || !strings.Contains(err.Error(), "there are agent") {
		t.Errorf("got %v, want an error that names the processes there are", err)
	}
	started, err := s.Start("agent")
	if err != nil || len(started) != 1 || !started[0].Alive() || started[0].Log != first.Log {
		t.Errorf("got %+v, %v", started, err)
	}

	if err := s.Signal(t.Context(), syscall.SIGSTOP, "agent"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "stopped", started[0].Stopped)
	if _, err := s.Start("agent"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "going on", func() bool { return !started[0].Stopped() })
}

func TestStatusAndLogs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	s := open(t, dir)
	var answer atomic.Int32
	answer.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(answer.Load())) }))
	defer server.Close()
	asked := sleeper("asked")
	asked.Ready = server.URL
	for _, g := range []Guest{asked, sleeper("silent"), sleeper("ended")} {
		if _, _, err := s.Run(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Signal(t.Context(), syscall.SIGKILL, "ended"); err != nil {
		t.Fatal(err)
	}
	states := func() string {
		var out bytes.Buffer
		if err := Status(t.Context(), dir, &out); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			got = append(got, strings.Fields(line)[2])
		}
		return strings.Join(got, " ")
	}
	if got, want := states(), "STATE Ready Running Dead"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	answer.Store(http.StatusInternalServerError)
	if got, want := states(), "STATE NotReady Running Dead"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	var out bytes.Buffer
	if err := Logs(t.Context(), dir, "silent", 1, false, &out); err != nil || !strings.Contains(out.String(), "sleep 600") {
		t.Errorf("got log %q, %v", out.String(), err)
	}
	if err := Logs(t.Context(), dir, "nobody", 1, false, &out); err == nil {
		t.Error("no error for the log of an unknown process")
	}
}

func TestAwaitReadyTellsWhy(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sandbox"))
	unused := httptest.NewServer(nil)
	unused.Close()
	g := Guest{Name: "crasher", Command: []string{"sh", "-c", "echo too many open files; exit 3"}, Dir: ".", Ready: unused.URL}
	_, p, err := s.Run(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	err = AwaitReady(t.Context(), p)
	for _, want := range []string{"crasher", "has ended", "echo too many", "max_user_instances"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	hanging := sleeper("hanging")
	hanging.Ready = "http://" + listener.Addr().String()
	if _, p, err = s.Run(t.Context(), hanging); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, os.ErrDeadlineExceeded)
	defer cancel()
	if err := AwaitReady(ctx, p); err == nil || !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) {
		t.Errorf("got %v, want the cause of the timeout", err)
	}
}

func TestDownEndsEverythingAndRemovesOnlyItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	s := open(t, dir)
	var all []state.Process
	for _, name := range []string{"one", "two"} {
		_, p, err := s.Run(t.Context(), sleeper(name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	// One that the sandbox started itself.
	s.state.Process("two").Guest = false
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Alive() {
			t.Errorf("%s still runs", p.Name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left are %v (%v), want only the user's file", entries, err)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("not %s within a minute", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
