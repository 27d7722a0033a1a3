package updaterun

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// phase is how far a run is, as its status and state tell.
type phase int

const (
	phaseUnplanned phase = iota // has no plan, or one that is to be made anew because the run starts now
	phaseParked                 // has a plan and is not to start
	phaseStarted                // has taken the placement over
	phaseFinished               // will do nothing any more
	phaseAsked                  // has ended, and is asked for something that it has not answered
	phaseCancelled              // is to end, as somebody wants it to
	phaseLeaving                // is being deleted
)

func phaseOf(run placementv1.UpdateRunObject) phase {
	status := run.UpdateRunStatus()
	switch {
	case !run.GetDeletionTimestamp().IsZero():
		return phaseLeaving
	case Finished(status) && len(unanswered(run.UpdateRunSpec(), status)) > 0:
		return phaseAsked
	case Finished(status):
		return phaseFinished
	case run.UpdateRunSpec().Cancel != nil:
		return phaseCancelled
	case status.StartedTime != nil:
		return phaseStarted
	case isTrue(status.Conditions, placementv1.ConditionInitialized) && run.UpdateRunSpec().State != placementv1.UpdateRunStateRun:
		return phaseParked
	default:
		return phaseUnplanned
	}
}

// Finished tells whether a run with this status will do nothing any more.
func Finished(status *placementv1.UpdateRunStatus) bool {
	return isTrue(status.Conditions, placementv1.ConditionSucceeded) || isFalse(status.Conditions, placementv1.ConditionSucceeded) ||
		isFalse(status.Conditions, placementv1.ConditionInitialized)
}

// Unplanned returns the runs that need a plan before Decide can say what they do. A run that was planned while it was
// parked is planned anew when it starts, on the snapshot that it was planned with.
func Unplanned(runs []placementv1.UpdateRunObject) []placementv1.UpdateRunObject {
	return slices.DeleteFunc(slices.Clone(runs), func(run placementv1.UpdateRunObject) bool { return phaseOf(run) != phaseUnplanned })
}

// Active returns the runs that are started and not finished, or may go on: what Decide says of them depends on bindings and
// requests.
func Active(runs []placementv1.UpdateRunObject) []placementv1.UpdateRunObject {
	return slices.DeleteFunc(slices.Clone(runs), func(run placementv1.UpdateRunObject) bool {
		switch phaseOf(run) {
		case phaseStarted, phaseAsked, phaseCancelled:
			return run.UpdateRunStatus().StartedTime == nil
		default:
			return true
		}
	})
}

// Decide says what each run of a placement is to do, in the order in which it is to be written.
//
// At most one run moves the placement. A run takes over when it is planned and in state Run; of several, the one made
// last does. It then waits for nobody: unfinished runs that started earlier, and those made earlier that have not started
// but were asked to, end failed. That a run was not started before it took over is recorded first, and that it took over
// is recorded before those that it ends, so that there is always somebody whom the placement follows. Runs that have
// nothing to say, as they are finished or parked and were not changed since, are left out.
func Decide(w *World) []Result {
	taker := w.taker()
	holder := lastStarted(w.Runs)
	var ended, took, others, refreshed []Result
	for _, run := range slices.SortedFunc(slices.Values(w.Runs), byAge) {
		overtaken := taker != nil && byAge(run, taker) < 0 && run.UpdateRunSpec().State != placementv1.UpdateRunStateInitialize
		switch p := phaseOf(run); {
		case p == phaseLeaving:
		case p == phaseFinished:
			refreshed = append(refreshed, w.refreshed(run)...)
		case p == phaseAsked && resumable(run.UpdateRunStatus()):
			others = append(others, w.resume(run, holder, taker))
		case p == phaseAsked:
			refreshed = append(refreshed, newStep(w, run).refuse(Final(run.UpdateRunStatus())))
		case p == phaseCancelled:
			ended = append(ended, w.cancelled(run))
		case run == taker:
			took = append(took, w.takeOver(run))
		case p == phaseStarted && taker != nil:
			others = append(others, w.superseded(run, taker))
		case p == phaseStarted && run != holder:
			others = append(others, w.superseded(run, holder))
		case p == phaseStarted:
			others = append(others, w.step(run))
		case overtaken:
			ended = append(ended, w.superseded(run, taker))
		case p == phaseParked:
			refreshed = append(refreshed, w.refreshed(run)...)
		default:
			if plan, ok := w.Plans[run.GetUID()]; ok {
				others = append(others, w.planned(run, plan))
			}
		}
	}
	return slices.Concat(ended, took, others, refreshed)
}

// InOrder writes results one after the other, and ends at the first that fails: those after it rest on what it was to record.
func InOrder(results []Result, write func(Result) error) error {
	for _, r := range results {
		if err := write(r); err != nil {
			return err
		}
	}
	return nil
}

// taker returns the run that takes the placement over now, or nil.
func (w *World) taker() placementv1.UpdateRunObject {
	var taker placementv1.UpdateRunObject
	for _, run := range Unplanned(w.Runs) {
		ready := run.UpdateRunSpec().State == placementv1.UpdateRunStateRun && w.Plans[run.GetUID()].Verdict == Planned
		if ready && (taker == nil || byAge(run, taker) > 0) {
			taker = run
		}
	}
	return taker
}

// lastStarted returns the run that took the placement over last, finished or not; nil where none has.
func lastStarted(runs []placementv1.UpdateRunObject) placementv1.UpdateRunObject {
	var last placementv1.UpdateRunObject
	for _, run := range runs {
		if run.UpdateRunStatus().StartedTime == nil {
			continue
		}
		if last == nil || cmp.Or(run.UpdateRunStatus().StartedTime.Compare(last.UpdateRunStatus().StartedTime.Time), byAge(run, last)) > 0 {
			last = run
		}
	}
	return last
}

// byAge orders runs by when they were made, and those of one second by name.
func byAge(a, b placementv1.UpdateRunObject) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
}

// takeOver makes a run the one that moves the placement. Nothing is started before that is recorded.
func (w *World) takeOver(run placementv1.UpdateRunObject) Result {
	s := w.stampFor(run)
	status := w.withPlan(run, w.Plans[run.GetUID()].Status)
	started := s.now
	// The API keeps whole seconds. Whoever takes over later has the later time all the same.
	if last := lastStarted(w.Runs); last != nil && !last.UpdateRunStatus().StartedTime.Before(&started) {
		started = metav1.NewTime(last.UpdateRunStatus().StartedTime.Add(time.Second))
	}
	status.StartedTime = &started
	s.set(&status.Conditions, placementv1.ConditionProgressing, metav1.ConditionTrue, placementv1.ReasonUpdateRunProgressing, messageProgress)
	return w.result(run, status, fmt.Sprintf("takes %s %q over: planned, and in state Run", w.Kinds.Placement, w.Key.Name))
}

// planned records the outcome of planning a run that does not start now.
func (w *World) planned(run placementv1.UpdateRunObject, plan Plan) Result {
	s := w.stampFor(run)
	if plan.Verdict == Planned {
		status := w.withPlan(run, plan.Status)
		if run.UpdateRunSpec().State == placementv1.UpdateRunStateStop {
			s.set(&status.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonUpdateRunStopped, messageStopped)
		}
		return w.result(run, status, fmt.Sprintf("planned; in state %s, so it is not started", run.UpdateRunSpec().State))
	}
	// The index keeps the snapshot that the run names from being pruned while the run waits.
	status := &placementv1.UpdateRunStatus{
		ResourceSnapshotIndexUsed: run.UpdateRunSpec().ResourceSnapshotIndex,
		Conditions:                run.UpdateRunStatus().DeepCopy().Conditions,
	}
	s.refresh(status)
	if plan.Verdict == Failed {
		s.set(&status.Conditions, placementv1.ConditionInitialized, metav1.ConditionFalse, placementv1.ReasonUpdateRunInitializationFailed, plan.Message)
		s.set(&status.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonUpdateRunFailed,
			"The run cannot be planned, and ends: "+plan.Message)
		return w.result(run, status, "cannot be planned: "+plan.Message)
	}
	// Progressing says the same, as that is where people look: kubectl get -o wide shows it.
	message := "The run cannot be planned yet: " + plan.Message
	s.set(&status.Conditions, placementv1.ConditionInitialized, metav1.ConditionUnknown, placementv1.ReasonUpdateRunInitializationPending, message)
	s.set(&status.Conditions, placementv1.ConditionProgressing, metav1.ConditionFalse, placementv1.ReasonUpdateRunWaiting, message)
	return w.result(run, status, "waits to be planned: "+plan.Message)
}

// withPlan is a run's status with a new plan.
func (w *World) withPlan(run placementv1.UpdateRunObject, plan placementv1.UpdateRunStatus) *placementv1.UpdateRunStatus {
	s := w.stampFor(run)
	status := plan.DeepCopy()
	status.Conditions = run.UpdateRunStatus().DeepCopy().Conditions
	if !isTrue(status.Conditions, placementv1.ConditionInitialized) {
		meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionProgressing) // it waited to be planned
	}
	s.refresh(status)
	s.set(&status.Conditions, placementv1.ConditionInitialized, metav1.ConditionTrue, placementv1.ReasonUpdateRunInitialized,
		w.Kinds.UpdateRun+" initialized successfully")
	return status
}

// superseded ends a run because another moves the placement now.
func (w *World) superseded(run, by placementv1.UpdateRunObject) Result {
	return newStep(w, run).fail(fmt.Sprintf("update run %q has taken the placement over; clusters stay as they are until that run reaches them", by.GetName()))
}

// refreshed keeps a run's conditions ones of its generation. Where they are, there is nothing to say: a fleet has many
// finished runs, and each has a row for every cluster.
func (w *World) refreshed(run placementv1.UpdateRunObject) []Result {
	outdated := func(c metav1.Condition) bool { return c.ObservedGeneration != run.GetGeneration() }
	if !slices.ContainsFunc(run.UpdateRunStatus().Conditions, outdated) {
		return nil
	}
	status := run.UpdateRunStatus().DeepCopy()
	w.stampFor(run).refresh(status)
	return []Result{{Run: run, Status: status}}
}

// result is a result without actions.
func (w *World) result(run placementv1.UpdateRunObject, status *placementv1.UpdateRunStatus, notes ...string) Result {
	fit(status, maxStatusBytes)
	return Result{Run: run, Status: status, Events: w.eventsOf(run, status), Notes: notes}
}
