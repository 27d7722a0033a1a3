package eviction

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/rollout/eviction"
	corev1 "k8s.io/api/core/v1"
)

// eventAction is what every event of an eviction is about.
const eventAction = "Evict"

// tell records what has become of an eviction, once the status that says so is stored: on the eviction and, where there was
// something to evict, on the placement, since evictions are often deleted when they are dealt with.
func (c *Controller) tell(e *placementv1.ClusterResourcePlacementEviction, p placementv1.PlacementObject, o eviction.Outcome) {
	if o.Result == "" {
		return
	}
	eventType, what := corev1.EventTypeNormal, o.Condition.Message
	if o.Result != eviction.Executed {
		eventType = corev1.EventTypeWarning
	}
	where := " from cluster " + e.Spec.ClusterName + ": "
	c.Recorder.Eventf(e, p, eventType, o.Condition.Reason, eventAction, "%s", placement.Note("Placement "+e.Spec.PlacementName+where+what))
	if p != nil && o.Result != eviction.Invalid {
		c.Recorder.Eventf(p, e, eventType, o.Condition.Reason, eventAction, "%s", placement.Note("Eviction "+e.Name+where+what))
	}
}
