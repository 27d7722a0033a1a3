package updaterun

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// sim is a small fleet in memory: it stores objects as an API server does, plays hub/work and the members, and writes what
// the engine decides in the order in which the controller does.
type sim struct {
	t          testing.TB
	kinds      *placement.Kinds
	now        time.Time
	placement  *placementv1.ClusterResourcePlacement
	strategies map[string]*placementv1.UpdateStrategySpec
	policy     *placementv1.ClusterSchedulingPolicySnapshot
	members    map[string]*schedule.Cluster
	bindings   map[string]*placementv1.ClusterResourceBinding // by cluster
	runs       map[string]*placementv1.ClusterStagedUpdateRun
	requests   map[string]*placementv1.ClusterApprovalRequest
	snapshots  int // number of resource snapshots
	uids       int
	requeue    time.Duration

	// unhurried lets statuses wait that may; unwritten are those that do, by the run's UID. A crash loses them.
	unhurried bool
	unwritten map[types.UID]*placementv1.UpdateRunStatus
	// writesLeft is how many writes come before a crash; negative: none does.
	writesLeft int
	// untilFailure is how many writes come before one that fails, once; negative: none does.
	untilFailure int
	// blind hides what no started run awaits, as a cache does that is behind: the controller confirms only what is Awaited.
	blind bool
	// watch is called after each write.
	watch func(what string)
	log   strings.Builder
	// shown is what the log last showed of each run.
	shown map[string]string
}

const testPlacement = "web"

func newSim(t testing.TB) *sim {
	s := &sim{
		t: t, kinds: placement.ClusterKinds(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		strategies: map[string]*placementv1.UpdateStrategySpec{}, members: map[string]*schedule.Cluster{},
		bindings: map[string]*placementv1.ClusterResourceBinding{}, runs: map[string]*placementv1.ClusterStagedUpdateRun{},
		requests: map[string]*placementv1.ClusterApprovalRequest{}, shown: map[string]string{}, writesLeft: -1, untilFailure: -1, snapshots: 1,
		unwritten: map[types.UID]*placementv1.UpdateRunStatus{},
	}
	s.placement = &placementv1.ClusterResourcePlacement{ObjectMeta: s.meta(testPlacement)}
	s.placement.Spec.Strategy.Type = placementv1.ExternalRolloutStrategyType
	s.policy = &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: s.meta(placement.PolicySnapshotName(testPlacement, 0))}
	s.policy.Labels = map[string]string{placementv1.LabelPolicyIndex: "0", placementv1.LabelIsLatestSnapshot: "true"}
	s.policy.Annotations = map[string]string{placementv1.AnnotationPlacementUID: string(s.placement.UID)}
	s.reschedule()
	return s
}

func (s *sim) meta(name string) metav1.ObjectMeta {
	s.uids++
	return metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("uid-%d", s.uids)), Generation: 1, CreationTimestamp: metav1.NewTime(s.now)}
}

func (s *sim) key() placement.Key { return placement.Key{Name: testPlacement} }

// replacePlacement deletes the placement and makes another of its name, scheduled to the same clusters.
func (s *sim) replacePlacement() {
	s.placement = &placementv1.ClusterResourcePlacement{ObjectMeta: s.meta(testPlacement), Spec: s.placement.Spec}
	s.policy.Annotations[placementv1.AnnotationPlacementUID] = string(s.placement.UID)
	for name := range s.bindings {
		s.bind(name)
	}
	s.reschedule()
}

// join adds a member and has it scheduled.
func (s *sim) join(name string, labels map[string]string) {
	s.members[name] = &schedule.Cluster{Name: name, Labels: labels}
	s.bind(name)
}

func (s *sim) bind(name string) {
	b := &placementv1.ClusterResourceBinding{ObjectMeta: s.meta(placement.BindingName(s.key(), name))}
	b.Annotations = map[string]string{placementv1.AnnotationPlacementUID: string(s.placement.UID)}
	b.Spec = placementv1.ResourceBindingSpec{State: placementv1.BindingStateScheduled, SchedulingPolicySnapshotName: s.policy.Name, TargetCluster: name}
	s.bindings[name] = b
	s.reschedule()
}

// unschedule has the scheduler give a cluster up.
func (s *sim) unschedule(name string) {
	if b := s.bindings[name]; b != nil {
		b.Spec.State, b.Generation = placementv1.BindingStateUnscheduled, b.Generation+1
		b.Spec.ClusterDecision = placementv1.ClusterDecision{ClusterName: name, Reason: "cluster has left the fleet"}
	}
	s.reschedule()
}

// leave removes a member.
func (s *sim) leave(name string) {
	delete(s.members, name)
	s.unschedule(name)
}

// reschedule writes the scheduler's answer.
func (s *sim) reschedule() {
	selected := 0
	for _, b := range s.bindings {
		if b.Spec.State != placementv1.BindingStateUnscheduled && b.DeletionTimestamp == nil {
			selected++
		}
	}
	s.policy.Status = placementv1.SchedulingPolicySnapshotStatus{ObservedCRPGeneration: s.placement.Generation, SelectedCount: count(selected)}
	s.policy.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionScheduled, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
}

func (s *sim) strategy(name string, stages ...placementv1.StageConfig) {
	s.strategies[name] = &placementv1.UpdateStrategySpec{Stages: stages}
}

// create makes a run; an empty index means a new snapshot.
func (s *sim) create(name, strategy, index string, state placementv1.UpdateRunState) *placementv1.ClusterStagedUpdateRun {
	s.now = s.now.Add(time.Second)
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: s.meta(name)}
	run.Spec = placementv1.UpdateRunSpec{PlacementName: testPlacement, StagedUpdateStrategyName: strategy, ResourceSnapshotIndex: index, State: state}
	s.runs[name] = run
	return run
}

func (s *sim) setState(name string, state placementv1.UpdateRunState) {
	if run := s.runs[name]; run.Spec.State != state {
		run.Spec.State, run.Generation = state, run.Generation+1
	}
}

// act has somebody ask a run something about a cluster.
func (s *sim) act(name string, action placementv1.ClusterActionType, cluster string) {
	run := s.runs[name]
	run.Spec.ClusterActions = append(run.Spec.ClusterActions, placementv1.ClusterAction{Cluster: cluster, Action: action, RequestedBy: "alice", Reason: "known"})
	run.Generation++
}

func (s *sim) skip(name, cluster string)  { s.act(name, placementv1.ClusterActionSkip, cluster) }
func (s *sim) retry(name, cluster string) { s.act(name, placementv1.ClusterActionRetry, cluster) }

// cancel has somebody cancel a run.
func (s *sim) cancel(name string) {
	if run := s.runs[name]; run.Spec.Cancel == nil {
		run.Spec.Cancel, run.Generation = &placementv1.RunCancellation{RequestedBy: "bob", Reason: "wrong image"}, run.Generation+1
	}
}

// pause has a member answer that somebody has paused what it was given.
func (s *sim) pause(cluster string) {
	s.lacks(cluster, "Deployment", placementv1.ReasonManifestPaused)
}

// rollOut has a member answer that a Rollout updates what it was given, and is on its way or waits for somebody.
func (s *sim) rollOut(cluster, rollout string) {
	s.lacks(cluster, "Deployment", placementv1.ReasonManifestUpdatedByRollout, "Rollout", rollout)
}

// awaitsApproval has a member answer that a step of a Rollout waits there for a person.
func (s *sim) awaitsApproval(cluster string) {
	s.lacks(cluster, "Deployment", placementv1.ReasonManifestPaused, "Rollout", placementv1.ReasonManifestPaused)
	failed := s.bindings[cluster].Status.FailedPlacements
	for i := range failed {
		failed[i].Condition.Message = "Manifest is not yet available: " + kruise.AwaitedApproval{Step: 1, Steps: 2, Namespace: "demo", Name: "web"}.String()
	}
}

// lacks has a member answer that objects are not available, each given as its kind and the reason.
func (s *sim) lacks(cluster string, kindsAndReasons ...string) {
	s.answer(cluster, metav1.ConditionTrue, placementv1.ReasonAllWorkHaveBeenApplied, metav1.ConditionFalse)
	failed := &s.bindings[cluster].Status.FailedPlacements
	*failed = nil
	for i := 0; i < len(kindsAndReasons); i += 2 {
		*failed = append(*failed, placementv1.FailedResourcePlacement{
			ResourceIdentifier: placementv1.ResourceIdentifier{Kind: kindsAndReasons[i], Namespace: "demo", Name: "web"},
			Condition:          metav1.Condition{Type: placementv1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: kindsAndReasons[i+1]},
		})
	}
}

func (s *sim) approve(name string) {
	r := s.requests[name]
	if r == nil {
		s.t.Fatalf("no approval request %s\n%s", name, s.log.String())
	}
	r.Status.Conditions = append(slices.DeleteFunc(r.Status.Conditions, func(c metav1.Condition) bool { return c.Type == placementv1.ConditionApproved }),
		metav1.Condition{Type: placementv1.ConditionApproved, Status: metav1.ConditionTrue, ObservedGeneration: r.Generation, Reason: "lgtm"})
}

// available has a member answer that it runs what it was given.
func (s *sim) available(cluster string) {
	s.answer(cluster, metav1.ConditionTrue, placementv1.ReasonAllWorkHaveBeenApplied, metav1.ConditionTrue)
}

// refuse has a member answer that it cannot apply what it was given.
func (s *sim) refuse(cluster string) {
	s.answer(cluster, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied, "")
}

// applying has hub/work say that the member has not answered yet.
func (s *sim) applying(cluster string) {
	s.answer(cluster, metav1.ConditionFalse, placementv1.ReasonApplyInProgress, "")
}

func (s *sim) answer(cluster string, applied metav1.ConditionStatus, reason string, available metav1.ConditionStatus) {
	b := s.bindings[cluster]
	b.Status.FailedPlacements = nil
	b.Status.Conditions = []metav1.Condition{
		{Type: placementv1.ConditionWorkSynchronized, Status: metav1.ConditionTrue, ObservedGeneration: b.Generation, Reason: placementv1.ReasonAllWorkSynced},
		{Type: placementv1.ConditionApplied, Status: applied, ObservedGeneration: b.Generation, Reason: reason},
	}
	if available != "" {
		b.Status.Conditions = append(b.Status.Conditions,
			metav1.Condition{Type: placementv1.ConditionAvailable, Status: available, ObservedGeneration: b.Generation, Reason: placementv1.ReasonAllWorkAreAvailable})
	}
}

func (s *sim) fleet() schedule.Fleet {
	var all []schedule.Cluster
	for _, c := range s.members {
		all = append(all, *c)
	}
	return schedule.NewFleet(all)
}

func (s *sim) world() *World {
	w := &World{Kinds: s.kinds, Key: s.key(), Now: s.now, Fleet: s.fleet(), Plans: map[types.UID]Plan{}, Requests: map[string]placementv1.ApprovalRequestObject{},
		Unwritten: map[types.UID]*placementv1.UpdateRunStatus{}}
	for uid, status := range s.unwritten {
		w.Unwritten[uid] = status.DeepCopy()
	}
	if s.placement != nil {
		w.Placement = s.placement.DeepCopy()
	}
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		w.Runs = append(w.Runs, s.runs[name].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(s.bindings)) {
		w.Bindings = append(w.Bindings, s.bindings[name].DeepCopy())
	}
	for name, r := range s.requests {
		w.Requests[name] = r.DeepCopy()
	}
	for _, run := range Unplanned(w.Runs) {
		w.Plans[run.GetUID()] = s.plan(w, run)
	}
	if active := Active(w.Runs); s.blind && len(active) > 0 {
		awaited := map[string]bool{}
		for _, run := range active {
			for _, name := range Awaited(run) {
				awaited[name] = true
			}
		}
		w.Bindings = slices.DeleteFunc(w.Bindings, func(b placementv1.BindingObject) bool { return !awaited[b.BindingSpec().TargetCluster] })
	}
	return w
}

func (s *sim) plan(w *World, run placementv1.UpdateRunObject) Plan {
	in := PlanInput{Kinds: s.kinds, Run: run, Placement: w.Placement, Bindings: w.Bindings, Fleet: w.Fleet,
		Strategy: s.strategies[run.UpdateRunSpec().StagedUpdateStrategyName], Policies: []placementv1.PolicySnapshotObject{s.policy}}
	plan := MakePlan(in)
	if plan.Verdict != NeedsSnapshot {
		return plan
	}
	in.Snapshot = &Snapshot{Index: s.snapshots - 1}
	if index := SnapshotIndex(run); index != "" {
		in.Snapshot.Index, _ = strconv.Atoi(index)
		if in.Snapshot.Index >= s.snapshots {
			in.Snapshot.Refused = fmt.Sprintf("no resource snapshot with index %s", index)
		}
	}
	return MakePlan(in)
}

var (
	errCrash  = errors.New("the hub crashes")
	errFailed = errors.New("a write fails")
)

// write counts a write, and tells whether it happens.
func (s *sim) write() error {
	if s.writesLeft == 0 {
		return errCrash
	}
	if s.writesLeft > 0 {
		s.writesLeft--
	}
	if s.untilFailure == 0 {
		s.untilFailure = -1
		return errFailed
	}
	if s.untilFailure > 0 {
		s.untilFailure--
	}
	return nil
}

func (s *sim) wrote(format string, args ...any) {
	if s.watch != nil {
		s.watch(fmt.Sprintf(format, args...))
	}
}

// pass is one pass of the controller. It tells whether there is more to do: something was written, or was to be.
func (s *sim) pass() (changed bool) {
	w := s.world()
	s.requeue = 0
	err := InOrder(Decide(w), func(r Result) error {
		for _, note := range r.Notes {
			fmt.Fprintf(&s.log, "  %s: %s\n", r.Run.GetName(), note)
		}
		if r.RequeueAfter > 0 {
			s.requeue = r.RequeueAfter
		}
		wrote, err := s.apply(r)
		changed = changed || wrote
		return err
	})
	if err != nil {
		fmt.Fprintf(&s.log, "  %v\n", err)
	}
	if errors.Is(err, errCrash) {
		s.writesLeft = -1
		clear(s.unwritten)
	}
	return changed || err != nil
}

// apply writes a result.
func (s *sim) apply(r Result) (changed bool, err error) {
	changed, err = s.applyBindings(r)
	if err != nil {
		return changed, err
	}
	for _, o := range slices.Concat(r.Create, r.Answer) {
		if err := s.write(); err != nil {
			return changed, err
		}
		request := o.(*placementv1.ClusterApprovalRequest).DeepCopy()
		if s.requests[request.Name] == nil {
			m := s.meta(request.Name)
			request.UID, request.Generation, request.CreationTimestamp = m.UID, m.Generation, m.CreationTimestamp
		}
		s.requests[request.Name] = request
		changed = true
		if c := meta.FindStatusCondition(request.Status.Conditions, placementv1.ConditionApprovalAccepted); c != nil {
			fmt.Fprintf(&s.log, "    request %s %s=%s/%s: %s\n", request.Name, c.Type, c.Status, c.Reason, c.Message)
		}
		s.wrote("request %s", request.Name)
	}
	wrote, err := s.applyStatus(r)
	return changed || wrote, err
}

// applyBindings writes a result's bindings. They are written side by side, so that one that fails holds no other up; a
// crash does.
func (s *sim) applyBindings(r Result) (changed bool, failure error) {
	for _, b := range r.Start {
		switch err := s.write(); {
		case errors.Is(err, errCrash):
			return changed, err
		case err != nil:
			failure = err
			continue
		}
		stored := s.bindings[b.BindingSpec().TargetCluster]
		if !equality.Semantic.DeepEqual(&stored.Spec, b.BindingSpec()) {
			stored.Generation++
		}
		stored.Spec, stored.Annotations = *b.BindingSpec(), b.GetAnnotations()
		changed = true
		s.wrote("start %s", b.BindingSpec().TargetCluster)
	}
	for _, b := range r.Delete {
		switch err := s.write(); {
		case errors.Is(err, errCrash):
			return changed, err
		case err != nil:
			failure = err
			continue
		}
		s.bindings[b.BindingSpec().TargetCluster].DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
		changed = true
		s.wrote("delete %s", b.BindingSpec().TargetCluster)
	}
	return changed, failure
}

// applyStatus writes a result's status, if it differs and may not wait.
func (s *sim) applyStatus(r Result) (changed bool, err error) {
	stored := s.runs[r.Run.GetName()]
	if equality.Semantic.DeepEqual(&stored.Status, r.Status) {
		delete(s.unwritten, stored.UID)
		return false, nil
	}
	if s.unhurried && r.MayWait {
		if !equality.Semantic.DeepEqual(s.unwritten[stored.UID], r.Status) {
			s.unwritten[stored.UID], changed = r.Status.DeepCopy(), true
			fmt.Fprintf(&s.log, "    what %s has to say may wait\n", stored.Name)
		}
		return changed, nil
	}
	if err := s.write(); err != nil {
		return false, err
	}
	delete(s.unwritten, stored.UID)
	stored.Status = *r.Status.DeepCopy()
	s.wrote("status %s", stored.Name)
	s.show(stored)
	for _, e := range r.Events {
		about := e.Cluster + e.Part
		if about != "" {
			about = " on " + about
		}
		fmt.Fprintf(&s.log, "    event %s %s%s: %s\n", e.Type, e.Reason, about, e.Message)
	}
	return true, nil
}

// settle lets the controller work until it has nothing more to write.
func (s *sim) settle() {
	for range 10_000 {
		if !s.pass() {
			return
		}
	}
	s.t.Fatalf("the engine does not come to rest\n%s", tail(s.log.String(), 60))
}

// do logs what happens from outside, does it, and lets the controller work.
func (s *sim) do(what string, happen func()) {
	fmt.Fprintf(&s.log, "%s\n", what)
	if happen != nil {
		happen()
	}
	s.settle()
}

// wait lets time pass.
func (s *sim) wait(d time.Duration) {
	s.do(fmt.Sprintf("%s later", d), func() { s.now = s.now.Add(d) })
}

// show logs what a user sees of a run, as far as it has changed.
func (s *sim) show(run *placementv1.ClusterStagedUpdateRun) {
	var lines []string
	conditions := func(cs []metav1.Condition) string {
		var out []string
		for _, c := range cs {
			out = append(out, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		return strings.Join(out, " ")
	}
	for _, a := range run.Status.ClusterActions {
		lines = append(lines, fmt.Sprintf("%s of %s by %s (%s): %s%s", a.Action, a.Cluster, a.RequestedBy, a.Reason, a.Result, strings.TrimSuffix(": "+a.Message, ": ")))
	}
	for _, c := range run.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	forEachStage(&run.Status, func(stage *placementv1.StageUpdatingStatus) {
		if len(stage.Conditions) > 0 {
			lines = append(lines, fmt.Sprintf("stage %s: %s: %s", stage.StageName, conditions(stage.Conditions), stage.Conditions[0].Message))
		}
		for _, tasks := range [][]placementv1.StageTaskStatus{stage.BeforeStageTaskStatus, stage.AfterStageTaskStatus} {
			for _, task := range tasks {
				if len(task.Conditions) > 0 {
					lines = append(lines, fmt.Sprintf("stage %s task %s: %s", stage.StageName, task.Type, conditions(task.Conditions)))
				}
			}
		}
		for _, c := range stage.Clusters {
			if c.HeldSince != nil {
				lines = append(lines, fmt.Sprintf("cluster %s: the deadline's clock stands still since %s", c.ClusterName, c.HeldSince.UTC().Format("15:04:05")))
			}
			if len(c.Conditions) > 0 {
				last := c.Conditions[len(c.Conditions)-1]
				lines = append(lines, fmt.Sprintf("cluster %s: %s: %s", c.ClusterName, conditions(c.Conditions), last.Message))
			}
		}
	})
	before := strings.Split(s.shown[run.Name], "\n")
	for _, line := range lines {
		if !slices.Contains(before, line) {
			fmt.Fprintf(&s.log, "    %s %s\n", run.Name, line)
		}
	}
	s.shown[run.Name] = strings.Join(lines, "\n")
}

// conditionOf is STATUS/REASON of a condition.
func conditionOf(conditions []metav1.Condition, conditionType string) string {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// environment is a stage whose clusters have a label environment=name.
func environment(name string, with ...func(*placementv1.StageConfig)) placementv1.StageConfig {
	c := placementv1.StageConfig{Name: name, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": name}}}
	for _, f := range with {
		f(&c)
	}
	return c
}

func sortedBy(key string) func(*placementv1.StageConfig) {
	return func(c *placementv1.StageConfig) { c.SortingLabelKey = &key }
}

func atMost(limit string) func(*placementv1.StageConfig) {
	return func(c *placementv1.StageConfig) { c.MaxConcurrency = ptr.To(intstr.Parse(limit)) }
}

func mayFail(most string) func(*placementv1.StageConfig) {
	return func(c *placementv1.StageConfig) { c.MaxFailures = ptr.To(intstr.Parse(most)) }
}

func within(d time.Duration) func(*placementv1.StageConfig) {
	return func(c *placementv1.StageConfig) { c.ProgressDeadline = &metav1.Duration{Duration: d} }
}

func approvalBefore(c *placementv1.StageConfig) {
	c.BeforeStageTasks = []placementv1.StageTask{{Type: placementv1.StageTaskTypeApproval}}
}

func approvalAfter(c *placementv1.StageConfig) {
	c.AfterStageTasks = append(c.AfterStageTasks, placementv1.StageTask{Type: placementv1.StageTaskTypeApproval})
}

func waitAfter(d time.Duration) func(*placementv1.StageConfig) {
	return func(c *placementv1.StageConfig) {
		c.AfterStageTasks = append(c.AfterStageTasks, placementv1.StageTask{Type: placementv1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: d}})
	}
}
