// Package quickstart puts the product onto a sandbox: definitions, rights and policies on the hub, the hub as a process,
// and in each member an agent that joins by the same way as on any other cluster.
package quickstart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	rolloutsv1beta1 "github.com/fleetwright/fleetwright/api/rollouts/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// systemNamespace holds the product's own objects on the hub and in members.
	systemNamespace = "fleetwright-system"
	hubAccount      = "fleetwright-hub"
	agentAccount    = "fleetwright-agent"
	// bootstrapSeconds is how long a bootstrap token lives.
	bootstrapSeconds = 3600
	// HubProcess is the name of the hub among a sandbox's processes; an agent is AgentProcess and its cluster's name.
	HubProcess = "fleetwright-hub"
	// AgentProcess goes before a cluster's name.
	AgentProcess = "fleetwright-agent-"
)

// Fleet is a sandbox with the product on it.
type Fleet struct {
	// Root is the repository's root: manifests come from its config folder, programs from its bin folder.
	Root string
	// Dir holds the sandbox's state.
	Dir string
	// Members and BareMembers are how many of each there are to be. Bare members have an API server and an agent alone.
	Members, BareMembers int
	// HeartbeatSeconds is the members' heartbeat period; 0 leaves the default.
	HeartbeatSeconds int32
	// HubArgs and AgentArgs are added to the programs' arguments.
	HubArgs, AgentArgs []string
	// Out receives a line for each step.
	Out io.Writer
}

// Names returns the members' names.
func (f *Fleet) Names() []string {
	names := make([]string, 0, f.Members+f.BareMembers)
	for i := range f.Members + f.BareMembers {
		names = append(names, "member"+strconv.Itoa(i+1))
	}
	return names
}

// Kubeconfig is the file with the administrator's contexts: hub, member1, member2 and so on.
func (f *Fleet) Kubeconfig() string { return filepath.Join(f.Dir, "kubeconfig") }

// Up starts what is missing and waits until every member has joined.
func (f *Fleet) Up(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(f.Dir, "state.json")); os.IsNotExist(err) {
		if err := f.removeFiles(); err != nil { // of a sandbox that was taken down without us
			return err
		}
	}
	args := []string{"up", "--members", strconv.Itoa(f.Members)}
	if f.BareMembers > 0 {
		args = append(args, "--bare", strconv.Itoa(f.BareMembers))
	}
	if err := f.Sandbox(ctx, args...); err != nil {
		return err
	}
	hub, hubConfig, err := f.Client("hub")
	if err != nil {
		return err
	}
	f.say("Installing Fleetwright on the hub")
	if err := f.installHub(ctx, hub, hubConfig); err != nil {
		return fmt.Errorf("install the hub: %w", err)
	}
	f.say("Joining the members")
	for _, name := range f.Names() {
		if err := f.join(ctx, hub, hubConfig, name); err != nil {
			return fmt.Errorf("join %s: %w", name, err)
		}
	}
	for _, name := range f.Names() {
		if err := f.waitJoined(ctx, hub, name); err != nil {
			return fmt.Errorf("wait until %s has joined (its log: %s): %w", name, filepath.Join(f.Dir, "logs", AgentProcess+name+".log"), err)
		}
		f.say(name + " has joined")
	}
	return nil
}

// Rejoin brings a member back whose MemberCluster was deleted: with a new bootstrap token, as anybody would.
func (f *Fleet) Rejoin(ctx context.Context, name string) error {
	hub, hubConfig, err := f.Client("hub")
	if err != nil {
		return err
	}
	if err := f.Sandbox(ctx, "kill", AgentProcess+name); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(f.Dir, "agents", name)); err != nil {
		return fmt.Errorf("remove what the agent of %s was given before: %w", name, err)
	}
	if err := f.join(ctx, hub, hubConfig, name); err != nil {
		return fmt.Errorf("join %s: %w", name, err)
	}
	return f.waitJoined(ctx, hub, name)
}

// Down stops everything and removes the sandbox's state.
func (f *Fleet) Down(ctx context.Context) error {
	if err := f.Sandbox(ctx, "down"); err != nil {
		return err
	}
	return f.removeFiles()
}

// removeFiles removes what the product's processes were given, and the folder if nothing else is in it.
func (f *Fleet) removeFiles() error {
	for _, name := range []string{"agents", "hub.kubeconfig"} {
		if err := os.RemoveAll(filepath.Join(f.Dir, name)); err != nil {
			return fmt.Errorf("remove the files of the product's processes: %w", err)
		}
	}
	_ = os.Remove(f.Dir) // it stays if somebody else has put something into it
	return nil
}

// ErrSandbox is what goes before the failure of the sandbox's own command, which has said on Out what went wrong.
var ErrSandbox = errors.New("the sandbox's command failed")

// patienceWithInterrupted is how long the sandbox's command may take to write down what it has started.
const patienceWithInterrupted = 10 * time.Second

// Sandbox runs the sandbox's own command on this fleet. Interrupted, the command ends by itself: killed, it would leave
// processes behind that nobody knows of.
func (f *Fleet) Sandbox(ctx context.Context, args ...string) error {
	verb, rest := args[0], args[1:]
	command := exec.CommandContext(ctx, filepath.Join(f.Root, "bin", "sandbox"),
		append([]string{verb, "--dir", f.Dir, "--bin", filepath.Join(f.Root, "bin")}, rest...)...)
	command.Stdout, command.Stderr = f.Out, f.Out
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = patienceWithInterrupted
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: sandbox %s: %w", ErrSandbox, verb, err)
	}
	return nil
}

// Client returns the administrator's client and configuration for a context of the kubeconfig.
func (f *Fleet) Client(context string) (client.WithWatch, *rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.Kubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("read context %s from %s: %w", context, f.Kubeconfig(), err)
	}
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for %s: %w", context, err)
	}
	return c, config, nil
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, placementv1.AddToScheme, clusterv1.AddToScheme,
		policyv1alpha1.AddToScheme, rolloutsv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic("register API types: " + err.Error()) // cannot happen: the types are compiled in
		}
	}
	return s
}

// installHub installs definitions, rights and policies and starts the hub under its own service account.
func (f *Fleet) installHub(ctx context.Context, c client.Client, config *rest.Config) error {
	if err := ensureAccount(ctx, c, hubAccount); err != nil {
		return err
	}
	for _, folder := range []string{"crd/hub", "rbac/hub", "policies"} {
		if err := applyFolder(ctx, c, filepath.Join(f.Root, "config", folder)); err != nil {
			return err
		}
	}
	if err := waitForCRDs(ctx, c); err != nil {
		return err
	}
	kubeconfig := filepath.Join(f.Dir, "hub.kubeconfig")
	if _, err := os.Stat(kubeconfig); err != nil {
		if err := writeKubeconfig(ctx, c, config, systemNamespace, hubAccount, kubeconfig); err != nil {
			return err
		}
	}
	return f.start(ctx, HubProcess, append([]string{filepath.Join(f.Root, "bin", "fleetwright-hub"), "--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address", "0"}, f.HubArgs...))
}

// join makes the MemberCluster, hands the agent what it needs and starts it under its own service account in the member.
func (f *Fleet) join(ctx context.Context, hub client.WithWatch, hubConfig *rest.Config, name string) error {
	member, memberConfig, err := f.Client(name)
	if err != nil {
		return err
	}
	cluster := &clusterv1.MemberCluster{}
	cluster.Name = name
	cluster.Spec.HeartbeatPeriodSeconds = f.HeartbeatSeconds
	if err := hub.Create(ctx, cluster); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the MemberCluster: %w", err)
	}
	files := filepath.Join(f.Dir, "agents", name)
	if err := f.installAgent(ctx, member, memberConfig, files); err != nil {
		return err
	}
	if err := f.handOver(ctx, hub, hubConfig, name, files); err != nil {
		return err
	}
	return f.start(ctx, AgentProcess+name, append([]string{
		filepath.Join(f.Root, "bin", "fleetwright-agent"),
		"--cluster-name", name, "--hub-url", hubConfig.Host,
		"--hub-ca", filepath.Join(files, "hub-ca.crt"),
		"--bootstrap-token-file", filepath.Join(files, "bootstrap-token"),
		"--member-kubeconfig", filepath.Join(files, "member.kubeconfig"),
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0",
	}, f.AgentArgs...))
}

// installAgent installs the agent's definitions and rights in a member, and writes the kubeconfig that it uses there.
func (f *Fleet) installAgent(ctx context.Context, member client.Client, config *rest.Config, files string) error {
	if err := ensureAccount(ctx, member, agentAccount); err != nil {
		return err
	}
	for _, folder := range []string{"crd/member", "rbac/member"} {
		if err := applyFolder(ctx, member, filepath.Join(f.Root, "config", folder)); err != nil {
			return err
		}
	}
	if err := waitForCRDs(ctx, member); err != nil {
		return err
	}
	kubeconfig := filepath.Join(files, "member.kubeconfig")
	if _, err := os.Stat(kubeconfig); err == nil {
		return nil
	}
	if err := os.MkdirAll(files, 0o700); err != nil {
		return fmt.Errorf("make a folder for the agent's files: %w", err)
	}
	return writeKubeconfig(ctx, member, config, systemNamespace, agentAccount, kubeconfig)
}

// handOver writes what an agent needs for its first sign-in: the hub's CA certificate and a bootstrap token. The token is a
// new one each time, since an agent that is started late, or whose MemberCluster was made again, has no use for the one
// before; an agent that has its certificate does not look at it.
func (f *Fleet) handOver(ctx context.Context, hub client.WithWatch, hubConfig *rest.Config, name, files string) error {
	namespace := placementv1.MemberNamespacePrefix + name
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = namespace, clusterv1.BootstrapServiceAccount
	if err := waitUntilFound(ctx, hub, account); err != nil {
		return fmt.Errorf("wait for service account %s/%s, which the hub makes: %w", namespace, account.Name, err)
	}
	bootstrap, err := token(ctx, hub, namespace, account.Name, bootstrapSeconds)
	if err != nil {
		return err
	}
	ca, err := authority(hubConfig)
	if err != nil {
		return err
	}
	if err := writePrivate(filepath.Join(files, "hub-ca.crt"), ca); err != nil {
		return err
	}
	return writePrivate(filepath.Join(files, "bootstrap-token"), []byte(bootstrap))
}

// start starts a process of the sandbox; one that runs is left alone.
func (f *Fleet) start(ctx context.Context, name string, command []string) error {
	return f.Sandbox(ctx, append([]string{"run", name, "--"}, command...)...)
}

func (f *Fleet) waitJoined(ctx context.Context, hub client.WithWatch, name string) error {
	cluster := &clusterv1.MemberCluster{}
	cluster.Name = name
	return waitUntil(ctx, hub, cluster, func() bool {
		return meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionJoined)
	})
}

func (f *Fleet) say(text string) { fmt.Fprintln(f.Out, text) }

// ensureAccount makes the system namespace and a service account in it.
func ensureAccount(ctx context.Context, c client.Client, name string) error {
	namespace := &corev1.Namespace{}
	namespace.Name = systemNamespace
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = systemNamespace, name
	for _, object := range []client.Object{namespace, account} {
		if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// PID returns the process ID of one of the sandbox's processes.
func (f *Fleet) PID(process string) (int, error) {
	content, err := os.ReadFile(filepath.Join(f.Dir, "state.json"))
	if err != nil {
		return 0, fmt.Errorf("read the sandbox's state: %w", err)
	}
	var state struct {
		Processes []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"processes"`
	}
	if err := json.Unmarshal(content, &state); err != nil {
		return 0, fmt.Errorf("understand the sandbox's state: %w", err)
	}
	for _, p := range state.Processes {
		if p.Name == process {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("the sandbox has no process %s", process)
}
