package rolling

import (
	"fmt"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		latest  string
		binding Binding
		want    []Step
	}{
		"chosen": {
			latest:  "app-1-snapshot",
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateScheduled},
			want:    []Step{{Binding: "b", Cluster: "c", Action: Bind, Reason: `cluster "c" was chosen; app-1-snapshot is its first snapshot`}},
		},
		"chosen, no snapshot yet": {
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateScheduled},
		},
		"behind": {
			latest:  "app-1-snapshot",
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateBound, Snapshot: "app-0-snapshot"},
			want:    []Step{{Binding: "b", Cluster: "c", Action: Move, Reason: `cluster "c" is on app-0-snapshot, and app-1-snapshot is newer`}},
		},
		"behind, the newest not known": {
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateBound, Snapshot: "app-0-snapshot"},
		},
		"up to date": {
			latest:  "app-1-snapshot",
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateBound, Snapshot: "app-1-snapshot"},
		},
		"given up": {
			latest:  "app-1-snapshot",
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateUnscheduled, Snapshot: "app-1-snapshot"},
			want:    []Step{{Binding: "b", Cluster: "c", Action: Remove, Reason: `cluster "c" is no longer chosen`}},
		},
		"given up, no snapshot": {
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateUnscheduled},
			want:    []Step{{Binding: "b", Cluster: "c", Action: Remove, Reason: `cluster "c" is no longer chosen`}},
		},
		"being deleted": {
			latest:  "app-1-snapshot",
			binding: Binding{Name: "b", Cluster: "c", State: placementv1.BindingStateBound, Deleting: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Plan(tc.latest, []Binding{tc.binding})); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the bindings are, carrying a plan out leaves nothing to do.
func TestPlanConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		states := []placementv1.BindingState{
			placementv1.BindingStateScheduled, placementv1.BindingStateBound, placementv1.BindingStateUnscheduled}
		snapshots := []string{"", "app-0-snapshot", "app-1-snapshot"}
		latest := rapid.SampledFrom(snapshots).Draw(t, "latest")
		bindings := map[string]Binding{}
		var list []Binding
		for i := range rapid.IntRange(0, 8).Draw(t, "bindings") {
			b := Binding{
				Name:     fmt.Sprint("b", i),
				State:    rapid.SampledFrom(states).Draw(t, "state"),
				Snapshot: rapid.SampledFrom(snapshots).Draw(t, "snapshot"),
				Deleting: rapid.Bool().Draw(t, "deleting"),
			}
			bindings[b.Name], list = b, append(list, b)
		}
		for _, step := range Plan(latest, list) {
			b := bindings[step.Binding]
			switch step.Action {
			case Remove:
				b.Deleting = true
			case Bind, Move:
				b.State, b.Snapshot = placementv1.BindingStateBound, latest
			}
			bindings[step.Binding] = b
		}
		list = nil
		for _, b := range bindings {
			list = append(list, b)
		}
		if again := Plan(latest, list); len(again) > 0 {
			t.Fatalf("a second plan has %v", again)
		}
	})
}
