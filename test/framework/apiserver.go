// Package framework starts what tests need: real API servers with our CRDs and policies installed.
package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	inventoryv1alpha1 "github.com/fleetwright/fleetwright/api/inventory/v1alpha1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	rolloutsv1beta1 "github.com/fleetwright/fleetwright/api/rollouts/v1beta1"
	"github.com/go-logr/logr"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Root is the repository's root folder: the nearest one above the working directory, which for a test is its package's
// folder, that holds the main module.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic("find the repository's root: " + err.Error())
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	panic("find the repository's root: no go.mod above the working directory")
}

// Scheme knows the Kubernetes kinds and ours.
func Scheme() *k8sruntime.Scheme {
	s := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{
		clientgoscheme.AddToScheme, placementv1.AddToScheme, policyv1alpha1.AddToScheme, clusterv1.AddToScheme, inventoryv1alpha1.AddToScheme, rolloutsv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic("register API types: " + err.Error())
		}
	}
	return s
}

// StartAPIServer starts etcd and a hub's API server, with the definitions of the hub, and stops both when the test ends.
// The binaries are those of the sandbox, in bin/k8s, which `make envtest` builds.
func StartAPIServer(t testing.TB) *rest.Config {
	t.Helper()
	return startForTest(t, hubDefinitions)
}

// StartMemberAPIServer starts etcd and a member's API server, with the definitions of a member.
func StartMemberAPIServer(t testing.TB) *rest.Config {
	t.Helper()
	return startForTest(t, memberDefinitions)
}

// RunWithAPIServer is for a TestMain whose tests share one hub's API server: it starts the server, hands out its
// configuration, runs the tests, stops the server and returns the exit code. What controllers log is seen with VERBOSE=1.
func RunWithAPIServer(m *testing.M, config **rest.Config) int {
	return runWith(m, hubDefinitions, config)
}

// RunWithMemberAPIServer is RunWithAPIServer with a member's API server.
func RunWithMemberAPIServer(m *testing.M, config **rest.Config) int {
	return runWith(m, memberDefinitions, config)
}

// The folders in config/crd.
const (
	hubDefinitions    = "hub"
	memberDefinitions = "member"
)

func startForTest(t testing.TB, definitions string) *rest.Config {
	t.Helper()
	config, stop, err := start(definitions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return config
}

func runWith(m *testing.M, definitions string, config **rest.Config) int {
	logger := logr.Discard()
	if os.Getenv("VERBOSE") != "" {
		logger = klog.Background()
	}
	ctrl.SetLogger(logger)
	started, stop, err := start(definitions)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*config = started
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
		return 1
	}
	return code
}

// start starts an API server with the definitions in a folder of config/crd.
func start(definitions string) (config *rest.Config, stop func() error, err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(Root(), "bin", "k8s")
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{filepath.Join(Root(), "config", "crd", definitions)},
		ErrorIfCRDPathMissing: true,
		// Its own 20 seconds are not enough on a machine that is busy with other tests.
		ControlPlaneStartTimeout: Patience,
		ControlPlaneStopTimeout:  Patience,
	}
	config, err = env.Start()
	if err != nil {
		return nil, nil, fmt.Errorf("start an API server with the binaries in %s (`make envtest` builds them): %w", assets, err)
	}
	config.QPS = -1
	return config, env.Stop, nil
}

// Client returns a client without a cache.
func Client(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return c
}
