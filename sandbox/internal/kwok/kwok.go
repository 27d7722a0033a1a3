// Package kwok gives a cluster simulated nodes, on which pods run without containers.
package kwok

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// Stages are the files that say how nodes and pods live, in KWOK's module below kustomize/stage. The build puts them
// beside the program.
var Stages = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

// StageFile returns where the build puts a stage file, given KWOK's folder among the programs.
func StageFile(bin, stage string) string {
	return filepath.Join(bin, "stages", filepath.Base(stage))
}

// Process describes the process that plays the kubelets of all nodes of a cluster.
func Process(cluster, bin, dir, logs, kubeconfig string, port int) state.Process {
	name := cluster + "-kwok"
	address := "127.0.0.1:" + strconv.Itoa(port)
	command := []string{
		filepath.Join(bin, "kwok"),
		"--kubeconfig=" + kubeconfig,
		"--manage-all-nodes",
		"--node-lease-duration-seconds=40",
		"--node-ip=127.0.0.1",
		"--node-port=" + strconv.Itoa(port),
		"--server-address=" + address,
	}
	for _, stage := range Stages {
		command = append(command, "--config="+StageFile(bin, stage))
	}
	return state.Process{
		Name:    name,
		Cluster: cluster,
		Command: command,
		Dir:     dir,
		Address: "http://" + address,
		Ready:   "http://" + address + "/readyz",
		Log:     filepath.Join(logs, name+".log"),
	}
}

// EnsureNodes creates the nodes that a cluster lacks of a number, each with 8 CPUs, 32Gi of memory and room for 110 pods.
func EnsureNodes(ctx context.Context, client kubernetes.Interface, cluster string, count int) error {
	for i := range count {
		node := node(cluster + "-node" + strconv.Itoa(i+1))
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", node.Name, err)
		}
	}
	return nil
}

// WaitNodesReady waits until a number of nodes of the cluster take pods.
func WaitNodesReady(ctx context.Context, client kubernetes.Interface, cluster string, count int) error {
	nodes := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "nodes", "", func(*metav1.ListOptions) {})
	ready := map[string]bool{}
	_, err := watchtools.UntilWithSync(ctx, nodes, &corev1.Node{}, nil, func(event watch.Event) (bool, error) {
		if node, ok := event.Object.(*corev1.Node); ok {
			ready[node.Name] = event.Type != watch.Deleted && takesPods(node)
		}
		maps.DeleteFunc(ready, func(_ string, isReady bool) bool { return !isReady })
		return len(ready) >= count, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d nodes of cluster %s to be ready, %d are: %w", count, cluster, len(ready), err)
	}
	return nil
}

// takesPods reports whether a node is ready and the taint is gone that it had while it was not.
func takesPods(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoSchedule {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func node(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity.DeepCopy()},
	}
}
