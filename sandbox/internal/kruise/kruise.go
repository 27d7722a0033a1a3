// Package kruise runs Kruise Rollouts for a cluster from outside of it.
package kruise

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// ManifestsFile is the file beside the program with what its cluster needs. The build renders it.
const ManifestsFile = "manifests.yaml"

// namespace is where Kruise Rollouts would run if it ran in the cluster.
const namespace = "kruise-rollout"

// Ports are the ports of one Kruise Rollouts process.
type Ports struct {
	Webhook, Health, Metrics int
}

// Process describes the process that manages the rollouts of a cluster.
func Process(cluster, bin, dir, logs, kubeconfig string, ports Ports) state.Process {
	name := cluster + "-kruise"
	health := "127.0.0.1:" + strconv.Itoa(ports.Health)
	return state.Process{
		Name:    name,
		Cluster: cluster,
		Command: []string{
			filepath.Join(bin, "rollouts"),
			"--feature-gates=AdvancedDeployment=true",
			"--health-probe-bind-address=" + health,
			"--metrics-bind-address=127.0.0.1:" + strconv.Itoa(ports.Metrics),
		},
		Env: []string{
			"KUBECONFIG=" + kubeconfig,
			"POD_NAMESPACE=" + namespace,
			"WEBHOOK_HOST=127.0.0.1",
			"WEBHOOK_PORT=" + strconv.Itoa(ports.Webhook),
			"WEBHOOK_CERT_DIR=" + filepath.Join(dir, "kruise-webhook"),
			"WEBHOOK_CERT_WRITER=fs",
		},
		Dir:     dir,
		Address: "https://127.0.0.1:" + strconv.Itoa(ports.Webhook),
		Ready:   "http://" + health + "/readyz",
		Log:     filepath.Join(logs, name+".log"),
	}
}

// Probe asks whether the cluster accepts Rollouts, without creating any. For that the API server must reach Kruise's
// webhooks, both to validate Rollouts and to convert between their versions.
func Probe(ctx context.Context, client dynamic.Interface) error {
	workload := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "sandbox-probe"}
	strategy := map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"replicas": "100%"}}}}
	for version, spec := range map[string]map[string]any{
		"v1alpha1": {"objectRef": map[string]any{"workloadRef": workload}, "strategy": strategy},
		"v1beta1":  {"workloadRef": workload, "strategy": strategy},
	} {
		gv := schema.GroupVersion{Group: "rollouts.kruise.io", Version: version}
		rollout := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gv.String(),
			"kind":       "Rollout",
			"metadata":   map[string]any{"name": "sandbox-probe"},
			"spec":       spec,
		}}
		_, err := client.Resource(gv.WithResource("rollouts")).Namespace(metav1.NamespaceDefault).
			Create(ctx, rollout, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return fmt.Errorf("creating a Rollout of version %s as a dry run: %w", version, err)
		}
	}
	return nil
}
