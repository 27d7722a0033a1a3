package controlplane

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

func testPlane(t *testing.T, name string) *Plane {
	t.Helper()
	return &Plane{
		Name: name, Hub: name == state.Hub, Dir: t.TempDir(), Bin: "/bin/k8s", Logs: "/logs",
		EtcdPort: 20000, Port: 20001, ControllerManagerPort: 20002, SchedulerPort: 20003,
	}
}

func TestEveryFileOfTheFlagsIsWritten(t *testing.T) {
	for _, name := range []string{state.Hub, "member1"} {
		t.Run(name, func(t *testing.T) {
			p := testPlane(t, name)
			if err := p.WriteFiles(); err != nil {
				t.Fatal(err)
			}
			for _, process := range []state.Process{p.APIServer(), p.ControllerManager(), p.Scheduler()} {
				for _, flag := range process.Command[1:] {
					_, value, _ := strings.Cut(flag, "=")
					if !strings.HasPrefix(value, p.Dir) {
						continue
					}
					if _, err := os.Stat(value); err != nil {
						t.Errorf("%s has flag %s: %v", process.Name, flag, err)
					}
				}
			}
		})
	}
}

func TestWriteFilesKeepsWhatIsThere(t *testing.T) {
	p := testPlane(t, state.Hub)
	if err := p.WriteFiles(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, p.Dir)
	if err := p.WriteFiles(); err != nil {
		t.Fatal(err)
	}
	after := contents(t, p.Dir)
	for path, content := range before {
		if after[path] != content {
			t.Errorf("%s was written again", path)
		}
	}
}

func TestOnlyTheHubAggregatesAndSigns(t *testing.T) {
	for name, want := range map[string]bool{state.Hub: true, "member1": false} {
		p := testPlane(t, name)
		for flag, process := range map[string]state.Process{
			"--requestheader-client-ca-file": p.APIServer(),
			"--proxy-client-cert-file":       p.APIServer(),
			"--cluster-signing-key-file":     p.ControllerManager(),
		} {
			got := slices.ContainsFunc(process.Command, func(f string) bool { return strings.HasPrefix(f, flag+"=") })
			if got != want {
				t.Errorf("%s has flag %s: %v, want %v", process.Name, flag, got, want)
			}
		}
	}
}

func TestHubRunsNoWorkloads(t *testing.T) {
	hub, member := testPlane(t, state.Hub).ControllerManager(), testPlane(t, "member1").ControllerManager()
	if !slices.Contains(member.Command, "--controllers=*") {
		t.Errorf("a member lacks controllers: %v", member.Command)
	}
	i := slices.IndexFunc(hub.Command, func(f string) bool { return strings.HasPrefix(f, "--controllers=") })
	if i < 0 {
		t.Fatal("the hub has all controllers")
	}
	for _, workload := range []string{"*", "deployment", "replicaset", "daemonset", "statefulset", "job", "endpoint", "autoscaler"} {
		if strings.Contains(hub.Command[i], workload) {
			t.Errorf("the hub has a controller for %s: %s", workload, hub.Command[i])
		}
	}
}

func TestAdministratorIsNoMaster(t *testing.T) {
	p := testPlane(t, "member1")
	if err := p.WriteFiles(); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(p.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "member1" || config.Clusters["member1"].Server != "https://127.0.0.1:20001" {
		t.Errorf("context %s leads to %s", config.CurrentContext, config.Clusters["member1"].Server)
	}
	if user := users[adminUser]; !slices.Equal(user.Groups, []string{"fleetwright:admins"}) {
		t.Errorf("the administrator's groups are %v", user.Groups)
	}
}

func TestPrepareMayRunAgain(t *testing.T) {
	client := fake.NewClientset()
	for range 2 {
		if err := testPlane(t, "member1").Prepare(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	binding, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), AdminsGroup, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if binding.RoleRef.Name != "cluster-admin" || binding.Subjects[0].Name != "fleetwright:admins" {
		t.Errorf("got %v for %v", binding.RoleRef, binding.Subjects)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
