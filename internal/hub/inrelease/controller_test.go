package inrelease

import (
	"context"
	"os"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// start runs the controller until the test ends.
func start(t *testing.T) {
	t.Helper()
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: framework.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Controller{Client: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

// The annotation follows what the clusters report, whatever the order, and goes with the last release.
func TestAnnotation(t *testing.T) {
	c, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
	rollout := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
		"strategy":    map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"replicas": "100%"}}}},
	}}}
	rollout.SetGroupVersionKind(kruise.Rollouts)
	rollout.SetNamespace("default")
	rollout.SetName("web")
	rollout.SetAnnotations(map[string]string{placementv1.AnnotationInRelease: "left-long-ago", "mine": "stays"})
	create(rollout)
	work := func(cluster string) *placementv1.Work {
		t.Helper()
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placementv1.MemberNamespacePrefix + cluster}})
		w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: placementv1.MemberNamespacePrefix + cluster, Name: "web"}}
		create(w)
		return w
	}
	reports := func(w *placementv1.Work, name string, status metav1.ConditionStatus, reason string) {
		t.Helper()
		m := placementv1.ManifestCondition{Identifier: placementv1.WorkResourceIdentifier{
			Group: "rollouts.kruise.io", Version: "v1beta1", Kind: "Rollout", Resource: "rollouts", Namespace: "default", Name: name,
		}, Conditions: []metav1.Condition{}}
		if reason != "" {
			m.Conditions = append(m.Conditions, metav1.Condition{Type: placementv1.ConditionAvailable, Status: status, Reason: reason, LastTransitionTime: metav1.Now()})
		} else {
			m.Conditions = append(m.Conditions, metav1.Condition{Type: placementv1.ConditionApplied, Status: status, Reason: placementv1.ReasonManifestApplyFailed, LastTransitionTime: metav1.Now()})
		}
		w.Status.ManifestConditions = []placementv1.ManifestCondition{m}
		if err := c.Status().Update(t.Context(), w); err != nil {
			t.Fatalf("write the status of Work %s: %v", client.ObjectKeyFromObject(w), err)
		}
	}
	stands := func(want string) {
		t.Helper()
		framework.Await(t, c, rollout, "is in release in "+want, func(o *unstructured.Unstructured) bool {
			return o.GetAnnotations()[placementv1.AnnotationInRelease] == want && o.GetAnnotations()["mine"] == "stays"
		})
	}
	one, two := work("one"), work("two")
	reports(two, "web", metav1.ConditionFalse, placementv1.ReasonManifestPaused)
	start(t)
	stands("two")
	reports(one, "web", metav1.ConditionFalse, placementv1.ReasonManifestUpdatedByRollout)
	stands("one,two")
	reports(two, "other", metav1.ConditionFalse, placementv1.ReasonManifestPaused)
	stands("one")
	reports(two, "web", metav1.ConditionFalse, placementv1.ReasonManifestPaused)
	stands("one,two")
	reports(one, "web", metav1.ConditionTrue, placementv1.ReasonManifestAvailable)
	stands("two")
	reports(two, "web", metav1.ConditionFalse, "") // it cannot be applied, which says nothing of the release
	reports(one, "web", metav1.ConditionFalse, placementv1.ReasonManifestPaused)
	stands("one,two")
	if err := c.Delete(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	stands("one")
	reports(one, "web", metav1.ConditionFalse, placementv1.ReasonManifestNotAvailableYet)
	stands("")
}
