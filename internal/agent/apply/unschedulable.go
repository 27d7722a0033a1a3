package apply

import (
	"context"
	"time"

	"github.com/fleetwright/fleetwright/internal/placement"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// UnschedulableAfter is how long pods must have found no node to be reported, where Options says nothing else.
const UnschedulableAfter = 30 * time.Second

// podOwners are the workloads whose pods are looked at.
var podOwners = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "batch", Kind: "Job"}: true,
}

// unschedulable counts the pods of a workload for which the member's scheduler has had no node for some time, where the hub has the
// workload's status reported: it may find them another cluster. A workload that lacks pods is looked at again after that time.
func (p *pass) unschedulable(ctx context.Context, m *manifest) int32 {
	if !podOwners[m.key.GroupKind] || !p.work.Spec.ReportBackStrategy.Mirrors() || p.strategy.ReportsOnly() || m.reason != "" || m.live == nil {
		return 0
	}
	live := p.latest(m)
	wanted, _, err := placement.Replicas(live)
	ready, _, _ := unstructured.NestedInt64(live.Object, "status", "readyReplicas")
	running, _, _ := unstructured.NestedInt64(live.Object, "status", "ready") // of a Job
	ended, _, _ := unstructured.NestedInt64(live.Object, "status", "succeeded")
	if err != nil || max(ready, running)+ended >= int64(wanted) {
		return 0
	}
	p.lookAgain(p.UnschedulableAfter)
	fields, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	said := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, said); err != nil || len(fields) == 0 {
		return 0
	}
	selector, err := metav1.LabelSelectorAsSelector(said)
	if err != nil {
		return 0
	}
	pods, err := p.resource(corev1.SchemeGroupVersion.WithResource("pods"), m.id.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: selector.String(), FieldSelector: "status.phase=Pending", ResourceVersion: "0",
	})
	if err != nil {
		log.FromContext(ctx).V(1).Info("Cannot look for pods without a node", "object", m.key.String(), "reason", err.Error())
		return 0
	}
	count := int32(0)
	for i := range pods.Items {
		if p.hasNoNode(&pods.Items[i]) {
			count++
		}
	}
	return count
}

// hasNoNode tells whether a pod has found no node for long enough.
func (p *pass) hasNoNode(object *unstructured.Unstructured) bool {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil || pod.DeletionTimestamp != nil {
		return false
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return p.Clock.Since(c.LastTransitionTime.Time) >= p.UnschedulableAfter
		}
	}
	return false
}
