package updaterun

import (
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
)

// eventAction is what every event of a run is about.
const eventAction = "UpdateRun"

// tell records what happened to a run. It is called once the status that says so is stored, and as the events follow
// from what that status changed, a hub that is started anew tells nothing twice.
func (c *Controller) tell(run placementv1.UpdateRunObject, events []engine.Event) {
	for _, e := range events {
		c.Recorder.Eventf(run, c.related(run, &e), e.Type, e.Reason, eventAction, "%s", placement.Note(e.Message))
	}
}

// related is what an event is about besides the run: a cluster, or a part of the run; nil where it is about nothing else.
func (c *Controller) related(run placementv1.UpdateRunObject, e *engine.Event) runtime.Object {
	switch {
	case e.Cluster != "":
		return placement.RelatedCluster(e.Cluster)
	case e.Part != "":
		if part, err := reference.GetPartialReference(c.Client.Scheme(), run, e.Part); err == nil {
			return part
		}
	}
	return nil
}

// plural is a kind's name as kubectl takes it.
func plural(kind string) string { return strings.ToLower(kind) + "s" }
