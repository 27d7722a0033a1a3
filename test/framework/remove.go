package framework

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Remove deletes an object and waits until it is gone, at the end of a test too. It plays the namespace controller, which
// an API server alone does not have: a namespace goes at once. What is in it is the test's to remove before.
func Remove(t testing.TB, c client.WithWatch, o client.Object) {
	t.Helper()
	ctx := CleanupContext(t)
	if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
		t.Errorf("delete %T %s: %v", o, client.ObjectKeyFromObject(o), err)
		return
	}
	if o.GetObjectKind().GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Namespace") {
		namespace := &corev1.Namespace{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), namespace); err == nil {
			namespace.Spec.Finalizers = nil
			if err := c.SubResource("finalize").Update(ctx, namespace); client.IgnoreNotFound(err) != nil {
				t.Errorf("let namespace %s go: %v", o.GetName(), err)
			}
		}
	}
	if err := AwaitE(ctx, c, o, func(exists bool) bool { return !exists }); err != nil {
		t.Errorf("wait until %T %s is gone: %v", o, client.ObjectKeyFromObject(o), err)
	}
}
