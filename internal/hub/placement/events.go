package placement

import (
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	model "github.com/fleetwright/fleetwright/internal/placement"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Reasons of the events on a placement, besides those of its conditions.
const (
	// EventRolloutStarted and the following: the condition has become true of all clusters, and the next has not.
	EventRolloutStarted   = "PlacementRolloutStarted"
	EventOverridden       = "PlacementOverriddenSucceeded"
	EventWorkSynchronized = "PlacementWorkSynchronized"
	EventApplied          = "PlacementApplied"
	// EventRolloutCompleted: all clusters have all of one resource snapshot, and it is available.
	EventRolloutCompleted = "PlacementRolloutCompleted"
	// EventSelectorsFoundNothing: selectors of the placement find nothing, so that nothing is placed for them.
	EventSelectorsFoundNothing = "PlacementSelectorsFoundNothing"
	// EventRemovalWaiting: the placement was deleted and waits for clusters to remove what was placed there.
	EventRemovalWaiting = "PlacementRemovalWaiting"
	// EventFinalizerRemoved: all that belonged to the placement is gone.
	EventFinalizerRemoved = "PlacementCleanupFinalizerRemoved"
)

// eventAction is what every event of a placement is about.
const eventAction = "Place"

// milestones are the conditions whose coming true is an event, in their order.
var milestones = []struct{ condition, reason string }{
	{placementv1.ConditionRolloutStarted, EventRolloutStarted},
	{placementv1.ConditionOverridden, EventOverridden},
	{placementv1.ConditionWorkSynchronized, EventWorkSynchronized},
	{placementv1.ConditionApplied, EventApplied},
	{placementv1.ConditionAvailable, EventRolloutCompleted},
}

// tell records the events that follow from a change of status. A milestone is told once for each resource snapshot, when
// all clusters are on it: while a run moves them one by one, conditions come and go with each. Of several that are reached
// at once the last is told, which says it all.
func (c *Controller) tell(p placementv1.PlacementObject, before, after *placementv1.PlacementStatus, m *memory) {
	c.tellProblem(p, before, after)
	c.tellFoundNothing(p, before, after, m)
	index := after.ObservedResourceIndex
	if index == "" {
		return
	}
	reason, note := "", ""
	for _, milestone := range milestones {
		kind := c.Kinds.ConditionPrefix + milestone.condition
		if !meta.IsStatusConditionTrue(after.Conditions, kind) || m.told[kind] == index {
			continue
		}
		m.told[kind] = index
		if before.ObservedResourceIndex == index && meta.IsStatusConditionTrue(before.Conditions, kind) {
			continue // it was told before this hub was started
		}
		reason, note = milestone.reason, meta.FindStatusCondition(after.Conditions, kind).Message
	}
	if reason == "" {
		return
	}
	if which := "resource snapshot " + index; !strings.HasSuffix(note, which) && !strings.Contains(note, which+" ") {
		note += ", " + which
	}
	c.event(p, corev1.EventTypeNormal, reason, note)
}

// tellProblem warns of what keeps the hub from knowing what is selected.
func (c *Controller) tellProblem(p placementv1.PlacementObject, before, after *placementv1.PlacementStatus) {
	kind := c.Kinds.ConditionPrefix + placementv1.ConditionScheduled
	now := meta.FindStatusCondition(after.Conditions, kind)
	if now == nil || (now.Reason != placementv1.ReasonInvalidResourceSelectors && now.Reason != placementv1.ReasonResourceSelectionIncomplete) {
		return
	}
	if was := meta.FindStatusCondition(before.Conditions, kind); was == nil || was.Reason != now.Reason {
		c.event(p, corev1.EventTypeWarning, now.Reason, now.Message)
	}
}

// tellFoundNothing warns of selectors that find nothing, once the status has come to say so.
func (c *Controller) tellFoundNothing(p placementv1.PlacementObject, before, after *placementv1.PlacementStatus, m *memory) {
	says := func(status *placementv1.PlacementStatus) bool {
		scheduled := meta.FindStatusCondition(status.Conditions, c.Kinds.ConditionPrefix+placementv1.ConditionScheduled)
		return scheduled != nil && strings.Contains(scheduled.Message, m.foundNothing)
	}
	if m.foundNothing != "" && says(after) && !says(before) {
		c.event(p, corev1.EventTypeWarning, EventSelectorsFoundNothing, strings.ToUpper(m.foundNothing[:1])+m.foundNothing[1:])
	}
}

func (c *Controller) event(p placementv1.PlacementObject, eventType, reason, note string) {
	c.Recorder.Eventf(p, nil, eventType, reason, eventAction, "%s", model.Note(note))
}
