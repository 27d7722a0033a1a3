package updaterun

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// latest is what was last decided of a run: the status that is stored, or a newer one that waits to be written.
func (w *World) latest(run placementv1.UpdateRunObject) *placementv1.UpdateRunStatus {
	if ahead := w.Unwritten[run.GetUID()]; ahead != nil {
		return ahead
	}
	return run.UpdateRunStatus()
}

// mayWait tells whether a status differs from the stored one in nothing but how far clusters are that go their way: which
// were started and which are done. No decision rests on that being stored, as it can be read off the bindings again.
// Whatever opens something, ends something, or needs somebody, is never part of it: stages that are done, gates, waits,
// stopping, clusters that fail or are given up, and the end.
func mayWait(stored, status *placementv1.UpdateRunStatus) bool {
	if len(stored.StagesStatus) != len(status.StagesStatus) || (stored.DeletionStageStatus == nil) != (status.DeletionStageStatus == nil) {
		return false
	}
	before, after := withoutProgress(stored), withoutProgress(status)
	for i := range before.StagesStatus {
		ignoreStart(&before.StagesStatus[i], &after.StagesStatus[i])
	}
	if before.DeletionStageStatus != nil {
		ignoreStart(before.DeletionStageStatus, after.DeletionStageStatus)
	}
	return equality.Semantic.DeepEqual(before, after)
}

// withoutProgress is a status without what tells how far clusters are.
func withoutProgress(status *placementv1.UpdateRunStatus) *placementv1.UpdateRunStatus {
	rest := status.DeepCopy()
	if c := meta.FindStatusCondition(rest.Conditions, placementv1.ConditionProgressing); c != nil {
		switch c.Reason {
		case placementv1.ReasonUpdateRunProgressing, placementv1.ReasonUpdateRunStopping:
			c.Message = "" // names the clusters in flight
		}
	}
	forEachStage(rest, func(stage *placementv1.StageUpdatingStatus) {
		stage.StartTime = nil
		if counts := stage.ClusterCounts; counts != nil {
			counts.Succeeded, counts.Updating = 0, 0
		}
		for i := range stage.Clusters {
			row := &stage.Clusters[i]
			switch progressOf(row) {
			case "", placementv1.ClusterUpdatingStateStarted, placementv1.ClusterUpdatingStateSucceeded:
				if !isFalse(row.Conditions, placementv1.ConditionSucceeded) {
					row.State, row.Conditions = "", nil
				}
			}
		}
	})
	return rest
}

// ignoreStart takes out of two states of a stage that its first clusters were started in between. Where the stage was said
// to wait or to be stopped before, it stays in: that would not be true any more.
func ignoreStart(before, after *placementv1.StageUpdatingStatus) {
	if len(before.Conditions) > 0 || len(after.Conditions) != 1 {
		return
	}
	if c := &after.Conditions[0]; c.Status == metav1.ConditionTrue && c.Reason == placementv1.ReasonStageUpdatingStarted {
		after.Conditions = before.Conditions
	}
}
