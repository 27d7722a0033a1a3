package rolling

import (
	"context"
	"errors"
	"fmt"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// rolled is a placement with a cluster on snapshot 1 of 0 and 1, on a hub without an API server.
func rolled(t *testing.T, latest int) (live client.WithWatch, key client.ObjectKey, binding *placementv1.ClusterResourceBinding) {
	t.Helper()
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "uid"}}
	p.Spec.Strategy.Type = placementv1.RollingUpdateRolloutStrategyType
	owned := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{placementv1.LabelParentPlacement: "app"},
			Annotations: map[string]string{placementv1.AnnotationPlacementUID: "uid", placementv1.AnnotationSnapshotCount: "1"}}
	}
	objects := []client.Object{p}
	for i := range 2 {
		s := &placementv1.ClusterResourceSnapshot{ObjectMeta: owned(placement.ResourceSnapshotName("app", i))}
		s.Labels[placementv1.LabelResourceIndex], s.Labels[placementv1.LabelIsLatestSnapshot] = fmt.Sprint(i), fmt.Sprint(i == latest)
		s.UID = types.UID(s.Name)
		objects = append(objects, s)
	}
	binding = &placementv1.ClusterResourceBinding{ObjectMeta: owned("binding")}
	binding.Spec = placementv1.ResourceBindingSpec{State: placementv1.BindingStateBound, TargetCluster: "a", ResourceSnapshotName: placement.ResourceSnapshotName("app", 1)}
	for _, c := range []string{placementv1.ConditionRolloutStarted, placementv1.ConditionAvailable} {
		binding.Status.Conditions = append(binding.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: placementv1.ReasonAllWorkAreAvailable})
	}
	objects = append(objects, binding)
	return fake.NewClientBuilder().WithScheme(framework.Scheme()).WithObjects(objects...).WithStatusSubresource(binding).Build(), client.ObjectKeyFromObject(p), binding
}

// A cache that shows an older snapshot as the latest takes no cluster back; somebody who makes an older one the latest does.
func TestCacheIsBehind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ latest, want int }{"the cache is behind": {1, 1}, "an older one is the latest": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, key, b := rolled(t, tc.latest)
			stale := interceptor.NewClient(live, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if snapshots, ok := list.(*placementv1.ClusterResourceSnapshotList); ok && err == nil {
					snapshots.Items = snapshots.Items[:1]
					snapshots.Items[0].Labels[placementv1.LabelIsLatestSnapshot] = "true"
				}
				return err
			}})
			c := &Controller{Client: stale, Kinds: placement.ClusterKinds(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time),
				Takings: &consistency.Takings{}, Overrides: overrides.NewFinder(live, placement.ClusterKinds())}
			if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			if want := placement.ResourceSnapshotName("app", tc.want); b.Spec.ResourceSnapshotName != want {
				t.Errorf("the cluster is on %s, want %s", b.Spec.ResourceSnapshotName, want)
			}
		})
	}
}

// A placement that waits for an override to be recorded is looked at again, though nothing may happen to it.
func TestPendingOverrideIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	live, key, _ := rolled(t, 1)
	part := &placementv1.ClusterResourceSnapshot{}
	if err := live.Get(t.Context(), client.ObjectKey{Name: placement.ResourceSnapshotName("app", 1)}, part); err != nil {
		t.Fatal(err)
	}
	part.Spec.SelectedResources = []placementv1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)}}}
	o := &placementv1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
	o.Spec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "shop"}}
	if err := errors.Join(live.Update(t.Context(), part), live.Create(t.Context(), o)); err != nil {
		t.Fatal(err)
	}
	c := &Controller{Client: live, Kinds: placement.ClusterKinds(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time),
		Takings: &consistency.Takings{}, Overrides: overrides.NewFinder(live, placement.ClusterKinds())}
	result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter != overrides.PendingRetry {
		t.Errorf("it is looked at after %s, error %v", result.RequeueAfter, err)
	}
}
