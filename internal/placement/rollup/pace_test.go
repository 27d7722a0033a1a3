package rollup_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
)

func TestMayWait(t *testing.T) {
	t.Parallel()
	failed := append([]string{"on1", "Applied=False/NotAllWorkHaveBeenApplied"}, synced...)
	status := func(bindings ...placementv1.BindingObject) placementv1.PlacementStatus {
		in := input(external)
		in.Bindings = bindings
		return rollup.Status(in)
	}
	cases := map[string]struct {
		before, after placementv1.PlacementStatus
		want          bool
	}{
		"a cluster is given another snapshot": {
			before: status(binding("a", "on0", "done"), binding("b", "on0", "done")),
			after:  status(binding("a", "on1", "done", "stale"), binding("b", "on0", "done")),
			want:   true,
		},
		"a cluster is done and others are not": {
			before: status(binding("a", "on1", "done", "stale"), binding("b", "on0", "done")),
			after:  status(binding("a", "on1", "done"), binding("b", "on0", "done")),
			want:   true,
		},
		"all are done": {
			before: status(binding("a", "on1", "done"), binding("b", "on1", "done", "stale")),
			after:  status(binding("a", "on1", "done"), binding("b", "on1", "done")),
		},
		"a cluster fails": {
			before: status(binding("a", "on1", "done", "stale"), binding("b", "on0", "done")),
			after:  status(binding("a", failed...), binding("b", "on0", "done")),
		},
		"a cluster fails no more": {
			before: status(binding("a", failed...), binding("b", "on0", "done")),
			after:  status(binding("a", "on1", "done", "stale"), binding("b", "on0", "done")),
		},
		"a cluster is chosen": {
			before: status(binding("a", "on0", "done", "stale")),
			after:  status(binding("a", "on0", "done", "stale"), binding("b", "scheduled")),
		},
		"the first status": {after: status(binding("a", "scheduled"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rollup.MayWait(placementv1.ClusterPlacementConditionPrefix, &tc.before, &tc.after); got != tc.want {
				t.Errorf("MayWait = %t, want %t", got, tc.want)
			}
		})
	}
	in := input(external)
	before := rollup.Status(in)
	in.Placement.SetGeneration(4)
	if after := rollup.Status(in); rollup.MayWait(placementv1.ClusterPlacementConditionPrefix, &before, &after) {
		t.Error("an edit of the placement is answered late")
	}
}
