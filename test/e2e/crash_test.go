package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/quickstart"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	crashNamespace = "crash"
	crashMembers   = 6
	crashKills     = 20
	// crashConcurrency is how many clusters of the one stage may be in flight.
	crashConcurrency = 2
)

// TestRunSurvivesKills kills the hub, agents and a member's API server at twenty random moments of runs and starts them
// again. Each run ends as it would have without, no cluster is updated twice, and never are more clusters in flight than
// the strategy allows.
func TestRunSurvivesKills(t *testing.T) {
	f := &quickstart.Fleet{
		Root: framework.Root(), Dir: filepath.Join(framework.Root(), ".sandbox-e2e-crash"), BareMembers: crashMembers, HeartbeatSeconds: 2, Out: os.Stderr,
	}
	t.Cleanup(func() {
		if err := f.Down(context.Background()); err != nil {
			t.Errorf("stop the sandbox: %v", err)
		}
	})
	if err := f.Up(t.Context()); err != nil {
		t.Fatalf("start the sandbox: %v", err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	hub := clientFor(t, f, "hub")
	web := placeDeployment(t, hub)
	playWorkloads(t, f)
	history := recordBindings(t, hub)

	kills := 0
	for revision := 1; kills < crashKills; revision++ {
		web.Spec.Template.Annotations = map[string]string{"revision": fmt.Sprint(revision)}
		if err := hub.Update(t.Context(), web); err != nil {
			t.Fatalf("change the Deployment: %v", err)
		}
		run := updateRun(fmt.Sprintf("crash-%d", revision), "crash", "crash", "", placementv1.UpdateRunStateRun)
		if err := hub.Create(t.Context(), run); err != nil {
			t.Fatalf("create run %d: %v", revision, err)
		}
		done := make(chan struct{})
		var waited error // a goroutine that is not the test's must not end it
		go func() {
			defer close(done)
			waited = framework.AwaitE(t.Context(), hub, run, func(exists bool) bool {
				return exists && condition(run.Status.Conditions, "Succeeded") != ""
			})
		}()
		kills += killUntil(t, f, random, done, crashKills-kills)
		<-done
		if waited != nil {
			t.Fatalf("wait until run %s ends: %v", run.Name, waited)
		}
		if got := condition(run.Status.Conditions, "Succeeded"); got != "True/UpdateRunSucceeded" {
			t.Fatalf("run %s: Succeeded is %s; its status: %+v", run.Name, got, run.Status)
		}
		if t.Failed() {
			return
		}
		checkRevision(t, f, revision)
	}
	history.check(t, crashConcurrency)
}

// placeDeployment makes the objects on the hub: a Deployment, its placement and a strategy with one stage.
func placeDeployment(t *testing.T, hub client.WithWatch) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: crashNamespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	strategy := &placementv1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: "crash"},
		Spec: placementv1.UpdateStrategySpec{Stages: []placementv1.StageConfig{{
			Name: "all", LabelSelector: &metav1.LabelSelector{}, MaxConcurrency: ptr.To(intstr.FromInt32(crashConcurrency)),
			AfterStageTasks: []placementv1.StageTask{{Type: placementv1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: time.Second}}},
		}}},
	}
	for _, object := range []client.Object{
		namespace(crashNamespace), web, placeNamespace("crash", crashNamespace, placementv1.ExternalRolloutStrategyType), strategy,
	} {
		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
	return web
}

// playWorkloads plays the part of the members' controller managers: bare members have none. A Deployment becomes
// available a while after it was changed, so that runs take long enough to be disturbed.
func playWorkloads(t *testing.T, f *quickstart.Fleet) {
	t.Helper()
	for _, name := range f.Names() {
		member := clientFor(t, f, name)
		go func() {
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: crashNamespace, Name: "web"}}
			for t.Context().Err() == nil {
				// An error is the end of patience while nothing changes, or a server that was killed: look again.
				if framework.AwaitE(t.Context(), member, web, func(exists bool) bool {
					return exists && web.Status.ObservedGeneration != web.Generation
				}) != nil {
					continue
				}
				select {
				case <-t.Context().Done():
				case <-time.After(time.Duration(300+rand.IntN(700)) * time.Millisecond):
				}
				web.Status = appsv1.DeploymentStatus{
					ObservedGeneration: web.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				}
				_ = member.Status().Update(t.Context(), web) // a conflict or a dead server: the loop reads it again
			}
		}()
	}
}

// killUntil kills and starts processes one after the other, at random moments, until done is closed or most are killed.
func killUntil(t *testing.T, f *quickstart.Fleet, random *rand.Rand, done <-chan struct{}, most int) int {
	t.Helper()
	for kills := 0; ; kills++ {
		select {
		case <-done:
			return kills
		case <-time.After(time.Duration(100+random.IntN(600)) * time.Millisecond):
		}
		if kills == most {
			return kills
		}
		process := quickstart.HubProcess
		switch member := f.Names()[random.IntN(crashMembers)]; random.IntN(3) {
		case 1:
			process = quickstart.AgentProcess + member
		case 2:
			process = member + "-apiserver"
		}
		t.Logf("kill %s", process)
		for _, verb := range []string{"kill", "start"} {
			err := f.Sandbox(t.Context(), verb, process)
			if err != nil {
				t.Errorf("%s %s: %v", verb, process, err)
				return kills
			}
		}
	}
}

// checkRevision looks whether every member has the revision.
func checkRevision(t *testing.T, f *quickstart.Fleet, revision int) {
	t.Helper()
	for _, name := range f.Names() {
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: crashNamespace, Name: "web"}}
		framework.Await(t, clientFor(t, f, name), web, fmt.Sprintf("has revision %d in %s", revision, name), func(d *appsv1.Deployment) bool {
			return d.Spec.Template.Annotations["revision"] == fmt.Sprint(revision)
		})
		if web.Generation != int64(revision) {
			t.Errorf("%s: after %d changes the Deployment has generation %d: it was updated more often than that", name, revision, web.Generation)
		}
	}
}

// bindingHistory is every state in which the hub's bindings were seen.
type bindingHistory struct {
	mu       sync.Mutex
	inFlight map[string]bool   // cluster → its binding is not available at its generation
	most     int               // most clusters that were in flight at once
	moves    map[string]int    // cluster/snapshot → how often the binding was moved to it
	last     map[string]string // cluster → the snapshot it is on
	ended    string            // why the watch ended, if it has: what came after was not seen
}

// recordBindings records the history of bindings from a watch that begins now.
func recordBindings(t *testing.T, hub client.WithWatch, which ...client.ListOption) *bindingHistory {
	t.Helper()
	h := &bindingHistory{inFlight: map[string]bool{}, moves: map[string]int{}, last: map[string]string{}}
	w, err := hub.Watch(t.Context(), &placementv1.ClusterResourceBindingList{}, which...)
	if err != nil {
		t.Fatalf("watch bindings: %v", err)
	}
	t.Cleanup(w.Stop)
	go func() {
		last := "the server closed it"
		for event := range w.ResultChan() {
			if b, ok := event.Object.(*placementv1.ClusterResourceBinding); ok {
				h.see(b)
			} else {
				last = fmt.Sprintf("%s: %+v", event.Type, event.Object)
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = last
	}()
	return h
}

func (h *bindingHistory) see(b *placementv1.ClusterResourceBinding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cluster := b.Spec.TargetCluster
	h.inFlight[cluster] = b.Spec.State == placementv1.BindingStateBound && !availableNow(b)
	if snapshot := b.Spec.ResourceSnapshotName; snapshot != h.last[cluster] {
		h.last[cluster] = snapshot
		h.moves[cluster+"/"+snapshot]++
	}
	count := 0
	for _, yes := range h.inFlight {
		if yes {
			count++
		}
	}
	h.most = max(h.most, count)
}

// availableNow tells whether a binding's cluster is done with what it has. That a member was cut off after it was done changes
// nothing about that.
func availableNow(b *placementv1.ClusterResourceBinding) bool {
	for _, c := range b.Status.Conditions {
		if c.Type == placementv1.ConditionAvailable {
			return c.Status != metav1.ConditionFalse && c.ObservedGeneration == b.Generation
		}
	}
	return false
}

// check looks whether more than allowed were in flight at once, and whether a cluster was given something twice.
func (h *bindingHistory) check(t *testing.T, allowed int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != "" {
		t.Errorf("the watch on bindings ended before the test did (%s): what came after it was not seen", h.ended)
	}
	if h.most > allowed {
		t.Errorf("%d clusters were in flight at once, %d are allowed", h.most, allowed)
	}
	if h.most == 0 {
		t.Error("no cluster was ever seen in flight: the history is empty and proves nothing")
	}
	for move, times := range h.moves {
		if times > 1 {
			t.Errorf("%s: moved %d times", move, times)
		}
	}
}
