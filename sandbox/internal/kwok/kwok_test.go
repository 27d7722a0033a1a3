package kwok

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestEnsureNodesAddsOnlyWhatIsMissing(t *testing.T) {
	existing := node("member1-node1")
	existing.Labels["mine"] = "yes"
	client := fake.NewClientset(existing)
	if err := EnsureNodes(t.Context(), client, "member1", 2); err != nil {
		t.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range nodes.Items {
		names = append(names, n.Name)
		if cpu := n.Status.Allocatable.Cpu().String(); cpu != "8" {
			t.Errorf("node %s offers %s CPUs", n.Name, cpu)
		}
		if n.Name == existing.Name && n.Labels["mine"] != "yes" {
			t.Error("an existing node was changed")
		}
	}
	slices.Sort(names)
	if want := []string{"member1-node1", "member1-node2"}; !slices.Equal(names, want) {
		t.Errorf("got nodes %v, want %v", names, want)
	}
}

func TestTakesPods(t *testing.T) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	notReady := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		taints     []corev1.Taint
		want       bool
	}{
		"new":         {},
		"ready":       {conditions: []corev1.NodeCondition{ready}, want: true},
		"lost":        {conditions: []corev1.NodeCondition{notReady}},
		"still taint": {conditions: []corev1.NodeCondition{ready}, taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("n")
			n.Status.Conditions, n.Spec.Taints = tc.conditions, tc.taints
			if got := takesPods(n); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestProcessReadsEveryStage(t *testing.T) {
	p := Process("member1", "/bin/kwok", "/dir", "/logs", "/kubeconfig", 20000)
	for _, want := range []string{"--config=/bin/kwok/stages/pod-ready.yaml", "--node-port=20000", "--server-address=127.0.0.1:20000"} {
		if !slices.Contains(p.Command, want) {
			t.Errorf("command %v lacks %s", p.Command, want)
		}
	}
	if p.Name != "member1-kwok" || p.Log != "/logs/member1-kwok.log" {
		t.Errorf("got name %s and log %s", p.Name, p.Log)
	}
}
