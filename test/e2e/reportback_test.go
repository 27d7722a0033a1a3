package e2e

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestReportBack places a Deployment on one member, which runs it; the hub's Deployment, which the hub does not run, shows that. A
// placement that may choose a second cluster is refused.
func TestReportBack(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	const ns = "report-back"
	create(t, hub, namespace(ns))
	labels := map[string]string{"app": "web"}
	d := create(t, hub, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	})
	p := placeNamespace(ns, ns, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType, ClusterNames: []string{"member1"}}
	p.Spec.Strategy.ReportBackStrategy = &placementv1.ReportBackStrategy{
		Type: placementv1.ReportBackStrategyTypeMirror, Destination: placementv1.ReportBackDestinationOriginalResource,
	}
	placement := create(t, hub, p)
	ready := func(replicas int32) {
		t.Helper()
		framework.Await(t, hub, d, "shows what the member has", func(d *appsv1.Deployment) bool {
			return d.Status.ReadyReplicas == replicas && d.Status.UpdatedReplicas == replicas && d.Status.ObservedGeneration == d.Generation
		})
	}
	ready(2)
	if err := hub.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))); err != nil {
		t.Fatal(err)
	}
	ready(3)
	second := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"policy":{"clusterNames":["member1","member2"]}}}`))
	if err := hub.Patch(t.Context(), placement, second); err == nil {
		t.Error("a second cluster was taken, of which the hub's Deployment could not show the status")
	}
}
