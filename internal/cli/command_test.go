package cli

import (
	"context"
	"os"
	"strings"
	"testing"

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
	if err := hub.Create(t.Context(), member); err != nil {
		t.Fatal(err)
	}
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
		if err := client.IgnoreAlreadyExists(hub.Create(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
	}
	for what, tc := range map[string]struct {
		args []string
		want string
	}{
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
		"nothing given":    {[]string{"member", "update"}, "--name and --labels are required"},
		"unknown member":   {[]string{"member", "update", "--name", "nobody", "--labels", "a=b"}, `there is no member "nobody"`},
		"no label":         {[]string{"member", "update", "--name", "x", "--labels", "abc"}, `"abc" is neither KEY=VALUE nor KEY-`},
		"no key":           {[]string{"member", "update", "--name", "x", "--labels", "=b"}, "is no key of a label"},
		"no value":         {[]string{"member", "update", "--name", "x", "--labels", "a=b c"}, "is no value of a label"},
		"twice":            {[]string{"member", "update", "--name", "x", "--labels", "a=b,a-"}, `"a" is given twice`},
		"no run":           {[]string{"run", "approve"}, "give the name of one run"},
		"unknown run":      {[]string{"run", "approve", "nothing"}, `there is no ClusterStagedUpdateRun "nothing"`},
		"in a namespace":   {[]string{"run", "approve", "nothing", "-n", "x"}, "leave --namespace out"},
		"unknown context":  {[]string{"run", "approve", "x", "--context", "other"}, "other"},
		"unknown commands": {[]string{"rollout"}, "unknown command"},
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

func TestRunApprove(t *testing.T) {
	hub := framework.Client(t, hubConfig)
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "approve"}}
	run.Spec.PlacementName, run.Spec.StagedUpdateStrategyName = "p", "s"
	if err := hub.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := amc(t, "run", "approve", "approve"); err == nil || !strings.Contains(err.Error(), "waits for no approval") {
		t.Errorf("without a request: got error %v", err)
	}
	for _, stage := range []string{"one", "two"} {
		request := &placementv1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{
			Name: "approve-before-" + stage, Labels: map[string]string{placementv1.LabelTargetUpdateRun: "approve"},
		}}
		request.Spec.TargetUpdateRun, request.Spec.TargetStage = "approve", stage
		if err := hub.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
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
}
