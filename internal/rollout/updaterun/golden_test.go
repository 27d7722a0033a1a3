package updaterun

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	initialize = placementv1.UpdateRunStateInitialize
	run        = placementv1.UpdateRunStateRun
	stop       = placementv1.UpdateRunStateStop
)

// seedFleet is the fleet and the strategy of the first seed.
func seedFleet(t testing.TB) *sim {
	s := newSim(t)
	s.join("member1", map[string]string{"environment": "canary", "order": "2"})
	s.join("member2", map[string]string{"environment": "staging"})
	s.join("member3", map[string]string{"environment": "canary", "order": "1"})
	s.strategy("example", environment("staging", atMost("1"), waitAfter(time.Minute)),
		environment("canary", sortedBy("order"), approvalBefore, atMost("50%")))
	return s
}

// TestGolden plays stories and compares what the engine did, and what it told, with testdata.
func TestGolden(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*sim){
		"seed":             playSeed,
		"pending":          playPending,
		"stop":             playStop,
		"supersede":        playSupersede,
		"leave":            playLeave,
		"deletion":         playDeletion,
		"gates":            playGates,
		"requests":         playRequests,
		"empty-stages":     playEmptyStages,
		"placement-gone":   playPlacementGone,
		"preempted":        playPreempted,
		"parked":           playParked,
		"lost-statuses":    playLostStatuses,
		"unreachable":      playUnreachable,
		"several-at-once":  playSeveralAtOnce,
		"unhurried":        playUnhurried,
		"troubles":         playTroubles,
		"failures":         playFailures,
		"too-many":         playTooManyFailures,
		"deadline-clock":   playDeadlineClock,
		"deadline-rollout": playDeadlineRollout,
		"release":          playRelease,
		"skip-and-retry":   playSkipAndRetry,
		"late-retry":       playLateRetry,
		"late-failure":     playLateFailure,
		"failed-leave":     playFailedLeave,
		"cancel":           playCancel,
	}
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := seedFleet(t)
			play(s)
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(s.log.String()), 0o644); err != nil {
					t.Fatalf("write %s: %v", file, err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("read %s (go test -update writes it): %v", file, err)
			}
			if diff := cmp.Diff(string(want), s.log.String()); diff != "" {
				t.Errorf("another story than in %s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// playSeed is the first seed: plan, run, wait, approve, get stuck, heal, end.
func playSeed(s *sim) {
	s.do("a run is created, to plan only", func() { s.create("example-run", "example", "0", initialize) })
	s.do("it is set to Run", func() { s.setState("example-run", run) })
	s.do("member2 is applying", func() { s.applying("member2") })
	s.do("member2 is available", func() { s.available("member2") })
	s.wait(30 * time.Second)
	s.wait(30 * time.Second)
	s.do("somebody approves for another generation", func() {
		s.approve("example-run-before-canary")
		s.requests["example-run-before-canary"].Status.Conditions[0].ObservedGeneration = 0
	})
	s.do("somebody approves", func() { s.approve("example-run-before-canary") })
	s.do("the approval is taken back", func() { s.requests["example-run-before-canary"].Status.Conditions[0].Status = metav1.ConditionFalse })
	s.do("member3 refuses", func() { s.refuse("member3") })
	s.do("member3 heals", func() { s.available("member3") })
	s.do("member1 is available", func() { s.available("member1") })
}

// playPending brings one after the other what a run needs.
func playPending(s *sim) {
	p := s.placement
	s.placement = nil
	strategy := s.strategies["example"]
	delete(s.strategies, "example")
	s.do("a run is created before anything it names", func() { s.create("early", "example", "", run) })
	s.do("the placement is created", func() { s.placement, s.policy.Status.Conditions = p, nil })
	s.do("the placement is scheduled, and a binding is not there yet", func() { s.reschedule(); s.policy.Status.SelectedCount++ })
	s.do("all bindings are there", s.reschedule)
	s.do("the strategy is created", func() { s.strategies["example"] = strategy })
	s.do("a run names a snapshot that does not exist", func() { s.create("unknown", "example", "7", run) })
	s.do("a cluster joins that is in no stage", func() { s.join("member4", nil) })
	s.do("a run cannot place it", func() { s.create("unstaged", "example", "", run) })
}

// playStop stops a run at several points.
func playStop(s *sim) {
	s.do("a run is created", func() { s.create("example-run", "example", "0", run) })
	s.do("it is stopped while member2 is in flight", func() { s.setState("example-run", stop) })
	s.do("member2 refuses", func() { s.refuse("member2") })
	s.do("member2 heals", func() { s.available("member2") })
	s.wait(2 * time.Minute)
	s.do("it is set to Run", func() { s.setState("example-run", run) })
	s.do("it is stopped while it waits for approval", func() { s.setState("example-run", stop) })
	s.do("somebody approves all the same", func() { s.approve("example-run-before-canary") })
	s.do("it is set to Run", func() { s.setState("example-run", run) })
	s.do("it is stopped with one of two done", func() { s.available("member3"); s.setState("example-run", stop) })
	s.do("it is set to Run", func() { s.setState("example-run", run) })
	s.do("it is stopped when the last is in flight", func() { s.setState("example-run", stop) })
	s.do("member1 is available", func() { s.available("member1") })
	s.do("it is set to Run", func() { s.setState("example-run", run) })
}

// playSupersede rolls back while a run is on its way.
func playSupersede(s *sim) {
	s.snapshots = 2
	s.do("a run is created", func() { s.create("forward", "example", "1", run) })
	s.do("member2 is available", func() { s.available("member2") })
	s.wait(time.Minute)
	s.do("a run that cannot be planned takes nothing over", func() { s.create("hopeless", "example", "9", run) })
	s.do("a run that is only to plan takes nothing over", func() { s.create("preview", "example", "0", initialize) })
	s.do("a run back is created", func() { s.create("back", "example", "0", run) })
	s.do("somebody approves the closed request", func() { s.approve("forward-before-canary") })
	s.do("member2 is available", func() { s.available("member2") })
	s.wait(time.Minute)
	s.do("somebody approves", func() { s.approve("back-before-canary") })
	s.do("members are available", func() { s.available("member3") })
	s.do("members are available", func() { s.available("member1") })
}

// playLeave has clusters leave at several points.
func playLeave(s *sim) {
	s.do("a run is created", func() { s.create("example-run", "example", "0", run) })
	s.do("a cluster joins", func() { s.join("member4", map[string]string{"environment": "staging"}) })
	s.do("member2 leaves in flight", func() { s.leave("member2") })
	s.wait(time.Minute)
	s.do("member3, which comes next, is to leave", func() { s.members["member3"].Leaving = true })
	s.do("labels, strategy and policy are changed", func() {
		s.members["member1"].Labels = nil
		s.strategies["example"] = &placementv1.UpdateStrategySpec{}
		s.policy.Status = placementv1.SchedulingPolicySnapshotStatus{}
	})
	s.do("somebody approves", func() { s.approve("example-run-before-canary") })
	s.do("member1 is available", func() { s.available("member1") })
}

// playDeletion removes what is no longer scheduled.
func playDeletion(s *sim) {
	s.strategy("all", placementv1.StageConfig{Name: "all", LabelSelector: &metav1.LabelSelector{}})
	s.unschedule("member1")
	s.unschedule("member3")
	s.do("a run is created", func() { s.create("example-run", "all", "0", run) })
	s.do("member2 is available, and the run is stopped", func() { s.available("member2"); s.setState("example-run", stop) })
	s.do("it is set to Run, and stopped before it clears anything", func() {
		s.setState("example-run", run)
		s.pass()
		s.setState("example-run", stop)
	})
	s.do("it is set to Run", func() { s.setState("example-run", run) })
	s.do("it is stopped in the deletion stage", func() { s.setState("example-run", stop) })
	s.do("member1 is cleared", func() { delete(s.bindings, "member1") })
	s.do("member3 is cleared", func() { delete(s.bindings, "member3") })

	s.bind("member3")
	s.unschedule("member3")
	s.bind("member1")
	s.unschedule("member1")
	s.do("another run is created, and one of two clusters is scheduled again", func() {
		s.create("second", "all", "0", run)
		s.pass()
		s.bindings["member3"].Spec.State = placementv1.BindingStateScheduled
	})
	s.do("member1 is cleared", func() { delete(s.bindings, "member1") })
}

// playGates has every gate on one stage.
func playGates(s *sim) {
	s.strategy("gated", placementv1.StageConfig{Name: "all", LabelSelector: &metav1.LabelSelector{}, MaxConcurrency: ptr.To(intstr.FromString("100%"))})
	approvalBefore(&s.strategies["gated"].Stages[0])
	waitAfter(10 * time.Second)(&s.strategies["gated"].Stages[0])
	approvalAfter(&s.strategies["gated"].Stages[0])
	request := func() {
		s.requests["gated-run-before-all"] = &placementv1.ClusterApprovalRequest{ObjectMeta: s.meta("gated-run-before-all"),
			Spec: placementv1.ApprovalRequestSpec{TargetUpdateRun: "gated-run", TargetStage: "all"}}
		s.approve("gated-run-before-all")
	}
	s.do("an approval is given before there is a run of the name", request)
	s.do("the run is created", func() { s.create("gated-run", "gated", "0", run) })
	s.do("the approval is given again in the second in which the run was made", request)
	s.do("and once more a second later", func() { s.now = s.now.Add(time.Second); request() })
	s.do("all are available, a quarter of a second after a full one", func() {
		s.now = s.now.Add(250 * time.Millisecond)
		s.available("member1")
		s.available("member2")
		s.available("member3")
	})
	s.wait(10 * time.Second)
	s.wait(750 * time.Millisecond)
	s.do("somebody approves", func() { s.approve("gated-run-after-all") })
}

// playRequests has approval requests that are not as they should be.
func playRequests(s *sim) {
	s.strategy("asking", environment("canary", approvalBefore), environment("staging"))
	const name = "ask-before-canary"
	s.do("a request of that name is there for another run", func() {
		s.requests[name] = &placementv1.ClusterApprovalRequest{ObjectMeta: s.meta(name),
			Spec: placementv1.ApprovalRequestSpec{TargetUpdateRun: "other", TargetStage: "canary"}}
		s.approve(name)
		s.create("ask", "asking", "0", run)
	})
	s.do("it is replaced by one of an earlier run of the same name", func() {
		s.requests[name].Spec.TargetUpdateRun = "ask"
		s.requests[name].OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterStagedUpdateRun", Name: "ask", UID: "earlier"}}
	})
	s.do("it is deleted", func() { delete(s.requests, name) })
	s.do("the run's own is deleted", func() { delete(s.requests, name) })
	s.do("it is being deleted", func() { s.requests[name].DeletionTimestamp = ptr.To(metav1.NewTime(s.now)) })
	s.do("it is gone", func() { delete(s.requests, name) })
	s.do("somebody writes the run's answer without an approval", func() {
		s.requests[name].Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionApprovalAccepted, Status: metav1.ConditionTrue, Reason: "x"}}
	})
	s.do("and, with it, an approval of another generation", func() { s.approve(name); s.requests[name].Status.Conditions[1].ObservedGeneration = 0 })
	s.requests[name].Status.Conditions = nil
	s.do("somebody approves", func() { s.approve(name) })
	s.do("the patch that approves is sent again, and with it goes the run's answer", func() {
		s.requests[name].Status.Conditions = s.requests[name].Status.Conditions[:1]
	})
	s.do("the approved request is deleted", func() { delete(s.requests, name) })
}

// playEmptyStages has stages without clusters, with and without gates.
func playEmptyStages(s *sim) {
	s.strategy("sparse", placementv1.StageConfig{Name: "none"}, environment("nobody", approvalBefore, waitAfter(time.Minute)),
		environment("canary", atMost("2")), environment("staging"))
	s.do("a run is created", func() { s.create("example-run", "sparse", "0", run) })
	s.do("somebody approves", func() { s.approve("example-run-before-nobody") })
	s.wait(time.Minute)
	s.do("canary is available", func() { s.available("member1"); s.available("member3") })
	s.do("staging is available", func() { s.available("member2") })
}

// playPlacementGone deletes the placement under a run.
func playPlacementGone(s *sim) {
	s.do("a run is created", func() { s.create("example-run", "example", "0", run) })
	s.do("the placement is deleted", func() { s.placement.DeletionTimestamp = ptr.To(metav1.NewTime(s.now)) })
	s.do("a run is created", func() { s.create("late", "example", "0", run) })
	s.do("the placement is made anew", func() {
		s.now = s.now.Add(time.Minute)
		s.replacePlacement()
	})
	s.do("the placement is made anew within a second, before the run has seen that it was gone", s.replacePlacement)
}

// playPreempted has somebody else move a cluster that is in flight.
func playPreempted(s *sim) {
	s.do("a run is created", func() { s.create("example-run", "example", "0", run) })
	s.do("a run whose own record was lost has moved member2", func() {
		s.bindings["member2"].Annotations[placementv1.AnnotationUpdateRun] = "stranger"
		s.bindings["member2"].Annotations[placementv1.AnnotationUpdateRunUID] = "stranger-uid"
	})
	s.do("a run is created", func() { s.create("second", "example", "0", run) })
	s.do("somebody edits the binding", func() { s.bindings["member2"].Spec.ResourceSnapshotName = "web-7-snapshot" })
	s.do("a run is created", func() { s.create("third", "example", "0", run) })
	s.do("the cluster leaves and joins again between two looks", func() {
		s.bindings["member2"].Spec.ResourceSnapshotName, s.bindings["member2"].Spec.State = "", placementv1.BindingStateScheduled
	})
}

// playParked changes things between planning and starting.
func playParked(s *sim) {
	s.do("a run is created, to plan only", func() { s.create("example-run", "example", "", initialize) })
	s.do("things change meanwhile", func() {
		s.snapshots = 2
		s.members["member1"].Labels["environment"] = "staging"
	})
	s.do("it is set to Run", func() { s.setState("example-run", run) })
	s.do("a run is created stopped", func() { s.create("stopped", "example", "0", stop) })
	s.do("a run is created that waits for its strategy", func() { s.create("waiting", "missing", "0", run) })
	s.do("a run is created that starts", func() { s.create("last", "example", "0", run) })
}

// playLostStatuses crashes the hub before each write of a status.
func playLostStatuses(s *sim) {
	s.create("example-run", "example", "0", run)
	s.do("the hub crashes before it has recorded the plan", func() { s.writesLeft = 0; s.pass() })
	s.do("once more the run is planned, then member2 is started", nil)
	s.do("the hub crashes before it has recorded that member2 is done", func() { s.available("member2"); s.writesLeft = 0; s.pass() })
	s.do("the hub crashes after it has made the request", func() { s.now = s.now.Add(time.Minute); s.writesLeft = 1; s.pass() })
	s.do("the hub crashes after it has accepted the approval", func() { s.approve("example-run-before-canary"); s.writesLeft = 1; s.pass() })
	s.do("member3 is available; the hub crashes after it has started member1", func() { s.available("member3"); s.writesLeft = 1; s.pass() })
	s.do("member1 is available; the hub crashes before it has recorded the end", func() { s.available("member1"); s.writesLeft = 0; s.pass() })
}

// playUnreachable waits for a cluster that is not heard of.
func playUnreachable(s *sim) {
	s.do("member2 is not heard of, and a run is created", func() {
		s.members["member2"].Disconnected = "no sign of life from its agent since 03:00:00Z"
		s.create("example-run", "example", "0", run)
	})
	s.wait(time.Hour)
	s.do("the run is stopped", func() { s.setState("example-run", stop) })
}

// playSeveralAtOnce has several runs that could start in the same pass.
func playSeveralAtOnce(s *sim) {
	s.snapshots = 3
	s.do("three runs are there when the hub starts", func() {
		s.create("first", "example", "0", run)
		s.create("second", "example", "1", run)
		s.create("third", "example", "2", run)
	})
	s.do("a parked run from before is set to Run in the same second", func() {
		parked := s.create("parked", "example", "0", initialize)
		parked.CreationTimestamp = metav1.NewTime(s.now.Add(-time.Hour))
		s.settle()
		s.now = s.runs["third"].Status.StartedTime.Time
		s.setState("parked", run)
	})
}

// playUnhurried lets the progress of clusters wait to be written, while a run is started, stopped, stuck and ends.
func playUnhurried(s *sim) {
	s.unhurried = true
	s.strategy("two", environment("staging"), environment("canary", sortedBy("order"), atMost("1"), approvalBefore))
	s.do("a run is created", func() { s.create("example-run", "two", "0", run) })
	s.do("member2 is available", func() { s.available("member2") })
	s.do("somebody approves", func() { s.approve("example-run-before-canary") })
	s.do("member3 is available", func() { s.available("member3") })
	s.do("member3 is not any more, and stays done", func() { s.applying("member3") })
	s.do("member1 refuses", func() { s.refuse("member1") })
	s.do("member1 heals", func() { s.applying("member1") })
	s.do("the run is stopped", func() { s.setState("example-run", stop) })
	s.do("member1 is available", func() { s.available("member1") })
	s.do("it is set to Run", func() { s.setState("example-run", run) })

	s.snapshots = 2
	s.do("another run is created", func() { s.create("second", "two", "1", run) })
	s.do("somebody edits a binding before it is written that the run moved it", func() { s.bindings["member2"].Spec.ResourceSnapshotName = "web-7-snapshot" })
	s.do("a third run is created", func() { s.create("third", "two", "1", run) })
	s.do("the hub crashes, and what waited is lost", func() { s.writesLeft = 0; clear(s.unwritten); s.writesLeft = -1 })
	s.do("member2 is available", func() { s.available("member2") })
}

// playTroubles has clusters fail in several ways at once.
func playTroubles(s *sim) {
	s.strategy("all", placementv1.StageConfig{Name: "all", LabelSelector: &metav1.LabelSelector{}, MaxConcurrency: ptr.To(intstr.FromString("100%"))})
	s.do("a run is created", func() { s.create("example-run", "all", "0", run) })
	s.do("the hub cannot write what member1 is to apply", func() {
		s.applying("member1")
		c := &s.bindings["member1"].Status.Conditions[0]
		c.Status, c.Reason = metav1.ConditionFalse, placementv1.ReasonSyncWorkFailed
	})
	s.do("of member2 it cannot be told whether it is available", func() {
		s.answer("member2", metav1.ConditionTrue, placementv1.ReasonAllWorkHaveBeenApplied, metav1.ConditionFalse)
		s.bindings["member2"].Status.FailedPlacements = []placementv1.FailedResourcePlacement{{Condition: metav1.Condition{
			Type: placementv1.ConditionAvailable, Reason: placementv1.ReasonManifestAvailabilityFailed}}}
	})
	s.do("member3 refuses", func() { s.refuse("member3") })
	s.do("the run is stopped", func() { s.setState("example-run", stop) })
}
