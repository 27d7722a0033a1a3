package properties

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// podStore receives pods from a watch and keeps their figures alone.
type podStore struct {
	tally   *tally
	changed func()
}

var _ cache.TransformingStore = &podStore{}

// Transformer lets a list that arrives piece by piece never be whole in memory.
func (s *podStore) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			return lean(pod), nil
		}
		return object, nil
	}
}

// lean is a pod without what is of no interest.
func lean(pod *corev1.Pod) *corev1.Pod {
	containers := func(full []corev1.Container) []corev1.Container {
		out := make([]corev1.Container, 0, len(full))
		for i := range full {
			out = append(out, corev1.Container{Name: full[i].Name, Resources: corev1.ResourceRequirements{Requests: full[i].Resources.Requests}, RestartPolicy: full[i].RestartPolicy})
		}
		return out
	}
	statuses := func(full []corev1.ContainerStatus) []corev1.ContainerStatus {
		out := make([]corev1.ContainerStatus, 0, len(full))
		for i := range full {
			out = append(out, corev1.ContainerStatus{Name: full[i].Name, Resources: full[i].Resources, AllocatedResources: full[i].AllocatedResources})
		}
		return out
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
			Containers: containers(pod.Spec.Containers), InitContainers: containers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, Resize: pod.Status.Resize,
			ContainerStatuses: statuses(pod.Status.ContainerStatuses), InitContainerStatuses: statuses(pod.Status.InitContainerStatuses),
		},
	}
}

// Add takes note of a pod.
func (s *podStore) Add(object any) error { return s.Update(object) }

// Update takes note of a pod as it is now.
func (s *podStore) Update(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("want a Pod, got %T", object)
	}
	s.tally.pod(pod)
	s.changed()
	return nil
}

// Delete forgets a pod.
func (s *podStore) Delete(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("want a Pod, got %T", object)
	}
	s.tally.mu.Lock()
	delete(s.tally.pods, pod.UID)
	s.tally.mu.Unlock()
	s.changed()
	return nil
}

// Replace takes note of all pods at once.
func (s *podStore) Replace(objects []any, _ string) error {
	pods := make(map[types.UID]podFigures, len(objects))
	for _, object := range objects {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("want a Pod, got %T", object)
		}
		if counts(pod) {
			pods[pod.UID] = figuresOf(pod)
		}
	}
	s.tally.mu.Lock()
	s.tally.pods, s.tally.podsKnown = pods, true
	s.tally.mu.Unlock()
	s.changed()
	return nil
}

// Resync does nothing.
func (s *podStore) Resync() error { return nil }

// nodeStore receives nodes from a watch and keeps their figures alone.
type nodeStore struct {
	tally   *tally
	changed func()
}

// Add takes note of a node.
func (s *nodeStore) Add(object any) error { return s.Update(object) }

// Update takes note of a node as it is now.
func (s *nodeStore) Update(object any) error {
	node, ok := object.(*corev1.Node)
	if !ok {
		return fmt.Errorf("want a Node, got %T", object)
	}
	s.tally.node(node)
	s.changed()
	return nil
}

// Delete forgets a node.
func (s *nodeStore) Delete(object any) error {
	node, ok := object.(*corev1.Node)
	if !ok {
		return fmt.Errorf("want a Node, got %T", object)
	}
	s.tally.mu.Lock()
	delete(s.tally.nodes, node.UID)
	s.tally.mu.Unlock()
	s.changed()
	return nil
}

// Replace takes note of all nodes at once.
func (s *nodeStore) Replace(objects []any, _ string) error {
	nodes := make(map[types.UID]nodeFigures, len(objects))
	for _, object := range objects {
		node, ok := object.(*corev1.Node)
		if !ok {
			return fmt.Errorf("want a Node, got %T", object)
		}
		nodes[node.UID] = nodeFigures{capacity: node.Status.Capacity, allocatable: node.Status.Allocatable}
	}
	s.tally.mu.Lock()
	s.tally.nodes, s.tally.nodesKnown = nodes, true
	s.tally.mu.Unlock()
	s.changed()
	return nil
}

// Resync does nothing.
func (s *nodeStore) Resync() error { return nil }
