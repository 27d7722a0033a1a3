// Package framework starts what tests need: real API servers with our CRDs and policies installed.
package framework

import (
	"os"
	"path/filepath"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
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
	for _, add := range []func(*k8sruntime.Scheme) error{clientgoscheme.AddToScheme, placementv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			panic("register API types: " + err.Error())
		}
	}
	return s
}

// StartAPIServer starts etcd and an API server with our CRDs and stops both when the test ends. The binaries are those of
// the sandbox, in bin/k8s, which `make envtest` builds.
func StartAPIServer(t testing.TB) *rest.Config {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(Root(), "bin", "k8s")
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{filepath.Join(Root(), "config", "crd")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := env.Start()
	if err != nil {
		t.Fatalf("start an API server with the binaries in %s (`make envtest` builds them): %v", assets, err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	config.QPS = -1
	return config
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
