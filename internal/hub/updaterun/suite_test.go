package updaterun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	overrides "github.com/fleetwright/fleetwright/internal/hub/override"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// hubConfig leads to the API server that the tests share. They run one after the other, each with a hub of its own.
var hubConfig *rest.Config

func TestMain(m *testing.M) {
	logger := logr.Discard()
	if os.Getenv("VERBOSE") != "" {
		logger = klog.Background()
	}
	ctrl.SetLogger(logger)
	os.Exit(framework.RunWithAPIServer(m, &hubConfig))
}

// fixtures counts fixtures, so that each has names of its own, however often a test is run.
var fixtures atomic.Int32

// fixture is one placement with its clusters. It plays the scheduler, by writing bindings itself, and hub/work with the
// members, by answering each binding that is moved.
type fixture struct {
	client.WithWatch
	t     testing.TB
	name  string // of placement and strategy, and before each cluster's
	kinds *placement.Kinds

	placement *placementv1.ClusterResourcePlacement
	policy    *placementv1.ClusterSchedulingPolicySnapshot
	wrap      func(client.Client) client.Client // the controller's client
	clock     clock.PassiveClock                // the controller's

	mu      sync.Mutex
	held    map[string]string // cluster → how it answers: "refuse", "hold", "silent", or at once that it is available
	content int               // what the placement selects
	unread  bool              // what it selects cannot be read
	asked   int               // how often it was asked for
}

func newFixture(t testing.TB, name string, labels map[string]map[string]string) *fixture {
	t.Helper()
	name = fmt.Sprintf("%s%d", name, fixtures.Add(1))
	c, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	f := &fixture{WithWatch: c, t: t, name: name, kinds: placement.ClusterKinds(), clock: clock.RealClock{}, held: map[string]string{}}
	f.placement = &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.placement.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "test"}}
	f.placement.Spec.Strategy.Type = placementv1.ExternalRolloutStrategyType
	f.create(f.placement)
	f.policy = &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: f.owned(placement.PolicySnapshotName(name, 0))}
	f.policy.Labels[placementv1.LabelPolicyIndex], f.policy.Labels[placementv1.LabelIsLatestSnapshot] = "0", "true"
	f.policy.Spec.PolicyHash = []byte("hash")
	f.create(f.policy)
	for cluster, of := range labels {
		f.create(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster(cluster), Labels: of}})
		f.bind(cluster)
	}
	f.schedule(len(labels))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	t.Cleanup(f.removeRuns)
	go f.playMembers(ctx)
	return f
}

// removeRuns removes the fixture's runs, once its hubs are stopped: the hubs of later tests would go on with them.
func (f *fixture) removeRuns() {
	ctx := framework.CleanupContext(f.t)
	var runs placementv1.ClusterStagedUpdateRunList
	if err := f.List(ctx, &runs); err != nil {
		f.t.Errorf("list update runs: %v", err)
	}
	for i := range runs.Items {
		r := &runs.Items[i]
		if r.Spec.PlacementName != f.name {
			continue
		}
		free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := f.Patch(ctx, r, free); client.IgnoreNotFound(err) != nil {
			f.t.Errorf("free run %s: %v", r.Name, err)
		}
		if err := f.Delete(ctx, r); client.IgnoreNotFound(err) != nil {
			f.t.Errorf("delete run %s: %v", r.Name, err)
		}
	}
}

func (f *fixture) cluster(short string) string { return f.name + "-" + short }

func (f *fixture) create(o client.Object) {
	f.t.Helper()
	if err := f.Create(f.t.Context(), o); err != nil {
		f.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// owned is the metadata of something that belongs to the placement.
func (f *fixture) owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{placementv1.LabelParentPlacement: f.name},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: string(f.placement.UID)},
	}
}

func (f *fixture) bind(cluster string) {
	name := f.cluster(cluster)
	b := &placementv1.ClusterResourceBinding{ObjectMeta: f.owned(placement.BindingName(placement.Key{Name: f.name}, name))}
	b.Spec = placementv1.ResourceBindingSpec{
		State: placementv1.BindingStateScheduled, SchedulingPolicySnapshotName: f.policy.Name, TargetCluster: name,
		ClusterDecision: placementv1.ClusterDecision{ClusterName: name, Selected: true, Reason: "picked"},
	}
	f.create(b)
}

// schedule writes the scheduler's answer.
func (f *fixture) schedule(clusters int) {
	f.t.Helper()
	f.policy.Status.ObservedCRPGeneration = f.placement.Generation
	f.policy.Status.SelectedCount = int32(clusters) //nolint:gosec // a handful
	meta.SetStatusCondition(&f.policy.Status.Conditions, metav1.Condition{Type: placementv1.ConditionScheduled, Status: metav1.ConditionTrue,
		Reason: placementv1.ReasonSchedulingPolicyFulfilled, ObservedGeneration: f.policy.Generation})
	if err := f.Status().Update(f.t.Context(), f.policy); err != nil {
		f.t.Fatalf("schedule: %v", err)
	}
}

// strategy makes the strategy of the first seed: staging, a wait, then canary after an approval.
func (f *fixture) strategy(wait time.Duration) {
	f.create(&placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: f.name}, Spec: placementv1.UpdateStrategySpec{Stages: []placementv1.StageConfig{
		{Name: "staging", LabelSelector: environment("staging"), MaxConcurrency: ptr.To(intstr.FromInt32(1)),
			AfterStageTasks: []placementv1.StageTask{{Type: placementv1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: wait}}}},
		{Name: "canary", LabelSelector: environment("canary"), SortingLabelKey: ptr.To("order"), MaxConcurrency: ptr.To(intstr.FromString("50%")),
			BeforeStageTasks: []placementv1.StageTask{{Type: placementv1.StageTaskTypeApproval}}},
	}}})
}

func environment(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"environment": name}}
}

// seedClusters are the clusters of the first seed.
func seedClusters() map[string]map[string]string {
	return map[string]map[string]string{
		"member1": {"environment": "canary", "order": "2"},
		"member2": {"environment": "staging"},
		"member3": {"environment": "canary", "order": "1"},
	}
}

// start starts a hub with this controller alone. It returns a function that stops it.
func (f *fixture) start() (stop func()) {
	f.t.Helper()
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: framework.Scheme(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		f.t.Fatalf("make a manager: %v", err)
	}
	written := mgr.GetClient()
	if f.wrap != nil {
		written = f.wrap(written)
	}
	c := &Controller{Client: written, APIReader: mgr.GetAPIReader(), Kinds: f.kinds, Clock: f.clock,
		Recorder: mgr.GetEventRecorder("updaterun"), Tracker: &consistency.Tracker{}, Snapshots: f,
		Overrides: overrides.NewFinder(mgr.GetAPIReader(), f.kinds)}
	if err := c.SetupWithManager(mgr); err != nil {
		f.t.Fatalf("set up the controller: %v", err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			f.t.Errorf("the hub ended: %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	f.t.Cleanup(stop)
	return stop
}

// Ensure makes a resource snapshot of the content, if the newest is of another.
func (f *fixture) Ensure(ctx context.Context, _ placementv1.PlacementObject) (int, error) {
	f.mu.Lock()
	content, unread := strconv.Itoa(f.content), f.unread
	f.asked++
	f.mu.Unlock()
	if unread {
		return 0, &selection.IncompleteError{Unread: "the API group metrics.k8s.io", Err: errors.New("it is down")}
	}
	all, err := listing.ResourceSnapshots(ctx, f, &f.kinds.Carriage, placement.Key{Name: f.name})
	if err != nil {
		return 0, err
	}
	if n := len(all); n > 0 && all[n-1].GetAnnotations()[placementv1.AnnotationResourceHash] == content {
		return n - 1, nil
	}
	s := &placementv1.ClusterResourceSnapshot{ObjectMeta: f.owned(placement.ResourceSnapshotName(f.name, len(all)))}
	s.Labels[placementv1.LabelResourceIndex], s.Labels[placementv1.LabelIsLatestSnapshot] = strconv.Itoa(len(all)), "true"
	s.Annotations[placementv1.AnnotationSnapshotCount], s.Annotations[placementv1.AnnotationResourceHash] = "1", content
	s.Spec.SelectedResources = []placementv1.ResourceContent{
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"test"}}`)}}}
	return len(all), f.Create(ctx, s)
}

// change changes what the placement selects.
func (f *fixture) change() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content++
}

// hold has a cluster answer in some way from now on; "" lets it become available at once.
func (f *fixture) hold(cluster, how string) {
	f.t.Helper()
	f.mu.Lock()
	f.held[f.cluster(cluster)] = how
	f.mu.Unlock()
	b := f.binding(cluster)
	if b.Spec.State == placementv1.BindingStateBound {
		if err := f.answer(f.t.Context(), b); err != nil {
			f.t.Fatalf("have %s answer: %v", cluster, err)
		}
	}
}

func (f *fixture) binding(cluster string) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := &placementv1.ClusterResourceBinding{}
	name := placement.BindingName(placement.Key{Name: f.name}, f.cluster(cluster))
	if err := f.Get(f.t.Context(), client.ObjectKey{Name: name}, b); err != nil {
		f.t.Fatalf("read the binding of %s: %v", cluster, err)
	}
	return b
}

// snapshots are the snapshots of clusters, in order: what a user sees in the members.
func (f *fixture) snapshots(clusters ...string) string {
	f.t.Helper()
	var all []string
	for _, c := range clusters {
		index := strings.TrimSuffix(strings.TrimPrefix(f.binding(c).Spec.ResourceSnapshotName, f.name+"-"), "-snapshot")
		if index == "" {
			index = "-"
		}
		all = append(all, index)
	}
	return strings.Join(all, " ")
}

// playMembers answers bindings as they are moved.
func (f *fixture) playMembers(ctx context.Context) {
	w, err := f.Watch(ctx, &placementv1.ClusterResourceBindingList{}, client.MatchingLabels{placementv1.LabelParentPlacement: f.name})
	if err != nil {
		f.t.Errorf("watch bindings: %v", err)
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		b, ok := event.Object.(*placementv1.ClusterResourceBinding)
		if !ok || event.Type == "DELETED" || b.Spec.State != placementv1.BindingStateBound {
			continue
		}
		if c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionApplied); c != nil && c.ObservedGeneration == b.Generation {
			continue
		}
		if err := f.answer(ctx, b); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			f.t.Errorf("answer binding %s: %v", b.Name, err)
		}
	}
}

func (f *fixture) answer(ctx context.Context, b *placementv1.ClusterResourceBinding) error {
	f.mu.Lock()
	how := f.held[b.Spec.TargetCluster]
	f.mu.Unlock()
	if how == "silent" {
		return nil
	}
	applied := metav1.Condition{Type: placementv1.ConditionApplied, Status: metav1.ConditionTrue, Reason: placementv1.ReasonAllWorkHaveBeenApplied}
	available := metav1.Condition{Type: placementv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: placementv1.ReasonAllWorkAreAvailable}
	switch how {
	case "refuse":
		applied.Status, applied.Reason = metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied
	case "hold":
		applied.Status, applied.Reason = metav1.ConditionFalse, placementv1.ReasonApplyInProgress
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		applied.ObservedGeneration, available.ObservedGeneration = b.Generation, b.Generation
		meta.SetStatusCondition(&b.Status.Conditions, applied)
		if applied.Status == metav1.ConditionTrue {
			meta.SetStatusCondition(&b.Status.Conditions, available)
		} else {
			meta.RemoveStatusCondition(&b.Status.Conditions, placementv1.ConditionAvailable)
		}
		return f.Status().Update(ctx, b)
	})
}

// run makes an update run.
func (f *fixture) run(name, index string, state placementv1.UpdateRunState) *placementv1.ClusterStagedUpdateRun {
	f.t.Helper()
	r := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-" + name}}
	r.Spec = placementv1.UpdateRunSpec{PlacementName: f.name, StagedUpdateStrategyName: f.name, ResourceSnapshotIndex: index, State: state}
	f.create(r)
	return r
}

// setState patches a run as the seed does.
func (f *fixture) setState(r *placementv1.ClusterStagedUpdateRun, state placementv1.UpdateRunState) {
	f.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"state":%q}}`, state))
	if err := f.Patch(f.t.Context(), r, patch); err != nil {
		f.t.Fatalf("set run %s to %s: %v", r.Name, state, err)
	}
}

// approve approves a request by the seed's own patch, once the request is there.
func (f *fixture) approve(name string) {
	f.t.Helper()
	request := &placementv1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	framework.Await(f.t, f, request, "exists", func(*placementv1.ClusterApprovalRequest) bool { return true })
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status": {"conditions": [{"lastTransitionTime": "2026-01-02T03:04:05Z",
		"message": "lgtm", "observedGeneration": 1, "reason": "testPassed", "status": "True", "type": "Approved"}]}}`))
	if err := f.Status().Patch(f.t.Context(), request, patch); err != nil {
		f.t.Fatalf("approve %s: %v", name, err)
	}
}

// await waits until a condition of a run is STATUS/REASON.
func (f *fixture) await(r *placementv1.ClusterStagedUpdateRun, conditionType, want string) {
	f.t.Helper()
	framework.Await(f.t, f, r, "has "+conditionType+" "+want, func(r *placementv1.ClusterStagedUpdateRun) bool {
		return shown(r.Status.Conditions, conditionType) == want
	})
}

// awaitStage waits until a stage's Progressing is STATUS/REASON.
func (f *fixture) awaitStage(r *placementv1.ClusterStagedUpdateRun, stage int, want string) {
	f.t.Helper()
	framework.Await(f.t, f, r, fmt.Sprintf("is %s in stage %d", want, stage), func(r *placementv1.ClusterStagedUpdateRun) bool {
		return len(r.Status.StagesStatus) > stage && shown(r.Status.StagesStatus[stage].Conditions, placementv1.ConditionProgressing) == want
	})
}

func shown(conditions []metav1.Condition, conditionType string) string {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

func message(conditions []metav1.Condition, conditionType string) string {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}
