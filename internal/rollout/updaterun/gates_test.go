package updaterun

import (
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestBelongsTo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "this", CreationTimestamp: metav1.NewTime(at)}}
	for name, tc := range map[string]struct {
		owner  types.UID
		target string
		age    time.Duration // after the run
		want   bool
	}{
		"made by the run":                              {"this", "web", 0, true},
		"made by the run, whose clock went back":       {"this", "web", -time.Minute, true},
		"made by an earlier run of its name":           {"earlier", "web", time.Minute, false},
		"made by hand before the run":                  {"", "web", -time.Second, false},
		"made by hand in the second in which it began": {"", "web", 0, false},
		"made by hand for the run":                     {"", "web", time.Second, true},
		"made by hand for another run":                 {"", "shop", time.Second, false},
		"made by the run, but for another":             {"this", "shop", time.Second, false},
	} {
		request := &placementv1.ClusterApprovalRequest{Spec: placementv1.ApprovalRequestSpec{TargetUpdateRun: tc.target, TargetStage: "canary"}}
		request.CreationTimestamp = metav1.NewTime(at.Add(tc.age))
		if tc.owner != "" {
			request.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterStagedUpdateRun", Name: "web", UID: tc.owner}}
		}
		if got := BelongsTo(placement.ClusterKinds(), request, run); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
