package updaterun

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMayWait changes one thing in the status of a run that is in its second stage of two, and asks whether that may wait.
func TestMayWait(t *testing.T) {
	t.Parallel()
	set := func(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1})
	}
	stage := func(s *placementv1.UpdateRunStatus) *placementv1.StageUpdatingStatus { return &s.StagesStatus[1] }
	start := func(row *placementv1.ClusterUpdatingStatus) {
		set(&row.Conditions, placementv1.ConditionStarted, metav1.ConditionTrue, placementv1.ReasonClusterUpdatingStarted, messageClusterStarted)
	}
	base := func() *placementv1.UpdateRunStatus {
		s := &placementv1.UpdateRunStatus{StagesStatus: []placementv1.StageUpdatingStatus{*newStage("one", []string{"a"}), *newStage("two", []string{"b", "c"})},
			DeletionStageStatus: newStage(placementv1.DeletionStageName, []string{"d"})}
		set(&s.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, "waiting for b")
		start(&stage(s).Clusters[0])
		set(&stage(s).Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted, messageStageStarted)
		stage(s).BeforeStageTaskStatus = []placementv1.StageTaskStatus{{Type: placementv1.StageTaskTypeApproval}}
		return s
	}
	cases := map[string]struct {
		change func(*placementv1.UpdateRunStatus)
		want   bool
	}{
		"nothing": {change: func(*placementv1.UpdateRunStatus) {}, want: true},
		"a cluster is started": {change: func(s *placementv1.UpdateRunStatus) {
			start(&stage(s).Clusters[1])
			stage(s).ClusterCounts.Updating++
		}, want: true},
		"the first of a stage": {change: func(s *placementv1.UpdateRunStatus) {
			start(&s.DeletionStageStatus.Clusters[0])
			now := metav1.Now()
			s.DeletionStageStatus.StartTime = &now
			set(&s.DeletionStageStatus.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted, "")
		}, want: true},
		"a cluster is done": {change: func(s *placementv1.UpdateRunStatus) {
			set(&stage(s).Clusters[0].Conditions, placementv1.ConditionSucceeded, metav1.ConditionTrue, placementv1.ReasonClusterUpdatingSucceeded, "")
			stage(s).ClusterCounts.Succeeded++
		}, want: true},
		"another is waited for": {change: func(s *placementv1.UpdateRunStatus) {
			s.Conditions[0].Message = "waiting for c"
		}, want: true},
		"a cluster is given up": {change: func(s *placementv1.UpdateRunStatus) {
			set(&stage(s).Clusters[0].Conditions, placementv1.ConditionSucceeded, metav1.ConditionUnknown, placementv1.ReasonClusterUpdatingSkipped, "")
		}},
		"a cluster failed": {change: func(s *placementv1.UpdateRunStatus) {
			set(&stage(s).Clusters[0].Conditions, placementv1.ConditionSucceeded, metav1.ConditionFalse, placementv1.ReasonClusterUpdatingFailed, "")
		}},
		"one more fails to apply": {change: func(s *placementv1.UpdateRunStatus) {
			stage(s).ClusterCounts.Failing++
		}},
		"the run is stuck": {change: func(s *placementv1.UpdateRunStatus) {
			set(&s.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonUpdateRunStuck, "")
		}},
		"the run is stopping": {change: func(s *placementv1.UpdateRunStatus) {
			set(&s.Conditions, placementv1.ConditionProgressing, metav1.ConditionUnknown, placementv1.ReasonUpdateRunStopping, "")
		}},
		"a stage is done": {change: func(s *placementv1.UpdateRunStatus) {
			set(&stage(s).Conditions, placementv1.ConditionSucceeded, metav1.ConditionTrue, placementv1.ReasonStageUpdatingSucceeded, "")
		}},
		"a gate is open": {change: func(s *placementv1.UpdateRunStatus) {
			set(&stage(s).BeforeStageTaskStatus[0].Conditions, placementv1.ConditionApprovalRequestApproved, metav1.ConditionTrue, placementv1.ReasonStageTaskApprovalRequestApproved, "")
		}},
		"the run has taken over": {change: func(s *placementv1.UpdateRunStatus) {
			now := metav1.Now()
			s.StartedTime = &now
		}},
		"the run's spec has changed": {change: func(s *placementv1.UpdateRunStatus) {
			s.Conditions[0].ObservedGeneration = 2
		}},
		"there is another plan": {change: func(s *placementv1.UpdateRunStatus) {
			s.StagesStatus = s.StagesStatus[:1]
		}},
		"a plan is gone": {change: func(s *placementv1.UpdateRunStatus) {
			s.DeletionStageStatus = nil
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := base()
			after := before.DeepCopy()
			tc.change(after)
			if got := mayWait(before, after); got != tc.want {
				t.Errorf("mayWait = %t, want %t", got, tc.want)
			}
		})
	}
}

// TestStageThatWaitedIsStartedAtOnce has the first cluster of a stage started that was said to wait for an approval.
func TestStageThatWaitedIsStartedAtOnce(t *testing.T) {
	t.Parallel()
	status := func(conditions ...metav1.Condition) *placementv1.UpdateRunStatus {
		return &placementv1.UpdateRunStatus{StagesStatus: []placementv1.StageUpdatingStatus{{StageName: "one", Conditions: conditions}}}
	}
	progressing := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: placementv1.ConditionProgressing, Status: status, Reason: reason}
	}
	started := status(progressing(metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted))
	if !mayWait(status(), started) {
		t.Error("it may wait that a stage begins")
	}
	for _, reason := range []string{placementv1.ReasonStageUpdatingWaiting, placementv1.ReasonStageUpdatingStopped} {
		if mayWait(status(progressing(metav1.ConditionFalse, reason)), started) {
			t.Errorf("a stage is said to be %s for longer than it is", reason)
		}
	}
}
