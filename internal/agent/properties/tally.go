package properties

import (
	"maps"
	"strconv"
	"sync"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
)

// tally adds up nodes and pods. Of each it keeps the least that it needs: a cluster may have a hundred thousand pods, and
// the agent is to stay small.
type tally struct {
	mu    sync.Mutex
	nodes map[types.UID]nodeFigures
	pods  map[types.UID]podFigures
	// nodesKnown and podsKnown tell whether a whole list was seen.
	nodesKnown, podsKnown bool
}

type nodeFigures struct{ capacity, allocatable corev1.ResourceList }

// podFigures are what a pod requests: CPU in thousandths, memory in bytes, and what else there may be.
type podFigures struct {
	cpu, memory int64
	others      corev1.ResourceList
}

func figuresOf(pod *corev1.Pod) podFigures {
	requests := podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
	f := podFigures{cpu: requests.Cpu().MilliValue(), memory: requests.Memory().Value()}
	for name, quantity := range requests {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || quantity.IsZero() {
			continue
		}
		if f.others == nil {
			f.others = corev1.ResourceList{}
		}
		f.others[name] = quantity
	}
	return f
}

// counts tells whether a pod takes something from a node.
func counts(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// pod takes note of a pod as it is now.
func (t *tally) pod(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if counts(pod) {
		t.pods[pod.UID] = figuresOf(pod)
	} else {
		delete(t.pods, pod.UID)
	}
}

// node takes note of a node as it is now.
func (t *tally) node(node *corev1.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes[node.UID] = nodeFigures{capacity: node.Status.Capacity, allocatable: node.Status.Allocatable}
}

// report adds up.
func (t *tally) report() (Report, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.nodesKnown || !t.podsKnown {
		return Report{}, false
	}
	capacity, allocatable := corev1.ResourceList{}, corev1.ResourceList{}
	for _, node := range t.nodes {
		add(capacity, node.capacity)
		add(allocatable, node.allocatable)
	}
	return Report{
		Properties:  map[string]string{clusterv1.NodeCountProperty: strconv.Itoa(len(t.nodes))},
		Capacity:    capacity,
		Allocatable: allocatable,
		Available:   t.available(allocatable),
	}, true
}

// available is what pods leave of what nodes give. The lock is held.
func (t *tally) available(allocatable corev1.ResourceList) corev1.ResourceList {
	left := maps.Clone(allocatable)
	var cpu, memory int64
	for _, pod := range t.pods {
		cpu += pod.cpu
		memory += pod.memory
		for name, quantity := range pod.others {
			take(left, name, quantity)
		}
	}
	take(left, corev1.ResourceCPU, *resource.NewMilliQuantity(cpu, resource.DecimalSI))
	take(left, corev1.ResourceMemory, *resource.NewQuantity(memory, resource.BinarySI))
	take(left, corev1.ResourcePods, *resource.NewQuantity(int64(len(t.pods)), resource.DecimalSI))
	for name, quantity := range left {
		if quantity.Sign() < 0 {
			quantity.Set(0)
			left[name] = quantity
		}
	}
	return left
}

func add(total, part corev1.ResourceList) {
	for name, quantity := range part {
		sum := total[name]
		if sum.IsZero() {
			sum = quantity.DeepCopy() // and with it the way of writing
		} else {
			sum.Add(quantity)
		}
		total[name] = sum
	}
}

// take subtracts, for resources that nodes give at all.
func take(left corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if rest, ok := left[name]; ok {
		rest.Sub(quantity)
		left[name] = rest
	}
}
