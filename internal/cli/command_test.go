package cli

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// amc runs the command on the hub and returns what it printed.
func amc(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return amcWith(t, func(kubeconfig string) []string { return append(args, "--kubeconfig", kubeconfig) })
}

// amcWith is amc with arguments that name the kubeconfig themselves.
func amcWith(t *testing.T, args func(kubeconfig string) []string) (string, error) {
	t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["hub"] = &clientcmdapi.Cluster{Server: hubConfig.Host, CertificateAuthorityData: hubConfig.CAData}
	k.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: hubConfig.CertData, ClientKeyData: hubConfig.KeyData}
	k.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "admin"}
	k.CurrentContext = "hub"
	file := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := NewCommand(streams)
	command.SetArgs(args(file))
	err := command.ExecuteContext(context.WithoutCancel(t.Context()))
	return out.String(), err
}

func TestMemberUpdate(t *testing.T) {
	hub := framework.Client(t, hubConfig)
	member := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "update", Labels: map[string]string{"kept": "yes", "dropped": "x"}}}
	create(t, hub, member)
	out, err := amc(t, "member", "update", "--name", "update", "--labels", "environment=staging,dropped-")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("membercluster.cluster.kubernetes-fleet.io/update labeled\n", out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(member), member); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"kept": "yes", "environment": "staging"}, member.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if out, err = amc(t, "member", "update", "update", "--labels", "environment-,nothing-"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("membercluster.cluster.kubernetes-fleet.io/update unlabeled\n", out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestGroupsPrintTheirHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"run"}, {"member"}} {
		if out, err := amc(t, args...); err != nil || !strings.Contains(out, "Available Commands:") {
			t.Errorf("%v: got error %v and %q", args, err, out)
		}
	}
	if out, err := amc(t, "version"); err != nil || !strings.HasPrefix(out, "kubectl amc ") {
		t.Errorf("version: got error %v and %q", err, out)
	}
}

func TestCompletion(t *testing.T) {
	hub := framework.Client(t, hubConfig)
	member := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "complete"}}
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "complete"}}
	run.Spec.PlacementName, run.Spec.StagedUpdateStrategyName = "p", "s"
	request := &placementv1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{
		Name: "complete-after-gate", Labels: map[string]string{placementv1.LabelTargetUpdateRun: "complete"},
	}}
	request.Spec.TargetUpdateRun, request.Spec.TargetStage = "complete", "gate"
	for _, object := range []client.Object{member, run, request} {
		create(t, hub, object)
	}
	for what, tc := range map[string]struct {
		args []string
		want string
	}{
		"the member":   {[]string{"member", "update", ""}, "complete\n"},
		"command":      {[]string{"run", ""}, "approve"},
		"member":       {[]string{"member", "update", "--name", ""}, "complete\n"},
		"run":          {[]string{"run", "approve", ""}, "complete\n"},
		"stage":        {[]string{"run", "approve", "complete", "--stage", ""}, "gate\n"},
		"only one run": {[]string{"run", "approve", "complete", ""}, ""},
	} {
		// The kubeconfig goes before what is being completed, which is the last word.
		out, err := amcWith(t, func(kubeconfig string) []string {
			return append([]string{"__complete", "--kubeconfig", kubeconfig}, tc.args...)
		})
		if err != nil || (tc.want != "" && !strings.Contains(out, tc.want)) || (tc.want == "" && strings.Contains(out, "complete")) {
			t.Errorf("%s: got %q and %v, want %q", what, out, err, tc.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing given":    {[]string{"member", "update"}, "a member and --labels are required"},
		"unknown member":   {[]string{"member", "update", "--name", "nobody", "--labels", "a=b"}, `there is no member "nobody"`},
		"no label":         {[]string{"member", "update", "--name", "x", "--labels", "abc"}, `"abc" is neither KEY=VALUE nor KEY-`},
		"no key":           {[]string{"member", "update", "--name", "x", "--labels", "=b"}, "is no key of a label"},
		"no value":         {[]string{"member", "update", "--name", "x", "--labels", "a=b c"}, "is no value of a label"},
		"twice":            {[]string{"member", "update", "--name", "x", "--labels", "a=b,a-"}, `"a" is given twice`},
		"no run":           {[]string{"run", "approve"}, "give the name of one run"},
		"unknown run":      {[]string{"run", "approve", "nothing"}, `there is no ClusterStagedUpdateRun "nothing"`},
		"in a namespace":   {[]string{"run", "approve", "nothing", "-n", "x"}, `there is no StagedUpdateRun "nothing" in namespace "x"`},
		"unknown context":  {[]string{"run", "approve", "x", "--context", "other"}, "other"},
		"two members":      {[]string{"member", "update", "a", "b", "--labels", "a=b"}, "give one member"},
		"two names":        {[]string{"member", "update", "a", "--name", "b", "--labels", "a=b"}, "give one member"},
		"unknown commands": {[]string{"rollout"}, "unknown command \"rollout\" for \"kubectl amc\"; `kubectl amc --help` lists those there are"},
		"misspelt command": {[]string{"run", "aprove", "x"}, `unknown command "aprove" for "kubectl amc run"; did you mean approve?`},
		"misspelt group":   {[]string{"members"}, "did you mean member?"},
		"misspelt update":  {[]string{"member", "updat"}, "did you mean update?"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := amc(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got error %v, want one that says %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
		})
	}
}

// requestOf is an approval request as a run makes it.
func requestOf(run *placementv1.ClusterStagedUpdateRun, name, stage string) *placementv1.ClusterApprovalRequest {
	request := &placementv1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{placementv1.LabelTargetUpdateRun: run.Name},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: placementv1.GroupVersion.String(), Kind: "ClusterStagedUpdateRun", Name: run.Name, UID: run.UID},
		},
	}}
	request.Spec.TargetUpdateRun, request.Spec.TargetStage = run.Name, stage
	return request
}

func TestRunApprove(t *testing.T) {
	hub := framework.Client(t, hubConfig)
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "approve"}}
	run.Spec.PlacementName, run.Spec.StagedUpdateStrategyName = "p", "s"
	create(t, hub, run)
	if _, err := amc(t, "run", "approve", "approve"); err == nil || !strings.Contains(err.Error(), "waits for no approval") {
		t.Errorf("without a request: got error %v", err)
	}
	other := *run
	other.UID = "of-an-earlier-run"
	create(t, hub, requestOf(&other, "approve-before-zero", "zero"))
	if _, err := amc(t, "run", "approve", "approve"); err == nil || !strings.Contains(err.Error(), "waits for no approval") {
		t.Errorf("with a request of an earlier run of its name: got error %v", err)
	}
	for _, stage := range []string{"one", "two"} {
		create(t, hub, requestOf(run, "approve-before-"+stage, stage))
	}
	if _, err := amc(t, "run", "approve", "approve"); err == nil || !strings.Contains(err.Error(), "--stage: one, two") {
		t.Errorf("with two requests: got error %v", err)
	}
	out, err := amc(t, "run", "approve", "approve", "--stage", "two")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("clusterapprovalrequest.placement.kubernetes-fleet.io/approve-before-two approved\n", out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	request := &placementv1.ClusterApprovalRequest{}
	if err := hub.Get(t.Context(), client.ObjectKey{Name: "approve-before-two"}, request); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(request.Status.Conditions, placementv1.ConditionApproved)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != request.Generation {
		t.Errorf("the request has %+v, want Approved True for generation %d", c, request.Generation)
	}
	if _, err := amc(t, "run", "approve", "approve", "--stage", "two"); err == nil {
		t.Error("approving twice says nothing")
	}
	c.ObservedGeneration = 7
	if err := hub.Status().Update(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if _, err := amc(t, "run", "approve", "approve", "--stage", "two"); err != nil {
		t.Errorf("an approval of another generation, which does not count, cannot be given anew: %v", err)
	}
}

// TestRunApproveSaysWhatIsOpen has a run whose stage was approved and that waits for time alone.
func TestRunApproveSaysWhatIsOpen(t *testing.T) {
	hub := framework.Client(t, hubConfig)
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "timed"}}
	run.Spec.PlacementName, run.Spec.StagedUpdateStrategyName = "p", "s"
	create(t, hub, run)
	request := requestOf(run, "timed-after-canary", "canary")
	create(t, hub, request)
	began := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	run.Status.StagedUpdateStrategySnapshot = &placementv1.UpdateStrategySpec{Stages: []placementv1.StageConfig{{Name: "canary",
		AfterStageTasks: []placementv1.StageTask{{Type: placementv1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: time.Hour}}}}}}
	run.Status.StagesStatus = []placementv1.StageUpdatingStatus{{StageName: "canary", Clusters: []placementv1.ClusterUpdatingStatus{},
		AfterStageTaskStatus: []placementv1.StageTaskStatus{{Type: placementv1.StageTaskTypeTimedWait, Conditions: []metav1.Condition{
			{Type: placementv1.ConditionWaitTimeElapsed, Status: metav1.ConditionFalse, Reason: "r", LastTransitionTime: began}}}}}}
	if err := hub.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := amc(t, "run", "approve", "timed", "--stage", "canry"); err == nil || err.Error() != `update run "timed" has no stage "canry"; it has: canary` {
		t.Errorf("of a stage that is not there it says %v", err)
	}
	if _, err := amc(t, "run", "approve", "timed"); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatal(err)
	}
	at := metav1.NewTime(began.Add(time.Minute))
	request.Status.ApprovedBy = &placementv1.Approver{User: "admin", Time: &at} // as the policy does, which is not installed here
	if err := hub.Status().Update(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	const want = `stage "canary" of update run "timed" is already approved by admin at 2026-01-02T03:05:05Z; it still waits until 2026-01-02T04:04:05Z (TimedWait)`
	if _, err := amc(t, "run", "approve", "timed", "--stage", "canary"); err == nil || err.Error() != want {
		t.Errorf("approving twice says %v, want %s", err, want)
	}
}

// TestRunApproveInNamespace: with -n a StagedUpdateRun is meant, and a cluster-scoped one of its name is left alone.
func TestRunApproveInNamespace(t *testing.T) {
	hub := framework.Client(t, hubConfig)
	namespace := newNamespace(t, hub, "approving-")
	run := &placementv1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "inside"}}
	run.Spec.PlacementName, run.Spec.StagedUpdateStrategyName = "p", "s"
	create(t, hub, run)
	request := &placementv1.ApprovalRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "inside-before-one", Labels: map[string]string{placementv1.LabelTargetUpdateRun: "inside"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: placementv1.GroupVersion.String(), Kind: "StagedUpdateRun", Name: "inside", UID: run.UID}},
	}}
	request.Spec.TargetUpdateRun, request.Spec.TargetStage = "inside", "one"
	create(t, hub, request)
	if _, err := amc(t, "run", "approve", "inside"); err == nil || !strings.Contains(err.Error(), "with -n NAMESPACE a StagedUpdateRun is meant") {
		t.Errorf("without -n: got error %v", err)
	}
	out, err := amc(t, "run", "approve", "inside", "-n", namespace)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("approvalrequest.placement.kubernetes-fleet.io/inside-before-one approved\n", out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(request.Status.Conditions, placementv1.ConditionApproved) {
		t.Errorf("the request has %+v, want Approved", request.Status.Conditions)
	}
}
