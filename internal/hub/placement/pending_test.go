package placement

import (
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"github.com/fleetwright/fleetwright/test/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// That an override has no snapshot yet is not said at once, but it is said when it lasts, and not any more once there is one.
func TestOverrideWithoutSnapshotIsTold(t *testing.T) {
	t.Parallel()
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "uid"}}
	s := &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "app-0-snapshot", UID: "s",
		Labels:      map[string]string{placementv1.LabelParentPlacement: "app", placementv1.LabelResourceIndex: "0"},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: "uid", placementv1.AnnotationSnapshotCount: "1"}}}
	s.Spec.SelectedResources = []placementv1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)}}}
	o := &placementv1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
	o.Spec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "shop"}}
	r := fake.NewClientBuilder().WithScheme(framework.Scheme()).WithObjects(p, s, o).Build()
	c := &Controller{Client: r, Kinds: model.ClusterKinds(), Overrides: overrides.NewFinder(r, model.ClusterKinds())}
	now, m := time.Unix(1000, 0), &memory{}
	look := func(after time.Duration) (string, time.Duration) {
		now = now.Add(after)
		in := rollup.Input{Latest: &rollup.Revision{Index: 0}, Now: now}
		again := c.observeOverrides(t.Context(), p, &in, m)
		return in.Waiting, again
	}
	if waiting, again := look(0); waiting != "" || again != overrides.PendingRetry {
		t.Errorf("at once it says %q, and looks again after %s", waiting, again)
	}
	if waiting, again := look(overrides.PendingRetry); !strings.Contains(waiting, "override o ") || again != overrides.PendingRetry {
		t.Errorf("later it says %q, and looks again after %s", waiting, again)
	}
	if err := r.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if waiting, again := look(time.Second); waiting != "" || again != 0 || !m.pending.IsZero() {
		t.Errorf("in the end it says %q, and looks again after %s", waiting, again)
	}
}
