package policies_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWorkloads(t *testing.T) {
	install(t)
	admin := framework.Client(t, hub)
	const refusal = "is a template for the member clusters; place the namespace with a ClusterResourcePlacement to run it there"
	for namespace, refused := range map[string]bool{
		"default": true, "web": true, "my-kube-system": true, "fleet": true, "kubernetes": true,
		"kube-system": false, "fleet-system": false, "fleet-member-member1": false, "fleetwright-system": false,
	} {
		t.Run(namespace, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			if err := admin.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
				t.Fatalf("create namespace %s: %v", namespace, err)
			}
			c := as(t, "anna")
			for _, object := range workloads(namespace) {
				err := c.Create(t.Context(), object, client.DryRunAll)
				switch {
				case !refused && err != nil:
					t.Errorf("%T: %v, want it accepted", object, err)
				case refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal)):
					t.Errorf("%T: %v, want it forbidden with %q", object, err, refusal)
				}
			}
			if err := c.Create(t.Context(), deployment(namespace), client.DryRunAll); err != nil {
				t.Errorf("a Deployment, which is a template: %v", err)
			}
		})
	}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
}

func workloads(namespace string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: "web-"}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return []client.Object{
		&corev1.Pod{ObjectMeta: meta, Spec: template().Spec},
		&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template()}},
	}
}

func deployment(namespace string) client.Object {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "web-"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template(),
		},
	}
}
