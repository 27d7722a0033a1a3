package e2e

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// content is a whole object in an envelope.
func content(json string) placementv1.ResourceContent {
	return placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(json)}}
}

// TestEnvelopes places a quota and a priority class that do nothing on the hub. An entry that may not be in its envelope is left
// out and named, and everything else arrives; one that gives rights is refused at once.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const name = "envelopes"
	create(t, hub, namespace(name))
	wide := create(t, hub, &placementv1.ClusterResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]placementv1.ResourceContent{
		"class.yaml": content(`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"e2e-envelopes"},"value":7}`),
		"stray.yaml": content(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"stray","namespace":"envelopes"}}`),
	}})
	narrow := &placementv1.ResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Data: map[string]placementv1.ResourceContent{
		"role.yaml": content(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"all","namespace":"envelopes"}}`),
	}}
	if err := hub.Create(t.Context(), narrow); err == nil || !strings.Contains(err.Error(), "cannot carry objects that give rights") {
		t.Errorf("a Role in a ResourceEnvelope: %v", err)
	}
	narrow.Data = map[string]placementv1.ResourceContent{
		"quota.yaml": content(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"full","namespace":"envelopes"},"spec":{"hard":{"pods":"2"}}}`),
	}
	create(t, hub, narrow)
	p := placeNamespace(name, name, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, placementv1.ResourceSelector{
		Group: placementv1.GroupVersion.Group, Version: "v1beta1", Kind: "ClusterResourceEnvelope", Name: name,
	})
	placement := create(t, hub, p)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "e2e-envelopes"}}
	for i := range m {
		framework.Await(t, m[i], fullQuota(name), "counts", func(q *corev1.ResourceQuota) bool { return q.Status.Hard.Pods().Value() == 2 })
		framework.Await(t, m[i], class, "exists", func(c *schedulingv1.PriorityClass) bool { return c.Value == 7 })
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(class), class); !apierrors.IsNotFound(err) {
		t.Errorf("the hub has the PriorityClass itself: %v", err)
	}
	framework.Await(t, hub, placement, "names the entry that may not be there", func(p *placementv1.ClusterResourcePlacement) bool {
		c := rowCondition(p, "member3", "WorkSynchronized")
		return c.Reason == placementv1.ReasonSyncWorkFailed && strings.Contains(c.Message, `entry "stray.yaml" of ClusterResourceEnvelope envelopes`)
	})
	change(t, hub, wide, `{"data":{"stray.yaml":null}}`)
	awaitAvailable(t, hub, placement)
}
