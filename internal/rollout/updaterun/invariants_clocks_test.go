package updaterun

import (
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// create makes a run, which takes a second.
func (h *history) create(name, strategy, index string, state placementv1.UpdateRunState) {
	h.runClocks(time.Second)
	h.sim.create(name, strategy, index, state)
}

// tick lets time pass.
func (h *history) tick(d time.Duration) {
	h.now = h.now.Add(d)
	h.runClocks(d)
}

// runClocks moves the clocks of deadlines that are not recorded as standing still. The clock of a cluster runs until it is
// recorded as done: one that is available for a moment in which the hub does not look has all its time behind it.
func (h *history) runClocks(d time.Duration) {
	for _, r := range h.runs {
		for i := range r.Status.StagesStatus {
			for j := range r.Status.StagesStatus[i].Clusters {
				if row := &r.Status.StagesStatus[i].Clusters[j]; row.HeldSince == nil && h.underWay(r, row) {
					h.clock[r.Name+"/"+row.ClusterName+"/"+retryOf(row)] += d
				}
			}
		}
	}
}

// checkDeadline checks that no cluster has failed before its time.
func (h *history) checkDeadline(r *placementv1.ClusterStagedUpdateRun, i int, row *placementv1.ClusterUpdatingStatus) {
	c := meta.FindStatusCondition(row.Conditions, placementv1.ConditionSucceeded)
	key := r.Name + "/" + row.ClusterName + "/" + retryOf(row)
	if c == nil || c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, "Failed: ") || h.clock[key] < 0 {
		return
	}
	if long := deadlineOf(&r.Status.StagedUpdateStrategySnapshot.Stages[i]); h.clock[key] < long {
		h.fail("run %s: %s has failed after %s and not %s", r.Name, row.ClusterName, h.clock[key], long)
	}
	h.clock[key] = -1 << 62 // judged
}

// checkWait checks that no wait ended early.
func (h *history) checkWait(r *placementv1.ClusterStagedUpdateRun, i int) {
	stage, config := &r.Status.StagesStatus[i], &r.Status.StagedUpdateStrategySnapshot.Stages[i]
	key := r.Name + "/" + stage.StageName
	for j := range stage.AfterStageTaskStatus {
		if h.waited[key] || !isTrue(stage.AfterStageTaskStatus[j].Conditions, placementv1.ConditionWaitTimeElapsed) {
			continue
		}
		h.waited[key] = true
		if long := config.AfterStageTasks[j].WaitTime.Duration; !h.updated[key].IsZero() && h.now.Sub(h.updated[key]) < long {
			h.fail("S2: run %s: stage %s waited %s and not %s", r.Name, stage.StageName, h.now.Sub(h.updated[key]), long)
		}
	}
}
