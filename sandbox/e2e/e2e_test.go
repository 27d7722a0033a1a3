// Package e2e tests a real sandbox. It needs the programs that "sandbox build" builds.
package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetwright/fleetwright/sandbox/internal/report"
	"github.com/fleetwright/fleetwright/sandbox/internal/sandbox"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// limit is how long anything may take that the clusters do in answer to a test. It is generous: tests share a machine.
const limit = 3 * time.Minute

// bin is where the project's Makefile has the programs built.
var bin = filepath.Join("..", "..", "bin")

// TestSandbox starts one sandbox and looks at it from all sides, as starting one for each would take too long.
func TestSandbox(t *testing.T) {
	if _, err := os.Stat(filepath.Join(bin, "kruise", "rollouts")); err != nil {
		t.Fatalf("the programs are not built, run \"sandbox build\" first: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "sandbox")
	s, err := sandbox.Open(t.Context(), dir, "testing", 0, report.New(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	defer down(t, dir, s)
	up(t, s)

	t.Run("administrator", func(t *testing.T) { testAdministrator(t, s) })
	t.Run("hub runs no workloads", func(t *testing.T) { testHubRunsNoWorkloads(t, s) })
	t.Run("hub deletes namespaces", func(t *testing.T) { testNamespaceDeletion(t, s) })
	t.Run("hub signs certificates", func(t *testing.T) { testCertificateSigning(t, s) })
	t.Run("member runs workloads", func(t *testing.T) { testWorkload(t, s) })
	t.Run("member rolls out in batches", func(t *testing.T) { testRollout(t, s) })
	t.Run("certificates of one cluster are void in another", func(t *testing.T) { testSeparateAuthorities(t, s) })
	t.Run("killed API server comes back", func(t *testing.T) { testKillAndStart(t, s) })
	t.Run("up again changes nothing", func(t *testing.T) { testUpAgain(t, s, dir) })
	t.Run("member added", func(t *testing.T) { testAddMember(t, s) })
}

// up starts a hub, a member that can run workloads and one that cannot.
func up(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	err := s.Up(t.Context(), sandbox.UpOptions{Bin: bin, Members: 1, Full: sandbox.FullMember, Bare: 1, Timeout: 3 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
}

// down takes the sandbox down, however the test ended, and checks that nothing is left of it.
func down(t *testing.T, dir string, s *sandbox.Sandbox) {
	before, err := state.Load(dir)
	if err != nil {
		t.Error(err)
	}
	// The test's own context may be cancelled by now.
	if err := errors.Join(s.Down(context.WithoutCancel(t.Context())), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, p := range before.Processes {
		if p.Alive() {
			t.Errorf("%s still runs", p.Name)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func testKillAndStart(t *testing.T, s *sandbox.Sandbox) {
	const name = "member1-apiserver"
	client := clientFor(t, s, "member1")
	if err := s.Signal(t.Context(), syscall.SIGKILL, name); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err == nil {
		t.Fatal("it answers although it was killed")
	}
	started, err := s.Start(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := sandbox.AwaitReady(ctx, started...); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Errorf("it does not answer at its old address: %v", err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Errorf("it has %d nodes after its restart (%v), want the 2 from before", len(nodes.Items), err)
	}
}

func testUpAgain(t *testing.T, s *sandbox.Sandbox, dir string) {
	before, err := state.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	up(t, s)
	after, err := state.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range before.Processes {
		if now := after.Process(p.Name); now == nil || now.Identity != p.Identity {
			t.Errorf("%s was started again", p.Name)
		}
	}
}

func testAddMember(t *testing.T, s *sandbox.Sandbox) {
	if err := s.AddMember(t.Context(), "", sandbox.BareMember, "", limit); err != nil {
		t.Fatal(err)
	}
	if _, err := clientFor(t, s, "member3").Discovery().ServerVersion(); err != nil {
		t.Errorf("the added member does not answer: %v", err)
	}
	if err := s.AddMember(t.Context(), "member3", sandbox.BareMember, "", limit); err == nil {
		t.Error("no error for a member that is there already")
	}
}

// configFor returns how the administrator reaches a cluster.
func configFor(t *testing.T, s *sandbox.Sandbox, cluster string) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: s.Kubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: cluster},
	).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func clientFor(t *testing.T, s *sandbox.Sandbox, cluster string) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(configFor(t, s, cluster))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func dynamicFor(t *testing.T, s *sandbox.Sandbox, cluster string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(configFor(t, s, cluster))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits until a check finds nothing amiss.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil || last == nil {
			last = err // a check that was cut off says nothing of what it looked at
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("still after %s: %v", limit, last)
	}
}
