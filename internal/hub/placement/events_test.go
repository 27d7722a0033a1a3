package placement

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
)

// TestMilestones counts the events of a placement whose clusters are moved to resource snapshot 1.
func TestMilestones(t *testing.T) {
	t.Parallel()
	status := func(index string, reached ...string) *placementv1.PlacementStatus {
		s := &placementv1.PlacementStatus{ObservedResourceIndex: index}
		for _, kind := range reached {
			kind, message, told := strings.Cut(kind, ": ")
			if !told {
				message = kind + " everywhere"
			}
			s.Conditions = append(s.Conditions, metav1.Condition{Type: placementv1.ClusterPlacementConditionPrefix + kind, Status: metav1.ConditionTrue, Message: message})
		}
		return s
	}
	before := status("0", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")
	cases := map[string]struct {
		steps []*placementv1.PlacementStatus
		want  []string
	}{
		"all at once": {
			steps: []*placementv1.PlacementStatus{status("1", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")},
			want:  []string{"Normal PlacementRolloutCompleted Available everywhere, resource snapshot 1"},
		},
		"in steps, with others that come and go": {
			steps: []*placementv1.PlacementStatus{
				status("", "Overridden"), // while clusters are on different ones
				status("1", "RolloutStarted", "Overridden"),
				status("1", "RolloutStarted"),
				status("1", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied"),
				status("1", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available"),
				status("1", "RolloutStarted", "Overridden", "WorkSynchronized"),
				status("1", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available"),
			},
			want: []string{
				"Normal PlacementOverriddenSucceeded Overridden everywhere, resource snapshot 1",
				"Normal PlacementApplied Applied everywhere, resource snapshot 1",
				"Normal PlacementRolloutCompleted Available everywhere, resource snapshot 1",
			},
		},
		"the condition names the snapshot": {
			steps: []*placementv1.PlacementStatus{status("3", "RolloutStarted: all start rolling out resource snapshot 3")},
			want:  []string{"Normal PlacementRolloutStarted all start rolling out resource snapshot 3"},
		},
		"the condition names the snapshot and goes on": {
			steps: []*placementv1.PlacementStatus{status("3", "Available: but resource snapshot 3 is empty")},
			want:  []string{"Normal PlacementRolloutCompleted but resource snapshot 3 is empty"},
		},
		"the condition names another snapshot": {
			steps: []*placementv1.PlacementStatus{status("3", "Available: not resource snapshot 31")},
			want:  []string{"Normal PlacementRolloutCompleted not resource snapshot 31, resource snapshot 3"},
		},
		"after the hub was started anew": {steps: []*placementv1.PlacementStatus{status("0", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(100)
			c := &Controller{Kinds: model.ClusterKinds(), Recorder: recorder}
			p, m := &placementv1.ClusterResourcePlacement{}, &memory{told: map[string]string{}}
			was := before
			for _, is := range tc.steps {
				c.tell(p, was, is, m)
				was = is
			}
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
