package override

import (
	"fmt"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func overrideOf(namespace string) *placementv1.ClusterResourceOverride {
	o := &placementv1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "o", Finalizers: []string{placementv1.FinalizerOverrideCleanup}}}
	o.Spec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: namespace}}
	return o
}

// recorded is the snapshot of an override as it is.
func recorded(t *testing.T, o *placementv1.ClusterResourceOverride, labels map[string]string) *placementv1.ClusterResourceOverrideSnapshot {
	t.Helper()
	s, ok := o.NewSnapshot().(*placementv1.ClusterResourceOverrideSnapshot)
	if !ok {
		t.Fatal("another kind of snapshot")
	}
	s.Name, s.Labels = "o-0", labels
	return s
}

// A rollout waits for the snapshot of an override if what it places is, or was, selected by that override; no other placement
// does.
func TestPendingOverride(t *testing.T) {
	t.Parallel()
	latest := map[string]string{placementv1.LabelParentOverride: "o", placementv1.LabelIsLatestSnapshot: "true"}
	tests := map[string]struct {
		override, snapshot *placementv1.ClusterResourceOverride
		pending            bool
		matches            bool
	}{
		"not recorded":                               {overrideOf("shop"), nil, true, false},
		"not recorded, of something else":            {overrideOf("bank"), nil, false, false},
		"recorded":                                   {overrideOf("shop"), overrideOf("shop"), false, true},
		"edited, was of something else":              {overrideOf("shop"), overrideOf("bank"), true, false},
		"edited, is of something else now":           {overrideOf("bank"), overrideOf("shop"), true, false},
		"edited, is and was of something else":       {overrideOf("bank"), overrideOf("pub"), false, false},
		"deleted, and a snapshot is left over of it": {nil, overrideOf("shop"), false, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "uid"}}
			s := &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "app-0-snapshot", UID: "s",
				Labels:      map[string]string{placementv1.LabelParentPlacement: "app", placementv1.LabelResourceIndex: "0"},
				Annotations: map[string]string{placementv1.AnnotationPlacementUID: "uid", placementv1.AnnotationSnapshotCount: "1"}}}
			s.Spec.SelectedResources = []placementv1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)}}}
			objects := []client.Object{p, s}
			if tc.override != nil {
				objects = append(objects, tc.override)
			}
			if tc.snapshot != nil {
				objects = append(objects, recorded(t, tc.snapshot, latest))
			}
			r := fake.NewClientBuilder().WithScheme(framework.Scheme()).WithObjects(objects...).Build()
			m, err := NewFinder(r, placement.ClusterKinds()).Match(t.Context(), r, p, 0)
			if IsPending(err) != tc.pending || (err != nil && !tc.pending) {
				t.Errorf("error %v, want one that says that the override is about to be recorded: %t", err, tc.pending)
			}
			if m.Empty() == tc.matches {
				t.Errorf("that there are none is %t", m.Empty())
			}
		})
	}
}

// A name that is taken holds nothing up: what is the override's own gets its labels back, and what is another's is left alone.
func TestNameIsTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"its label was taken off": {nil, "o-0: o true; "},
		"it is another's": {map[string]string{placementv1.LabelParentOverride: "other", placementv1.LabelIsLatestSnapshot: "true"},
			"o-0: other true; o-1: o true; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := overrideOf("shop")
			r := fake.NewClientBuilder().WithScheme(framework.Scheme()).WithObjects(o, recorded(t, o, tc.labels)).Build()
			c := &Controller{Client: r, APIReader: r, Kinds: placement.AllKinds(), Tracker: &consistency.Tracker{}}
			for range 3 {
				if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil {
					t.Fatal(err)
				}
			}
			after, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			if err != nil || after.RequeueAfter != 0 {
				t.Errorf("it goes on being looked at: %+v, %v", after, err)
			}
			all, err := list(t.Context(), r, false)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, s := range all {
				got += fmt.Sprintf("%s: %s %s; ", s.GetName(), s.GetLabels()[placementv1.LabelParentOverride], s.GetLabels()[placementv1.LabelIsLatestSnapshot])
			}
			if got != tc.want {
				t.Errorf("there are %s want %s", got, tc.want)
			}
		})
	}
}

// Members that are there when the hub starts have nobody look at the placements on them; those that are relabelled do.
func TestWhenRelabelled(t *testing.T) {
	t.Parallel()
	before, after := &clusterv1.MemberCluster{}, &clusterv1.MemberCluster{}
	after.Labels = map[string]string{"zone": "z1"}
	beat := after.DeepCopy()
	beat.Annotations = map[string]string{"at": time.Unix(0, 0).String()}
	p := whenRelabelled()
	for what, passes := range map[string]bool{
		"relabelled":         p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}),
		"made":               p.Create(event.CreateEvent{Object: after}),
		"not there at start": !p.Create(event.CreateEvent{Object: after, IsInInitialList: true}),
		"not another change": !p.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: beat}),
	} {
		if !passes {
			t.Errorf("%s: it does not", what)
		}
	}
}
