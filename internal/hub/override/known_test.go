package override_test

import (
	"context"
	"errors"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	hub "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A snapshot that a plan names and that the cache does not show yet is read live; it is gone only if it is not there either, and
// what cannot be read is no answer.
func TestKnownOverrides(t *testing.T) {
	t.Parallel()
	policy := &placementv1.OverridePolicy{OverrideRules: []placementv1.OverrideRule{change(labelled("env", "prod"), add, "/data/x", `"y"`)}}
	wide := &placementv1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "o-0"}}
	wide.Spec.OverrideSpec.Policy = policy
	own := &placementv1.ResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o-0"}}
	own.Spec.OverrideSpec.Policy = policy
	run := &placementv1.ClusterStagedUpdateRun{}
	list := placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{"o-0"},
		ResourceOverrideSnapshots: []placementv1.NamespacedName{{Namespace: "shop", Name: "o-0"}}}
	run.Status.StagesStatus = []placementv1.StageUpdatingStatus{{Clusters: []placementv1.ClusterUpdatingStatus{{ClusterName: "a", AppliedOverrides: list}}}}
	runs := []placementv1.UpdateRunObject{run}
	empty := fake.NewClientBuilder().WithScheme(framework.Scheme()).Build()
	live := fake.NewClientBuilder().WithScheme(framework.Scheme()).WithObjects(wide, own).Build()
	labels := map[string]string{"env": "prod"}
	for name, tc := range map[string]struct {
		cached, live client.Reader
		want         map[string]string
	}{"the cache is behind": {empty, live, labels}, "the cache has them": {live, empty, labels}, "they are gone": {empty, empty, nil}} {
		known, err := hub.Known(t.Context(), tc.cached, tc.live, runs)
		if err != nil {
			t.Fatal(err)
		}
		a, unknown := known.With(list, labels)
		if diff := cmp.Diff(tc.want, a.Labels); diff != "" || unknown != "" {
			t.Errorf("%s: unknown %q, labels (-want +got):\n%s", name, unknown, diff)
		}
	}
	broken := interceptor.NewClient(empty, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("no answer")
	}})
	if _, err := hub.Known(t.Context(), empty, broken, runs); err == nil {
		t.Error("what cannot be read passes for gone")
	}
}
