package updaterun

import (
	"fmt"
	"strings"
)

// Messages that users of the public system know.
const (
	messageProgress        = "The update run is making progress"
	messageStopped         = "The update run has been stopped"
	messageAborted         = "The stages are aborted due to a non-recoverable error"
	messageCompleted       = "All stages are completed"
	messageSucceeded       = "All stages are completed successfully"
	messageStageStarted    = "Clusters in the stage started updating"
	messageStageBefore     = "Not all before-stage tasks are completed, waiting for approval"
	messageStageAfter      = "All clusters in the stage are updated, waiting for after-stage tasks to complete"
	messageStageUpdated    = "All clusters in the stage are updated and after-stage tasks are completed"
	messageStageUpdatedBut = "All clusters in the stage are updated but for those that failed, and after-stage tasks are completed"
	messageStageSucceeded  = "Stage update completed successfully"
	messageStageSkipped    = "Stage skipped because it has no clusters"
	messageStageStopping   = "Waiting for the updating clusters to finish, no other cluster is started"
	messageStageStopped    = "All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed"
	messageStageAborted    = "Stage update aborted due to a non-recoverable error"
	messageHalted          = "The stages are halted until failed clusters are retried or skipped"
	messageStageHalted     = "Stage update halted: more clusters have failed than may, until some are retried or skipped"
	messageStageCancelled  = "Stage update ended, since the update run was cancelled"
	messageClusterStarted  = "Cluster update started"
	messageClusterUpdated  = "Cluster update completed successfully"
	messageRemovalStarted  = "Cluster is no longer scheduled, removal started"
	messageRemovalComplete = "Removal completed successfully"
	messageWaitElapsed     = "Wait time elapsed"
	messageAccepted        = "The approval request has been approved and cannot be reverted"
)

// shownNames is how many clusters a message names.
const shownNames = 3

// some names the first of several clusters, and says how many more there are.
func some(names []string) string {
	if len(names) <= shownNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shownNames], ", "), len(names)-shownNames)
}

// clusters counts clusters in words.
func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}
