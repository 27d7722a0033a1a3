package updaterun

import (
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
)

const (
	// eventAction is what every event of a run is about.
	eventAction = "UpdateRun"
	// longestNote is how long an event's note may be; the API refuses more than 1024 bytes.
	longestNote = 1000
)

// tell records what happened to a run. It is called once the status that says so is stored, and as the events follow
// from what that status changed, a hub that is started anew tells nothing twice.
func (c *Controller) tell(run placementv1.UpdateRunObject, events []engine.Event) {
	for _, e := range events {
		c.Recorder.Eventf(run, nil, e.Type, e.Reason, eventAction, "%s", placement.Cut(e.Message, longestNote))
	}
}

// plural is a kind's name as kubectl takes it.
func plural(kind string) string { return strings.ToLower(kind) + "s" }
