package properties

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func resources(cpu, memory string, more ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if quantity != "" {
			list[name] = resource.MustParse(quantity)
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		list[corev1.ResourceName(more[i])] = resource.MustParse(more[i+1])
	}
	return list
}

func node(name string, list corev1.ResourceList) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list},
	}
}

// pod is a pod on a node with a container for each list of requests.
func pod(name string, requests ...corev1.ResourceList) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: "n1"}}
	for i, r := range requests {
		p.Spec.Containers = append(p.Spec.Containers, container(strconv.Itoa(i), r))
	}
	return p
}

func container(name string, requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: "c" + name, Image: "image", Resources: corev1.ResourceRequirements{Requests: requests}}
}

func with(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

// texts writes quantities as people read them.
func texts(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

func TestAvailable(t *testing.T) {
	t.Parallel()
	two := []*corev1.Node{node("n1", resources("8", "32Gi", "pods", "110")), node("n2", resources("8", "32Gi", "pods", "110"))}
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  map[string]string
	}{
		"nothing":            {want: map[string]string{}},
		"nodes without pods": {nodes: two, want: map[string]string{"cpu": "16", "memory": "64Gi", "pods": "220"}},
		"containers add up":  {nodes: two, pods: []*corev1.Pod{pod("a", resources("100m", "1Gi"), resources("1", "1Gi"))}, want: map[string]string{"cpu": "14900m", "memory": "62Gi", "pods": "219"}},
		"no requests at all": {nodes: two, pods: []*corev1.Pod{pod("a", nil)}, want: map[string]string{"cpu": "16", "memory": "64Gi", "pods": "219"}},
		"waits for a node":   {nodes: two, pods: []*corev1.Pod{with(pod("a", resources("1", "1Gi")), func(p *corev1.Pod) { p.Spec.NodeName = "" })}, want: map[string]string{"cpu": "16", "memory": "64Gi", "pods": "220"}},
		"has succeeded":      {nodes: two, pods: []*corev1.Pod{with(pod("a", resources("1", "1Gi")), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, want: map[string]string{"cpu": "16", "memory": "64Gi", "pods": "220"}},
		"has failed":         {nodes: two, pods: []*corev1.Pod{with(pod("a", resources("1", "1Gi")), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, want: map[string]string{"cpu": "16", "memory": "64Gi", "pods": "220"}},
		"never below zero":   {nodes: two[:1], pods: []*corev1.Pod{pod("a", resources("9", "1Gi"))}, want: map[string]string{"cpu": "0", "memory": "31Gi", "pods": "109"}},
		"what no node has":   {nodes: two[:1], pods: []*corev1.Pod{pod("a", resources("1", "1Gi", "example.com/gpu", "1"))}, want: map[string]string{"cpu": "7", "memory": "31Gi", "pods": "109"}},
		"an extended resource": {
			nodes: []*corev1.Node{node("n1", resources("8", "32Gi", "example.com/gpu", "4"))}, pods: []*corev1.Pod{pod("a", resources("", "", "example.com/gpu", "1"))},
			want: map[string]string{"cpu": "8", "memory": "32Gi", "example.com/gpu": "3"},
		},
		"an init container larger than all others": {
			nodes: two,
			pods: []*corev1.Pod{with(pod("a", resources("1", "1Gi")), func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{container("init", resources("4", "512Mi"))}
			})},
			want: map[string]string{"cpu": "12", "memory": "63Gi", "pods": "219"},
		},
		"a sidecar counts beside the others": {
			nodes: two,
			pods: []*corev1.Pod{with(pod("a", resources("1", "1Gi")), func(p *corev1.Pod) {
				sidecar := container("side", resources("1", "1Gi"))
				sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
				p.Spec.InitContainers = []corev1.Container{sidecar}
			})},
			want: map[string]string{"cpu": "14", "memory": "62Gi", "pods": "219"},
		},
		"overhead": {
			nodes: two,
			pods:  []*corev1.Pod{with(pod("a", resources("1", "1Gi")), func(p *corev1.Pod) { p.Spec.Overhead = resources("500m", "1Gi") })},
			want:  map[string]string{"cpu": "14500m", "memory": "62Gi", "pods": "219"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A pod must count for the same however it arrives: in a list, alone, whole or lean.
			for way, feed := range map[string]func(s *podStore, p []*corev1.Pod) error{
				"list": func(s *podStore, p []*corev1.Pod) error { return s.Replace(anySlice(p), "") },
				"events": func(s *podStore, p []*corev1.Pod) error {
					for _, one := range p {
						if err := s.Add(one); err != nil {
							return err
						}
						if err := s.Update(lean(one)); err != nil {
							return err
						}
					}
					return nil
				},
			} {
				ty := tally{nodes: map[types.UID]nodeFigures{}, pods: map[types.UID]podFigures{}}
				nodes := &nodeStore{tally: &ty, changed: func() {}}
				pods := &podStore{tally: &ty, changed: func() {}}
				if err := nodes.Replace(anySlice(tc.nodes), ""); err != nil {
					t.Fatal(err)
				}
				if _, known := ty.report(); known {
					t.Fatal("there is a report before pods were seen")
				}
				if err := pods.Replace(nil, ""); err != nil {
					t.Fatal(err)
				}
				if err := feed(pods, tc.pods); err != nil {
					t.Fatal(err)
				}
				report, known := ty.report()
				if !known {
					t.Fatal("there is no report")
				}
				if diff := cmp.Diff(tc.want, texts(report.Available)); diff != "" {
					t.Errorf("%s: available (-want +got):\n%s", way, diff)
				}
				if got := report.Properties["kubernetes-fleet.io/node-count"]; got != strconv.Itoa(len(tc.nodes)) {
					t.Errorf("%s: node count %s, want %d", way, got, len(tc.nodes))
				}
			}
		})
	}
}

func anySlice[T any](in []T) []any {
	out := make([]any, 0, len(in))
	for _, one := range in {
		out = append(out, one)
	}
	return out
}

func TestGoneIsForgotten(t *testing.T) {
	t.Parallel()
	ty := tally{nodes: map[types.UID]nodeFigures{}, pods: map[types.UID]podFigures{}}
	changes := 0
	nodes := &nodeStore{tally: &ty, changed: func() { changes++ }}
	pods := &podStore{tally: &ty, changed: func() { changes++ }}
	n1, n2, a := node("n1", resources("8", "32Gi")), node("n2", resources("8", "32Gi")), pod("a", resources("1", "1Gi"))
	for _, err := range []error{nodes.Replace(nil, ""), pods.Replace(nil, ""), nodes.Add(n1), nodes.Add(n2), pods.Add(a), nodes.Delete(n2), pods.Delete(a)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	report, _ := ty.report()
	if diff := cmp.Diff(map[string]string{"cpu": "8", "memory": "32Gi"}, texts(report.Available)); diff != "" {
		t.Errorf("available (-want +got):\n%s", diff)
	}
	if changes != 7 {
		t.Errorf("%d changes were told of, want 7", changes)
	}
	for _, err := range []error{pods.Add(n1), pods.Delete(n1), pods.Replace([]any{n1}, ""), nodes.Add(a), nodes.Delete(a), nodes.Replace([]any{a}, "")} {
		if err == nil {
			t.Error("a node is taken for a pod, or a pod for a node")
		}
	}
}
