package updaterun

import (
	"fmt"
	"strconv"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/rollout/verdict"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tally counts the clusters of a stage by how far they are, and names those in flight in the stage's order.
type tally struct {
	succeeded, skipped, waiting int
	inFlight, failing           []string // failing ones are in flight, too
	failed                      []string // and these are not any more
	// trouble is, for each that fails, what.
	trouble map[string]string
}

func (t *tally) finished() bool { return t.waiting == 0 && len(t.inFlight) == 0 }

func (t *tally) fails(cluster, trouble string) {
	if t.trouble == nil {
		t.trouble = map[string]string{}
	}
	t.failing = append(t.failing, cluster)
	t.trouble[cluster] = trouble
}

// counts are the numbers as the status shows them.
func (t *tally) counts(total int) *placementv1.StageClusterCounts {
	if total == 0 {
		return nil
	}
	return &placementv1.StageClusterCounts{
		Total: count(total), Succeeded: count(t.succeeded), Skipped: count(t.skipped), Updating: count(len(t.inFlight)), Failing: count(len(t.failing)),
		Failed: count(len(t.failed)),
	}
}

// progressOf tells how far a cluster is recorded to be; empty where it was not started.
func progressOf(row *placementv1.ClusterUpdatingStatus) placementv1.ClusterUpdatingState {
	succeeded := meta.FindStatusCondition(row.Conditions, placementv1.ConditionSucceeded)
	switch {
	case succeeded != nil && succeeded.Status == metav1.ConditionTrue:
		return placementv1.ClusterUpdatingStateSucceeded
	case succeeded != nil && succeeded.Status == metav1.ConditionUnknown:
		return placementv1.ClusterUpdatingStateSkipped
	case succeeded != nil:
		return placementv1.ClusterUpdatingStateFailed
	case isTrue(row.Conditions, placementv1.ConditionStarted):
		return placementv1.ClusterUpdatingStateStarted
	default:
		return row.State
	}
}

// clusters looks at the clusters of a stage, and starts others in order while fewer than limit are in flight; 0 starts
// none. Of a stage that was reached, its gate open and all before it recorded, clusters that have left are given up at once,
// and those that had failed are not failures any more that count against the stage.
// None is started in place of one that was given up, or has failed, before that is recorded; nor where more have failed than may.
func (s *step) clusters(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus, reached bool, limit int) tally {
	var t tally
	var waiting []*placementv1.ClusterUpdatingStatus
	for i := range stage.Clusters {
		row := &stage.Clusters[i]
		switch progress := progressOf(row); {
		case progress == placementv1.ClusterUpdatingStateSucceeded:
			t.succeeded++
		case progress == placementv1.ClusterUpdatingStateSkipped:
			t.skipped++
		case progress == placementv1.ClusterUpdatingStateFailed && reached && s.left(row.ClusterName) != "":
			s.skip(row, s.left(row.ClusterName), &t)
		case progress == placementv1.ClusterUpdatingStateFailed:
			t.failed = append(t.failed, row.ClusterName)
		case progress == placementv1.ClusterUpdatingStateStarted || s.moved(row, s.bindings[row.ClusterName]):
			s.observe(config, stage, row, &t)
		default:
			waiting = append(waiting, row)
		}
	}
	if s.unrecorded || s.failure != "" || t.tooMany(config, stage) {
		limit = 0
	}
	for _, row := range waiting {
		left := s.left(row.ClusterName)
		switch {
		case reached && left != "":
			s.skip(row, left, &t)
		case len(t.inFlight) >= limit:
			t.waiting++
		default:
			s.start(stage, row, limit, &t)
		}
	}
	stage.ClusterCounts = t.counts(len(stage.Clusters))
	return t
}

// tooMany tells whether more clusters of the stage have failed than may.
func (t *tally) tooMany(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus) bool {
	return len(t.failed) > maxFailures(config, len(stage.Clusters))
}

// moved tells whether this run gave the binding's cluster its snapshot, in the retry that the row is at.
func (s *step) moved(row *placementv1.ClusterUpdatingStatus, b placementv1.BindingObject) bool {
	return b != nil && b.GetAnnotations()[placementv1.AnnotationUpdateRunUID] == string(s.run.GetUID()) &&
		b.GetAnnotations()[placementv1.AnnotationUpdateRetry] == retryOf(row) &&
		b.BindingSpec().State == placementv1.BindingStateBound && b.BindingSpec().ResourceSnapshotName == s.target
}

// retryOf is what a row's retries are on a binding; empty on the first start.
func retryOf(row *placementv1.ClusterUpdatingStatus) string {
	if row.Retries == 0 {
		return ""
	}
	return strconv.Itoa(int(row.Retries))
}

// observe judges a cluster that was started.
func (s *step) observe(config *placementv1.StageConfig, stage *placementv1.StageUpdatingStatus, row *placementv1.ClusterUpdatingStatus, t *tally) {
	b := s.bindings[row.ClusterName]
	left := s.left(row.ClusterName)
	if left == "" && !s.moved(row, b) {
		left = s.restarted(row.ClusterName, b)
	}
	if s.failure != "" {
		return
	}
	if left != "" {
		s.skip(row, left, t)
		return
	}
	if progressOf(row) != placementv1.ClusterUpdatingStateStarted && !isTrue(stage.Conditions, placementv1.ConditionSucceeded) {
		// That it was started could not be recorded, nor that its stage went on with that. What the stage is now, the rest of the pass says.
		s.set(&stage.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonStageUpdatingStarted, messageStageStarted)
	}
	s.markStarted(row, startedAt(b, s.now))
	how, trouble := verdict.Of(b)
	switch how {
	case verdict.Done:
		row.HeldSince, row.HeldSeconds = nil, 0
		s.set(&row.Conditions, placementv1.ConditionSucceeded, metav1.ConditionTrue, placementv1.ReasonClusterUpdatingSucceeded, messageClusterUpdated)
		s.note("%s is done: all of %s is available there", row.ClusterName, s.target)
		t.succeeded++
		return
	case verdict.Failing, verdict.InProgress:
	}
	if long := deadlineOf(config); s.overdue(row, b, long) {
		s.timeOut(stage, row, b, long, trouble)
		t.failed = append(t.failed, row.ClusterName)
		return
	}
	if how == verdict.Failing {
		t.fails(row.ClusterName, trouble)
		if trouble == verdict.TroubleOverride {
			s.overrideAgain(row, b)
		}
	}
	t.inFlight = append(t.inFlight, row.ClusterName)
}

// left says why a cluster is none that the run could update; empty where it is one.
func (s *step) left(cluster string) string {
	b, c := s.bindings[cluster], s.w.Fleet.Cluster(cluster)
	switch {
	case c == nil:
		return "the cluster has left the fleet"
	case c.Leaving:
		return "the cluster is leaving the fleet"
	case b == nil:
		return "the cluster is no longer scheduled: its binding is gone"
	case !b.GetDeletionTimestamp().IsZero():
		return "the cluster is no longer scheduled: its binding is being deleted"
	case b.BindingSpec().State == placementv1.BindingStateUnscheduled:
		return "the cluster is no longer scheduled: " + b.BindingSpec().ClusterDecision.Reason
	default:
		return ""
	}
}

// restarted explains a binding that is not as this run left it: either its cluster began anew, or somebody else moved it,
// which ends the run.
func (s *step) restarted(cluster string, b placementv1.BindingObject) (left string) {
	spec, annotations := b.BindingSpec(), b.GetAnnotations()
	switch mover := annotations[placementv1.AnnotationUpdateRunUID]; {
	case mover == "" || spec.ResourceSnapshotName == "":
		return "the cluster left and came back while it was updated"
	case mover == string(s.run.GetUID()):
		s.failure = fmt.Sprintf("cluster %q, which this run had given %s, was given %s by somebody else; see %s %s",
			cluster, s.target, spec.ResourceSnapshotName, s.w.Kinds.Binding, b.GetName())
	default:
		s.failure = fmt.Sprintf("cluster %q was taken over by update run %q while this run was updating it",
			cluster, annotations[placementv1.AnnotationUpdateRun])
	}
	return ""
}

// start gives a cluster the run's snapshot.
func (s *step) start(stage *placementv1.StageUpdatingStatus, row *placementv1.ClusterUpdatingStatus, limit int, t *tally) {
	applied, unknown := s.overridesOf(row)
	if unknown != "" {
		s.note("%s waits: nobody knows yet what override snapshot %s is", row.ClusterName, unknown)
		t.waiting++
		return
	}
	b, ok := s.bindings[row.ClusterName].DeepCopyObject().(placementv1.BindingObject)
	if !ok {
		s.failure = fmt.Sprintf("the binding of cluster %q is a %T", row.ClusterName, s.bindings[row.ClusterName])
		return
	}
	b.BindingSpec().State = placementv1.BindingStateBound
	b.BindingSpec().ResourceSnapshotName = s.target
	b.BindingSpec().ApplyStrategy = s.status.ApplyStrategy.DeepCopy()
	b.BindingSpec().ReportBackStrategy = s.status.ReportBackStrategy.DeepCopy()
	applied.Give(b)
	annotations := b.GetAnnotations()
	annotations[placementv1.AnnotationUpdateRun] = s.run.GetName()
	annotations[placementv1.AnnotationUpdateRunUID] = string(s.run.GetUID())
	delete(annotations, placementv1.AnnotationUpdateRetry)
	if retry := retryOf(row); retry != "" {
		annotations[placementv1.AnnotationUpdateRetry] = retry
	}
	annotations[placementv1.AnnotationUpdateStarted] = s.now.UTC().Format(time.RFC3339)
	b.SetAnnotations(annotations)
	s.result.Start = append(s.result.Start, b)
	s.markStarted(row, s.now)
	s.note("start %s: %d of at most %d in flight in stage %s", row.ClusterName, len(t.inFlight), limit, stage.StageName)
	t.inFlight = append(t.inFlight, row.ClusterName)
}

// overridesOf returns the overrides of a cluster as they were planned, with the labels that it has now; unknown names one of which
// it is not known for which labels it asks.
func (s *step) overridesOf(row *placementv1.ClusterUpdatingStatus) (a override.Applied, unknown string) {
	var labels map[string]string
	if c := s.w.Fleet.Cluster(row.ClusterName); c != nil {
		labels = c.Labels
	}
	return s.w.Overrides.With(row.AppliedOverrides, labels)
}

// overrideAgain has the overrides of a cluster applied once more where one could not be, and the labels that they ask for are
// others by now.
func (s *step) overrideAgain(row *placementv1.ClusterUpdatingStatus, b placementv1.BindingObject) {
	want, unknown := s.overridesOf(row)
	if unknown != "" || want.Equal(override.AppliedTo(b)) {
		return
	}
	if again, ok := b.DeepCopyObject().(placementv1.BindingObject); ok {
		want.Give(again)
		s.result.Start = append(s.result.Start, again)
		s.note("%s has other labels, and is overridden again", row.ClusterName)
	}
}

func (s *step) markStarted(row *placementv1.ClusterUpdatingStatus, at metav1.Time) {
	row.State = ""
	s.setAt(&row.Conditions, placementv1.ConditionStarted, metav1.ConditionTrue, placementv1.ReasonClusterUpdatingStarted, messageClusterStarted, at)
}

// skip gives a cluster up, and counts it.
func (s *step) skip(row *placementv1.ClusterUpdatingStatus, why string, t *tally) {
	s.giveUp(row, why)
	t.skipped++
}

// giveUp records that a cluster is not to be updated any more.
func (s *step) giveUp(row *placementv1.ClusterUpdatingStatus, why string) {
	row.State, row.HeldSince, row.HeldSeconds = "", nil, 0
	s.set(&row.Conditions, placementv1.ConditionSucceeded, metav1.ConditionUnknown, placementv1.ReasonClusterUpdatingSkipped, "Skipped: "+why)
	s.note("skip %s: %s", row.ClusterName, why)
	if len(s.skipped) == 0 {
		s.firstSkipped = row.ClusterName
	}
	s.skipped = append(s.skipped, row.ClusterName+" ("+why+")")
}

// startedAt is when a run moved a binding, as it wrote on it then.
func startedAt(b placementv1.BindingObject, otherwise metav1.Time) metav1.Time {
	at, err := time.Parse(time.RFC3339, b.GetAnnotations()[placementv1.AnnotationUpdateStarted])
	if err != nil {
		return otherwise
	}
	return metav1.NewTime(at)
}

// removals looks at the clusters that are to be cleared, and clears those that were not, if it may. Before the stage was
// reached nobody has confirmed that a binding is gone.
func (s *step) removals(stage *placementv1.StageUpdatingStatus, reached, mayStart bool) tally {
	var t tally
	for i := range stage.Clusters {
		row := &stage.Clusters[i]
		b := s.bindings[row.ClusterName]
		switch progress := progressOf(row); {
		case progress == placementv1.ClusterUpdatingStateSucceeded:
			t.succeeded++
		case progress == placementv1.ClusterUpdatingStateSkipped:
			t.skipped++
		case progress == placementv1.ClusterUpdatingStateFailed:
			t.failed = append(t.failed, row.ClusterName)
		case b == nil && !reached:
			t.waiting++
		case b == nil:
			s.removing(row)
			s.set(&row.Conditions, placementv1.ConditionSucceeded, metav1.ConditionTrue, placementv1.ReasonClusterUpdatingSucceeded, messageRemovalComplete)
			s.note("%s is cleared", row.ClusterName)
			t.succeeded++
		case !b.GetDeletionTimestamp().IsZero():
			s.removing(row)
			t.inFlight = append(t.inFlight, row.ClusterName)
		case b.BindingSpec().State != placementv1.BindingStateUnscheduled:
			s.skip(row, "the cluster is scheduled again", &t)
		case !mayStart:
			t.waiting++
		default:
			s.result.Delete = append(s.result.Delete, b)
			s.removing(row)
			s.note("clear %s: it is no longer scheduled", row.ClusterName)
			t.inFlight = append(t.inFlight, row.ClusterName)
		}
	}
	stage.ClusterCounts = t.counts(len(stage.Clusters))
	return t
}

func (s *step) removing(row *placementv1.ClusterUpdatingStatus) {
	row.State = ""
	s.set(&row.Conditions, placementv1.ConditionStarted, metav1.ConditionTrue, placementv1.ReasonClusterUpdatingStarted, messageRemovalStarted)
}

// Awaited returns the clusters that the next decision about a started run depends on, and those that it may name: of a cluster that waits
// for its turn it says whether it is in the middle of an earlier release. What is said to have left counts as gone only if the API
// server confirms it, so a caller asks it for those of which its cache knows nothing.
func Awaited(run placementv1.UpdateRunObject) []string {
	var names []string
	for _, action := range unanswered(run.UpdateRunSpec(), run.UpdateRunStatus()) {
		names = append(names, action.Cluster)
	}
	forEachStage(run.UpdateRunStatus(), func(stage *placementv1.StageUpdatingStatus) {
		for i := range stage.Clusters {
			switch progressOf(&stage.Clusters[i]) {
			case "", placementv1.ClusterUpdatingStateStarted, placementv1.ClusterUpdatingStateFailed:
				names = append(names, stage.Clusters[i].ClusterName)
			case placementv1.ClusterUpdatingStateSucceeded, placementv1.ClusterUpdatingStateSkipped:
			}
		}
	})
	return names
}
