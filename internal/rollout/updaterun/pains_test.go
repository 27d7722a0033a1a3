package updaterun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// TestFleetChangesMidRun is entry 36 of the pain points, in the engine: who joins is left out, who leaves is skipped, and the
// run says both.
func TestFleetChangesMidRun(t *testing.T) {
	t.Parallel()
	s := seedFleet(t)
	s.strategy("two", environment("staging"), environment("canary", atMost("2")))
	r := s.create("example-run", "two", "0", run)
	s.settle()
	s.join("member4", map[string]string{"environment": "canary"})
	s.leave("member1")
	s.settle()
	s.available("member2")
	s.settle()
	s.available("member3")
	s.settle()
	got := meta.FindStatusCondition(r.Status.Conditions, placementv1.ConditionSucceeded)
	const want = "All stages are completed successfully; 1 skipped: member1; 1 cluster chosen after the run was planned is not included: member4"
	if got == nil || got.Message != want {
		t.Errorf("the run says %+v, want %q", got, want)
	}
	if b := s.bindings["member4"]; b.Spec.ResourceSnapshotName != "" {
		t.Errorf("member4, which joined on the way, was given %s", b.Spec.ResourceSnapshotName)
	}
}

// TestHealthOfTheOldRevision is entry 42 of the pain points, in the engine: that all is available of the old revision, said
// before or late, neither ends a stage nor begins its wait.
func TestHealthOfTheOldRevision(t *testing.T) {
	t.Parallel()
	s := seedFleet(t)
	s.snapshots = 2
	s.strategy("two", environment("staging", waitAfter(time.Minute)), environment("canary", atMost("2")))
	s.create("install", "two", "0", run)
	for range 2 {
		s.settle()
		for _, member := range []string{"member1", "member2", "member3"} {
			s.available(member)
		}
		s.settle()
		s.now = s.now.Add(time.Minute)
	}
	s.settle()
	old := s.bindings["member2"].Status.DeepCopy()
	s.create("update", "two", "1", run)
	s.settle()
	s.bindings["member2"].Status = *old
	s.settle()
	if rows := s.runs["update"].Status.StagesStatus; len(rows) == 0 || len(rows[0].AfterStageTaskStatus[0].Conditions) > 0 {
		t.Fatalf("with the old revision's health the wait has begun: %+v", rows)
	}
	s.now = s.now.Add(time.Hour)
	s.settle()
	if got := s.bindings["member1"].Spec.ResourceSnapshotName + " " + s.bindings["member3"].Spec.ResourceSnapshotName; strings.Contains(got, "web-1") {
		t.Fatalf("with the old revision's health the next stage has begun: %s", got)
	}
	s.available("member2")
	s.settle()
	s.now = s.now.Add(59 * time.Second)
	s.settle()
	if got := s.bindings["member1"].Spec.ResourceSnapshotName; strings.Contains(got, "web-1") {
		t.Fatalf("the next stage has begun before the wait was over: %s", got)
	}
	s.now = s.now.Add(time.Second)
	s.settle()
	if got := s.bindings["member1"].Spec.ResourceSnapshotName; !strings.Contains(got, "web-1") {
		t.Fatalf("the next stage has not begun: %s", got)
	}
}
