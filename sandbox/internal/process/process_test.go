package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " 1 4242 4242 0 -1 4194304 96 0 0 0 0 0 0 0 20 0 1 0 44379 3133440 356"
	cases := map[string]struct {
		line    string
		want    stat
		wantErr string
	}{
		"plain name":                        {line: "4242 (etcd) S" + rest, want: stat{'S', 4242, 1, 44379}},
		"name with spaces and parentheses":  {line: "4242 (a) R (b) Z" + rest, want: stat{'Z', 4242, 1, 44379}},
		"name that looks like other fields": {line: "4242 (x 1 2 3) T" + rest, want: stat{'T', 4242, 1, 44379}},
		"no name":                           {line: "4242 etcd S", wantErr: "no program name"},
		"cut off":                           {line: "4242 (etcd) S 1 2", wantErr: "only 3 fields"},
		"group is no number":                {line: "4242 (etcd) S" + strings.Replace(rest, "4242", "x", 1), wantErr: "process group"},
		"threads are no number":             {line: "4242 (etcd) S" + strings.Replace(rest, "20 0 1 0", "20 0 x 0", 1), wantErr: "number of threads"},
		"start time is no number":           {line: "4242 (etcd) S" + strings.Replace(rest, "44379", "x", 1), wantErr: "start time"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(tc.line)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Fatalf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestIdentityTellsProcessesApart(t *testing.T) {
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !self.Alive() || self.Stopped() {
		t.Errorf("this test's own process %+v should be alive and not stopped", self)
	}
	for name, other := range map[string]Identity{
		"another start time": {PID: self.PID, StartTime: self.StartTime + 1, BootID: self.BootID},
		"another boot":       {PID: self.PID, StartTime: self.StartTime, BootID: "another"},
		"nothing recorded":   {},
	} {
		if other.Alive() {
			t.Errorf("%s: %+v passes for the process %+v", name, other, self)
		}
	}
}

func TestStartAndKill(t *testing.T) {
	log := filepath.Join(t.TempDir(), "logs", "sh.log")
	// One process: a group that is stopped between fork and exec has a parent that waits and is never seen as stopped.
	p := start(t, log, "sh", "-c", `echo "hello $GREETED"; exec sleep 600`)
	if !p.Alive() {
		t.Fatal("a process is not alive right after its start")
	}

	if found, err := Signal(p, syscall.SIGSTOP); !found || err != nil {
		t.Fatalf("stopping: found %v, %v", found, err)
	}
	waitUntil(t, "stopped", p.Stopped)
	if !p.Alive() {
		t.Error("a stopped process counts as dead")
	}
	if _, err := Signal(p, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "heard of", func() bool {
		content, _ := os.ReadFile(log)
		return strings.Contains(string(content), "hello world\n")
	})
	if err := Kill(t.Context(), p, 0); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("still alive after Kill")
	}

	if content, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(content), "--- started ") {
		t.Errorf("the log does not begin with the start (%v):\n%s", err, content)
	}
}

func TestKillGivesTimeToEnd(t *testing.T) {
	log := filepath.Join(t.TempDir(), "sh.log")
	p := start(t, log, "sh", "-c", `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
	waitUntil(t, "ready", func() bool {
		content, _ := os.ReadFile(log)
		return strings.Contains(string(content), "\nready\n")
	})
	if err := Kill(t.Context(), p, time.Minute); err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(log); !strings.Contains(string(content), "bye") {
		t.Errorf("the process was not given time to end:\n%s", content)
	}
}

// TestKillEndsWhatOutlivesItsLeader has a leader that ends when it is asked to, and a child that does not.
func TestKillEndsWhatOutlivesItsLeader(t *testing.T) {
	log := filepath.Join(t.TempDir(), "sh.log")
	p := start(t, log, "sh", "-c", `(trap '' TERM; echo child $(sh -c 'echo $PPID'); while :; do sleep 0.05; done) & trap 'exit 0' TERM; while :; do sleep 0.05; done`)
	var child Identity
	waitUntil(t, "ready", func() bool {
		content, _ := os.ReadFile(log)
		_, after, found := strings.Cut(string(content), "\nchild ")
		number, _, whole := strings.Cut(after, "\n")
		pid, err := strconv.Atoi(number)
		if !found || !whole || err != nil {
			return false
		}
		child, err = Identify(pid)
		return err == nil
	})
	t.Cleanup(func() {
		if child.Alive() {
			_ = syscall.Kill(child.PID, syscall.SIGKILL)
		}
	})
	if err := Kill(t.Context(), p, time.Second); err != nil {
		t.Fatal(err)
	}
	if p.Alive() || child.Alive() {
		t.Errorf("after Kill the leader is alive: %v, its child: %v", p.Alive(), child.Alive())
	}
}

func TestKillLeavesOthersAlone(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "sleep.log"), "sleep", "600")
	recorded := p
	recorded.StartTime--
	if err := Kill(t.Context(), recorded, 0); err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Error("killed a process that only shares its number with the recorded one")
	}
}

// start runs a program from PATH until the end of the test.
func start(t *testing.T, log, program string, args ...string) Identity {
	t.Helper()
	p, err := Start(Command{Args: append([]string{program}, args...), Env: []string{"GREETED=world"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := Signal(p, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	return p
}

func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("not %s within a minute", what)
		case <-time.After(pollInterval):
		}
	}
}
