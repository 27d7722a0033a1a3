package updaterun

import (
	"cmp"
	"encoding/json"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxStatusBytes is how large a run's status may get, as JSON.
	maxStatusBytes = 512 << 10
	// reservedBytes is for what a run's status gains on its way besides the rows of its clusters, and reservedStageBytes
	// for what each stage gains: conditions, gates and counts, with the longest messages.
	reservedBytes      = 4<<10 + reservedActionBytes
	reservedStageBytes = 4 << 10
	// reservedActionBytes is for the answers to what people ask about clusters: 200 with the longest names, shortened.
	reservedActionBytes = 200*len(`{"cluster":"","action":"Retry","time":"2006-01-02T15:04:05Z","result":"Accepted"},`) + 200*63
	// reservedClockBytes is for the clock of the deadline of a cluster in flight.
	reservedClockBytes = len(`,"heldSince":"2006-01-02T15:04:05Z","heldSeconds":1000000`)
)

// fit leaves out the conditions of clusters until the status has at most limit bytes: of those that are done first, the
// earliest before the latest, and of those in flight last. A cluster's state then stands for them. If that is not enough it
// shortens the answers to what people asked, the earliest first: why and by whom is in the run's spec too.
func fit(status *placementv1.UpdateRunStatus, limit int) {
	type candidate struct {
		row   *placementv1.ClusterUpdatingStatus
		order int // the higher, the sooner its conditions are left out
		bytes int // what leaving them out saves
	}
	size := sizeOf(status)
	if size <= limit {
		return
	}
	var candidates []candidate
	sizes := conditionSizes{}
	forEachStage(status, func(stage *placementv1.StageUpdatingStatus) {
		for i := range stage.Clusters {
			row := &stage.Clusters[i]
			if len(row.Conditions) == 0 {
				continue
			}
			c := candidate{row: row, bytes: len(`,"conditions":[`) + len(`]`) - len(`,"state":""`) - len(progressOf(row))}
			for j := range row.Conditions {
				c.bytes += sizes.of(&row.Conditions[j]) + len(`,`)
			}
			c.bytes -= len(`,`)
			switch progressOf(row) {
			case placementv1.ClusterUpdatingStateSucceeded:
				c.order = 2
			case placementv1.ClusterUpdatingStateSkipped:
				c.order = 1
			case placementv1.ClusterUpdatingStateStarted, placementv1.ClusterUpdatingStateFailed:
			}
			candidates = append(candidates, c)
		}
	})
	slices.SortStableFunc(candidates, func(a, b candidate) int { return -cmp.Compare(a.order, b.order) })
	// Those that are done are left out from the earliest on. Those in flight are kept from the first on, as they are named.
	if first := slices.IndexFunc(candidates, func(c candidate) bool { return c.order == 0 }); first >= 0 {
		slices.Reverse(candidates[first:])
	}
	for _, c := range candidates {
		if size <= limit {
			return
		}
		c.row.State, c.row.Conditions = progressOf(c.row), nil
		size -= c.bytes
	}
	for i := range status.ClusterActions {
		if size <= limit {
			return
		}
		a := &status.ClusterActions[i]
		before := sizeOf(a)
		a.Reason, a.Message, a.RequestedBy = "", "", ""
		size -= before - sizeOf(a)
	}
}

// conditionSizes remembers the sizes of conditions that differ in their times alone.
type conditionSizes map[metav1.Condition]int

func (s conditionSizes) of(c *metav1.Condition) int {
	key := *c
	key.LastTransitionTime = metav1.Time{}
	if size, known := s[key]; known {
		return size
	}
	s[key] = sizeOf(c)
	return s[key]
}

// largestSize is the most that a planned run's status can take when no cluster has conditions.
func largestSize(plan *placementv1.UpdateRunStatus) int {
	size := sizeOf(plan) + reservedBytes
	forEachStage(plan, func(stage *placementv1.StageUpdatingStatus) {
		size += reservedStageBytes + len(stage.Clusters)*len(`,"state":"Succeeded"`)
	})
	if strategy := plan.StagedUpdateStrategySnapshot; strategy != nil {
		for i := range min(len(strategy.Stages), len(plan.StagesStatus)) {
			if config := &strategy.Stages[i]; deadlineOf(config) > 0 {
				size += concurrency(config.MaxConcurrency, len(plan.StagesStatus[i].Clusters)) * reservedClockBytes
			}
		}
	}
	return size
}

// sizeOf is the size of a value as JSON. The API types all have one.
func sizeOf(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		panic("measure an API type: " + err.Error())
	}
	return len(text)
}

func kilobytes(bytes int) int { return (bytes + 1023) >> 10 }
