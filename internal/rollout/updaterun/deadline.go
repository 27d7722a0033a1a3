package updaterun

import (
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/rollout/verdict"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// defaultDeadline is the progressDeadline of a stage that has none and may have failures: without one there would be none.
const defaultDeadline = 10 * time.Minute

// maxFailures is how many clusters of a stage may fail.
func maxFailures(config *placementv1.StageConfig, clusters int) int {
	if config.MaxFailures == nil {
		return 0
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(config.MaxFailures, clusters, false)
	if err != nil {
		return 0 // the API lets nothing pass that is neither; the default is the safest
	}
	return max(most, 0)
}

// deadlineOf is how long a cluster of a stage may take; 0 means as long as it needs.
func deadlineOf(config *placementv1.StageConfig) time.Duration {
	switch {
	case config.ProgressDeadline != nil:
		return config.ProgressDeadline.Duration
	case config.MaxFailures != nil && *config.MaxFailures != intstr.FromInt32(0) && *config.MaxFailures != intstr.FromString("0%"):
		return defaultDeadline
	default:
		return 0
	}
}

// overdue tells whether a cluster in flight has had its time. The clock stands still while the run is stopped, and while all
// that the cluster waits for is somebody; since when it does is recorded in its row.
func (s *step) overdue(row *placementv1.ClusterUpdatingStatus, b placementv1.BindingObject, long time.Duration) bool {
	if long == 0 {
		return false
	}
	held := s.stopping || verdict.Paused(b) != ""
	switch {
	case held && row.HeldSince == nil:
		s.holdClock(row)
	case !held && row.HeldSince != nil:
		row.HeldSeconds += int64(roundUp(s.w.Now).Sub(row.HeldSince.Time) / time.Second)
		row.HeldSince = nil
	}
	if held {
		return false
	}
	// When it was started is recorded in whole seconds, rounded down: nobody fails early.
	due := startedAt(b, s.now).Add(long + time.Second + time.Duration(row.HeldSeconds)*time.Second)
	if s.w.Now.Before(due) {
		s.wakeAt(due)
		return false
	}
	return true
}

// holdClock stops the clock of a cluster's deadline.
func (s *step) holdClock(row *placementv1.ClusterUpdatingStatus) {
	if row.HeldSince == nil {
		now := s.now
		row.HeldSince = &now
	}
}

// holdClocks stops the clocks of a stage's clusters in flight.
func (s *step) holdClocks(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus) {
	for i := range stage.Clusters {
		if row := &stage.Clusters[i]; deadlineOf(config) > 0 && progressOf(row) == placementv1.ClusterUpdatingStateStarted {
			s.holdClock(row)
		}
	}
}

// timeOut records that a cluster has failed.
func (s *step) timeOut(stage *placementv1.StageUpdatingStatus, row *placementv1.ClusterUpdatingStatus, b placementv1.BindingObject, long time.Duration, trouble string) {
	if trouble == "" {
		trouble = "not everything is available there yet"
		if c := s.w.Fleet.Cluster(row.ClusterName); c != nil && c.Disconnected != "" {
			trouble = c.Disconnected
		}
	}
	why := fmt.Sprintf("not done within %s, the progressDeadline of stage %s, since it was started at %s: %s",
		long, stage.StageName, startedAt(b, s.now).UTC().Format(time.RFC3339), trouble)
	row.State, row.HeldSince, row.HeldSeconds = "", nil, 0
	s.set(&row.Conditions, placementv1.ConditionSucceeded, metav1.ConditionFalse, placementv1.ReasonClusterUpdatingFailed, "Failed: "+why)
	s.note("%s has failed: %s", row.ClusterName, why)
	s.tell(warning(placementv1.ReasonClusterUpdatingFailed, "Cluster "+row.ClusterName+" has failed: "+why).of(row.ClusterName))
	s.unrecorded = true
}

// tooMany ends the run because more clusters of a stage have failed than may. It goes on when enough of them are retried or
// skipped; until then the clocks of the others stand still.
func (s *step) tooMany(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus, t tally) {
	allowed := "no failure is allowed (maxFailures 0)"
	if n := maxFailures(config, len(stage.Clusters)); n > 0 {
		allowed = fmt.Sprintf("%d may (maxFailures %s)", n, config.MaxFailures.String())
	}
	namespace := ""
	if s.run.GetNamespace() != "" {
		namespace = " -n " + s.run.GetNamespace()
	}
	why := fmt.Sprintf("%d of %s in stage %s failed, and %s: %s; their rows in the run's status say why. "+
		"Let the run go on with `kubectl amc run retry %[6]s CLUSTER%[7]s` once a cluster is mended, or without it by `kubectl amc run skip %[6]s CLUSTER%[7]s`, or create a new run",
		len(t.failed), clusters(len(stage.Clusters)), stage.StageName, allowed, some(t.failed), s.run.GetName(), namespace)
	for i := range s.status.StagesStatus {
		s.holdClocks(&s.status.StagedUpdateStrategySnapshot.Stages[i], &s.status.StagesStatus[i])
	}
	s.ended = true
	s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonStageTooManyFailures, messageStageHalted)
	s.set(&stage.Conditions, placementv1.ConditionSucceeded, metav1.ConditionFalse, placementv1.ReasonStageTooManyFailures, why)
	s.progressing(metav1.ConditionFalse, placementv1.ReasonUpdateRunFailed, messageHalted+": "+why)
	s.set(&s.status.Conditions, placementv1.ConditionSucceeded, metav1.ConditionFalse, placementv1.ReasonUpdateRunFailed, why)
	s.note("ends failed: %s", why)
}
