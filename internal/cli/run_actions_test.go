package cli

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher is a client that waits for changes.
func watcher(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startedRun makes a run that has started, of one done, one failed, one skipped, one waiting and one updating cluster.
func startedRun(t *testing.T, name string) *placementv1.ClusterStagedUpdateRun {
	t.Helper()
	r := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec.PlacementName, r.Spec.StagedUpdateStrategyName, r.Spec.State = "p", "s", placementv1.UpdateRunStateRun
	c := framework.Client(t, hubConfig)
	create(t, c, r)
	now := metav1.Now()
	r.Status.StartedTime = &now
	r.Status.StagesStatus = []placementv1.StageUpdatingStatus{{StageName: "all", Clusters: []placementv1.ClusterUpdatingStatus{
		{ClusterName: "done", State: placementv1.ClusterUpdatingStateSucceeded}, {ClusterName: "failed", State: placementv1.ClusterUpdatingStateFailed},
		{ClusterName: "skipped", State: placementv1.ClusterUpdatingStateSkipped}, {ClusterName: "waiting"},
		{ClusterName: "updating", State: placementv1.ClusterUpdatingStateStarted},
	}}}
	if err := c.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// answerAs plays the hub: once something is asked of the run, it answers.
func answerAs(t *testing.T, r *placementv1.ClusterStagedUpdateRun, change func(*placementv1.ClusterStagedUpdateRun)) {
	t.Helper()
	hub, ctx := watcher(t), t.Context()
	asked := r.DeepCopy()
	go func() {
		err := framework.AwaitE(ctx, hub, asked, func(bool) bool { return len(asked.Spec.ClusterActions) > 0 || asked.Spec.Cancel != nil })
		if err == nil {
			change(asked)
			err = hub.Status().Update(ctx, asked)
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("play the hub: %v", err)
		}
	}()
}

func TestRunSkipAndRetry(t *testing.T) {
	const resource = "clusterstagedupdaterun.placement.kubernetes-fleet.io/"
	for name, tc := range map[string]struct {
		verb, cluster string
		refusal       string
		want          string
	}{
		"skip-updating":  {verb: "skip", cluster: "updating", want: "cluster updating skipped\n"},
		"skip-waiting":   {verb: "skip", cluster: "waiting", want: "cluster waiting skipped\n"},
		"retry-failed":   {verb: "retry", cluster: "failed", want: "cluster failed is started again\n"},
		"retry-skipped":  {verb: "retry", cluster: "skipped", want: "cluster skipped is started again\n"},
		"hub-says-no":    {verb: "retry", cluster: "failed", refusal: "it has left", want: `cannot retry cluster "failed" in update run "hub-says-no": it has left`},
		"skip-done":      {verb: "skip", cluster: "done", want: `cannot skip cluster "done" in update run "skip-done": cluster done is done already`},
		"skip-skipped":   {verb: "skip", cluster: "skipped", want: "was skipped already"},
		"retry-done":     {verb: "retry", cluster: "done", want: "there is nothing to retry"},
		"retry-waiting":  {verb: "retry", cluster: "waiting", want: "was not started yet: there is nothing to retry"},
		"retry-updating": {verb: "retry", cluster: "updating", want: "to go on without the cluster, skip it"},
		"unknown":        {verb: "skip", cluster: "nowhere", want: `cluster "nowhere" is none of the clusters that the run updates, which are: done, failed, skipped, waiting, updating`},
	} {
		t.Run(name, func(t *testing.T) {
			r := startedRun(t, name)
			answerAs(t, r, func(r *placementv1.ClusterStagedUpdateRun) {
				a := r.Spec.ClusterActions[0]
				answer := placementv1.ClusterActionStatus{Cluster: a.Cluster, Action: a.Action, Time: metav1.Now(), Result: placementv1.ClusterActionAccepted}
				if tc.refusal != "" {
					answer.Result, answer.Message = placementv1.ClusterActionRefused, tc.refusal
				}
				r.Status.ClusterActions = append(r.Status.ClusterActions, answer)
			})
			out, err := amc(t, "run", tc.verb, name, tc.cluster, "--reason", "known")
			if strings.HasSuffix(tc.want, "\n") {
				if err != nil || out != resource+name+" "+tc.want {
					t.Fatalf("got %q and %v, want %q", out, err, tc.want)
				}
				if err := watcher(t).Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil || r.Spec.ClusterActions[0].Reason != "known" {
					t.Errorf("asked: %+v, %v", r.Spec.ClusterActions, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q and %v, want an error of one line with %q", out, err, tc.want)
			}
		})
	}
}

func TestRunActionsOnNothing(t *testing.T) {
	for want, args := range map[string][]string{
		`there is no ClusterStagedUpdateRun "nowhere"`:                      {"run", "skip", "nowhere", "member1"},
		`there is no StagedUpdateRun "nowhere" in namespace "default"`:      {"run", "retry", "nowhere", "member1", "-n", "default"},
		"give a run and one of its clusters, such as `kubectl amc run skip": {"run", "skip", "web"},
		"give the name of one run, such as `kubectl amc run cancel":         {"run", "cancel"},
		"--reason may have at most 200 characters, and has 201":             {"run", "cancel", "web", "--reason", strings.Repeat("ü", 201)},
		`there is no ClusterStagedUpdateRun "nowhere"; `:                    {"run", "cancel", "nowhere"},
	} {
		if out, err := amc(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %q and %v, want %q", args, out, err, want)
		}
	}
}

func TestRunCancel(t *testing.T) {
	r := startedRun(t, "cancelled")
	answerAs(t, r, func(r *placementv1.ClusterStagedUpdateRun) {
		r.Status.Cancelled = &placementv1.RunCancellationStatus{Reason: r.Spec.Cancel.Reason, Time: metav1.Now()}
		r.Status.Conditions = []metav1.Condition{{Type: placementv1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: placementv1.ReasonUpdateRunCancelled,
			Message: "cancelled", LastTransitionTime: metav1.Now()}}
	})
	if out, err := amc(t, "run", "cancel", "cancelled", "--reason", "wrong image"); err != nil || out != "clusterstagedupdaterun.placement.kubernetes-fleet.io/cancelled cancelled\n" {
		t.Errorf("got %q and %v", out, err)
	}
	for want, args := range map[string][]string{
		`update run "cancelled" is cancelled already`: {"run", "cancel", "cancelled"},
		"the run was cancelled; create a new run":     {"run", "retry", "cancelled", "failed"},
	} {
		if out, err := amc(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %q and %v, want %q", args, out, err, want)
		}
	}
}

// TestRunSkipBeforeTheStart asks a namespaced run that has not started, which heeds it when it does.
func TestRunSkipBeforeTheStart(t *testing.T) {
	hub := framework.Client(t, hubConfig)
	namespace := newNamespace(t, hub, "actions-")
	r := &placementv1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "parked"}}
	r.Spec.PlacementName, r.Spec.StagedUpdateStrategyName = "p", "s"
	create(t, hub, r)
	out, err := amc(t, "run", "skip", "parked", "member1", "-n", namespace)
	if want := "stagedupdaterun.placement.kubernetes-fleet.io/parked cluster member1: to skip is on record, and heeded when the run starts\n"; err != nil || out != want {
		t.Errorf("got %q and %v, want %q", out, err, want)
	}
}
