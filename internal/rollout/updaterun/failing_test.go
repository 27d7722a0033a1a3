package updaterun

import (
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// allAtOnce is a stage of all clusters.
func allAtOnce(with ...func(*placementv1.StageConfig)) placementv1.StageConfig {
	c := placementv1.StageConfig{Name: "all", LabelSelector: &metav1.LabelSelector{}}
	for _, f := range with {
		f(&c)
	}
	return c
}

// playFailures has one cluster fail that may: the others go on, one after the other.
func playFailures(s *sim) {
	s.strategy("lenient", allAtOnce(mayFail("34%"), within(time.Minute)))
	s.do("a run is created", func() { s.create("example-run", "lenient", "0", run) })
	s.do("member1 refuses", func() { s.refuse("member1") })
	s.wait(time.Minute)
	s.wait(time.Second)
	s.do("member1 heals, which is too late", func() { s.available("member1") })
	s.do("member2 is available in time", func() { s.available("member2") })
	s.do("member3 is available in time", func() { s.available("member3") })
}

// playTooManyFailures has more clusters fail than may: the run ends, and goes on when it is told how.
func playTooManyFailures(s *sim) {
	s.strategy("strict", allAtOnce(atMost("100%"), within(time.Minute)))
	s.do("a run is created", func() { s.create("example-run", "strict", "0", run) })
	s.do("member1 is not heard of, and member2 is available", func() {
		s.members["member1"].Disconnected = "no sign of life from its agent since 03:00:00Z"
		s.available("member2")
	})
	s.do("member3 is paused, half a minute later", func() { s.now = s.now.Add(30 * time.Second); s.pause("member3") })
	s.wait(31 * time.Second)
	s.do("somebody asks for a cluster that the run does not know, and for one that is done", func() {
		s.skip("example-run", "member9")
		s.retry("example-run", "member2")
	})
	s.do("somebody retries member1, an hour later", func() { s.now = s.now.Add(time.Hour); s.retry("example-run", "member1") })
	s.do("member3 is not paused any more", func() { s.applying("member3") })
	s.wait(30 * time.Second)
	s.wait(time.Second)
	s.do("somebody skips member3", func() { s.skip("example-run", "member3") })
	s.do("member1 is available", func() { s.available("member1") })
}

// playDeadlineClock stops the run, and pauses what it was given, for longer than its deadline.
func playDeadlineClock(s *sim) {
	s.strategy("strict", allAtOnce(within(time.Minute)))
	s.do("a run is created", func() { s.create("example-run", "strict", "0", run) })
	s.do("it is stopped half a minute later", func() { s.now = s.now.Add(30 * time.Second); s.setState("example-run", stop) })
	s.do("member1 is paused, an hour later", func() { s.now = s.now.Add(time.Hour); s.pause("member1") })
	s.do("the run is set to Run, an hour later", func() { s.now = s.now.Add(time.Hour); s.setState("example-run", run) })
	s.do("member1 goes on, an hour later", func() { s.now = s.now.Add(time.Hour); s.applying("member1") })
	s.wait(30 * time.Second)
	s.wait(time.Second)
}

// playDeadlineRollout has a Rollout wait for somebody for longer than the deadline, which does not count, and then take longer
// than the deadline, which does.
func playDeadlineRollout(s *sim) {
	const onItsWay, waits = placementv1.ReasonManifestNotAvailableYet, placementv1.ReasonManifestPaused
	s.strategy("strict", allAtOnce(within(time.Minute)))
	s.do("a run is created, and the Rollout in member1 is on its way", func() { s.create("example-run", "strict", "0", run); s.settle(); s.rollOut("member1", onItsWay) })
	s.do("half a minute later its first step waits for somebody", func() { s.now = s.now.Add(30 * time.Second); s.rollOut("member1", waits) })
	s.wait(time.Hour)
	s.do("somebody approves it", func() { s.rollOut("member1", onItsWay) })
	s.do("10 seconds later the next step waits", func() { s.now = s.now.Add(10 * time.Second); s.rollOut("member1", waits) })
	s.do("the run is stopped meanwhile, and set to Run", func() {
		s.setState("example-run", stop)
		s.settle()
		s.now = s.now.Add(time.Hour)
		s.setState("example-run", run)
	})
	s.do("somebody approves it, an hour later", func() { s.now = s.now.Add(time.Hour); s.rollOut("member1", onItsWay) })
	s.wait(19 * time.Second)
	s.wait(4 * time.Second)
}

// playRelease has clusters wait for people in the middle of their Rollouts: the run waits with them, is stopped, and another takes it over.
func playRelease(s *sim) {
	s.snapshots = 2
	s.strategy("patient", environment("staging", within(time.Minute)), environment("canary", sortedBy("order"), atMost("100%"), within(time.Minute)))
	s.do("a run is created, and member2 waits for a person", func() { s.create("second", "patient", "1", run); s.settle(); s.awaitsApproval("member2") })
	s.wait(48 * time.Hour)
	s.do("somebody approves, and the rest of the batches come", func() { s.rollOut("member2", placementv1.ReasonManifestUpdatedByRollout) })
	s.do("member2 is available, and the canaries wait for a person", func() { s.available("member2"); s.settle(); s.awaitsApproval("member1"); s.awaitsApproval("member3") })
	s.do("the run is stopped", func() { s.setState("second", stop) })
	s.do("somebody approves in member3", func() { s.available("member3") })
	s.do("another run takes over, while member1 is in the middle of its batches", func() { s.create("back", "patient", "0", run) })
	s.do("member2 is back", func() { s.available("member2") })
	s.do("the canaries are back", func() { s.available("member1"); s.available("member3") })
}

// playSkipAndRetry skips clusters at every point, and has one updated all the same.
func playSkipAndRetry(s *sim) {
	s.snapshots = 2
	s.strategy("careful", environment("staging", waitAfter(time.Minute)), environment("canary", sortedBy("order"), atMost("1")))
	s.do("a run is created and told at once to skip member3", func() { s.create("example-run", "careful", "0", run); s.skip("example-run", "member3") })
	s.do("member2 refuses", func() { s.refuse("member2") })
	s.do("somebody retries it, which goes on anyway", func() { s.retry("example-run", "member2") })
	s.do("somebody skips it", func() { s.skip("example-run", "member2") })
	s.do("somebody skips it again, and retries one that was not started", func() { s.skip("example-run", "member2"); s.retry("example-run", "member1") })
	s.do("somebody retries member2, half a minute later", func() { s.now = s.now.Add(30 * time.Second); s.retry("example-run", "member2") })
	s.do("member2 is available", func() { s.available("member2") })
	s.wait(59 * time.Second)
	s.wait(time.Second)
	s.do("member1 is available", func() { s.available("member1") })
	s.do("somebody skips member3 once more when the run is over", func() { s.skip("example-run", "member3") })
	s.do("somebody retries member3, though another snapshot was taken meanwhile", func() { s.retry("example-run", "member3") })
	s.do("member3 is available", func() { s.available("member3") })
	s.do("another run is created", func() { s.create("second", "careful", "1", run) })
	s.do("somebody retries a cluster of the first", func() { s.retry("example-run", "member3") })
}

// playLateRetry retries clusters of a stage that is done.
func playLateRetry(s *sim) {
	s.strategy("lenient", environment("canary", atMost("2"), mayFail("1"), within(time.Minute)), environment("staging", approvalBefore))
	s.do("a run is created, and member1 is available", func() { s.create("example-run", "lenient", "0", run); s.settle(); s.available("member1") })
	s.wait(61 * time.Second)
	s.do("somebody retries member3", func() { s.retry("example-run", "member3") })
	s.do("the run is stopped", func() { s.setState("example-run", stop) })
	s.do("the run goes on, and is approved", func() { s.setState("example-run", run); s.approve("example-run-before-staging") })
	s.do("member2 is available", func() { s.available("member2") })
	s.do("the run is stopped", func() { s.setState("example-run", stop) })
	s.do("member3 is available", func() { s.available("member3") })
	s.do("the run goes on", func() { s.setState("example-run", run) })
}

// playLateFailure retries a cluster of a stage that is done, which then fails: it was skipped before, and none may fail.
func playLateFailure(s *sim) {
	s.strategy("strict", environment("staging", within(time.Minute)), environment("canary", atMost("1"), within(time.Hour)))
	s.do("a run is created, and member2 is skipped", func() { s.create("example-run", "strict", "0", run); s.settle(); s.skip("example-run", "member2") })
	s.do("somebody retries member2", func() { s.retry("example-run", "member2") })
	s.wait(61 * time.Second)
	s.do("member1, in flight in the next stage, is available", func() { s.available("member1") })
	s.do("somebody retries member2 once more", func() { s.retry("example-run", "member2") })
	s.do("member2 is available", func() { s.available("member2") })
	s.do("member3 is available", func() { s.available("member3") })
}

// playFailedLeave has clusters leave that have failed: while their stage is on its way, when it is done, and when the run has
// ended because of them.
func playFailedLeave(s *sim) {
	s.strategy("lenient", environment("canary", sortedBy("order"), atMost("1"), mayFail("1"), within(time.Minute)),
		environment("staging", within(time.Minute)))
	s.do("a run is created", func() { s.create("example-run", "lenient", "0", run) })
	s.wait(62 * time.Second)
	s.do("member3, which has failed, leaves, and somebody retries it", func() { s.leave("member3"); s.retry("example-run", "member3") })
	s.wait(62 * time.Second)
	s.do("member1, which has failed, is to leave; its stage is done", func() { s.members["member1"].Leaving = true })
	s.wait(62 * time.Second)
	s.do("member2, because of which the run has ended, leaves", func() { s.leave("member2") })
	s.do("somebody retries it", func() { s.retry("example-run", "member2") })
	s.wait(time.Hour)
	s.do("somebody skips it", func() { s.skip("example-run", "member2") })
}

// playCancel cancels runs.
func playCancel(s *sim) {
	s.do("a run is created", func() { s.create("example-run", "example", "0", run) })
	s.do("somebody cancels it", func() { s.cancel("example-run") })
	s.do("member2 is available", func() { s.available("member2") })
	s.do("somebody retries member2", func() { s.retry("example-run", "member2") })
	s.do("a parked run is cancelled", func() { s.create("parked", "example", "0", initialize); s.settle(); s.cancel("parked") })
	s.do("a run that is not planned is cancelled, and one is created", func() {
		s.create("unplanned", "missing", "0", run)
		s.settle()
		s.cancel("unplanned")
		s.create("another", "example", "0", run)
	})
	s.wait(time.Minute)
	s.do("it is cancelled while it waits for an approval", func() { s.cancel("another") })
}

func TestFailuresAllowed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		limit    *intstr.IntOrString
		clusters int
		want     int
		deadline time.Duration
	}{
		"none said":            {clusters: 10},
		"none":                 {limit: ptr.To(intstr.FromInt32(0)), clusters: 10},
		"none in percent":      {limit: ptr.To(intstr.FromString("0%")), clusters: 10},
		"a number":             {limit: ptr.To(intstr.FromInt32(3)), clusters: 2, want: 3, deadline: defaultDeadline},
		"rounded down":         {limit: ptr.To(intstr.FromString("19%")), clusters: 10, want: 1, deadline: defaultDeadline},
		"rounded down to 0":    {limit: ptr.To(intstr.FromString("9%")), clusters: 10, deadline: defaultDeadline},
		"all":                  {limit: ptr.To(intstr.FromString("100%")), clusters: 10, want: 10, deadline: defaultDeadline},
		"what the API refuses": {limit: ptr.To(intstr.FromString("some")), clusters: 10, deadline: defaultDeadline},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := &placementv1.StageConfig{MaxFailures: tc.limit}
			if got := maxFailures(config, tc.clusters); got != tc.want {
				t.Errorf("%d may fail, want %d", got, tc.want)
			}
			if got := deadlineOf(config); got != tc.deadline {
				t.Errorf("the deadline is %s, want %s", got, tc.deadline)
			}
		})
	}
}

// TestRetryKeepsOverrides: a cluster is started again with the overrides that were frozen with the plan.
func TestRetryKeepsOverrides(t *testing.T) {
	t.Parallel()
	s := seedFleet(t)
	s.strategy("careful", allAtOnce())
	r := s.create("example-run", "careful", "0", run)
	s.settle()
	row := &r.Status.StagesStatus[0].Clusters[0]
	row.ClusterResourceOverrideSnapshots = []string{"prod-0"}
	s.skip("example-run", row.ClusterName)
	s.settle()
	s.retry("example-run", row.ClusterName)
	s.settle()
	row = &r.Status.StagesStatus[0].Clusters[0]
	if got := row.ClusterResourceOverrideSnapshots; row.Retries != 1 || len(got) != 1 || got[0] != "prod-0" {
		t.Errorf("after the retry the row is %+v", row)
	}
}

// TestRefusedOnce: an action that cannot be done is answered by one write, with one event, and no later look takes another.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		mayFail string
		ask     func(*sim)
		want    string
	}{
		"retry, run on its way": {mayFail: "1", ask: func(s *sim) { s.leave("member1"); s.retry("example-run", "member1") },
			want: "cluster member1 cannot be retried: the cluster has left the fleet"},
		"retry, run ended": {mayFail: "0", ask: func(s *sim) { s.leave("member1"); s.retry("example-run", "member1") },
			want: "cluster member1 cannot be retried: the cluster has left the fleet"},
		"retry of one that is leaving": {mayFail: "0", ask: func(s *sim) { s.members["member1"].Leaving = true; s.retry("example-run", "member1") },
			want: "cluster member1 cannot be retried: the cluster is leaving the fleet"},
		"retry of one that was not started": {mayFail: "0", ask: func(s *sim) { s.retry("example-run", "member3") },
			want: "cluster member3 was not started yet: there is nothing to retry"},
		"skip of one that is unknown": {mayFail: "1", ask: func(s *sim) { s.skip("example-run", "member9") },
			want: `cluster "member9" is none of the clusters that the run updates`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := seedFleet(t)
			s.strategy("careful", allAtOnce(atMost("1"), mayFail(tc.mayFail), within(time.Minute)))
			r := s.create("example-run", "careful", "0", run)
			s.settle()
			s.now = s.now.Add(62 * time.Second)
			s.settle()
			tc.ask(s)
			for range 5 {
				r.Generation++ // somebody touches the run
				s.settle()
			}
			answers := r.Status.ClusterActions
			if len(answers) != 1 || answers[0].Result != placementv1.ClusterActionRefused || answers[0].Message != tc.want {
				t.Errorf("the answers are %+v, want one that refuses: %s", answers, tc.want)
			}
			if n := strings.Count(s.log.String(), "event Warning "+placementv1.ReasonClusterActionRefused); n != 1 {
				t.Errorf("%d events tell of the refusal, want 1\n%s", n, s.log.String())
			}
			s.watch = func(what string) {
				t.Errorf("a look at what is answered writes %s\n%s", what, tail(s.log.String(), 20))
			}
			for range 3 {
				s.now = s.now.Add(time.Second)
				s.settle()
			}
		})
	}
}

// TestCrashAfterARetry has the hub crash when it has started a cluster again that turns out to be done at once: what is
// stored in the end, transition times included, is what it would be without.
func TestCrashAfterARetry(t *testing.T) {
	t.Parallel()
	for name, failures := range map[string]string{"the run had ended": "0", "the stage was waiting": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play := func(writes int) *sim {
				s := seedFleet(t)
				s.strategy("one", allAtOnce(atMost("100%"), mayFail(failures), within(time.Minute), approvalAfter))
				s.create("run", "one", "0", run)
				s.settle()
				s.available("member1")
				s.available("member3")
				s.settle()
				s.now = s.now.Add(time.Hour)
				s.settle()
				s.available("member2")
				s.now = s.now.Add(time.Hour)
				s.settle()
				s.retry("run", "member2")
				s.writesLeft = writes
				s.settle()
				s.writesLeft = -1
				return s
			}
			calm := stored(play(-1))
			for writes := range 6 {
				s := play(writes)
				if diff := cmp.Diff(calm, stored(s)); diff != "" {
					t.Errorf("a crash after %d writes made a difference (-without +with):\n%s\n%s", writes, diff, tail(s.log.String(), 60))
				}
			}
		})
	}
}
