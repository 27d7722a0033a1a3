package e2e

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// amc runs kubectl amc on the hub, and returns what it printed and its exit code.
func amc(t testing.TB, args ...string) (out string, code int) {
	t.Helper()
	command := exec.CommandContext(framework.CleanupContext(t), filepath.Join(fleet.Root, "bin", "kubectl-amc"), append(args, "--kubeconfig", fleet.Kubeconfig(), "--context", "hub")...)
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run kubectl amc %v: %v", args, err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// mustAmc is amc where it is to succeed.
func mustAmc(t testing.TB, args ...string) {
	t.Helper()
	if out, code := amc(t, args...); code != 0 {
		t.Fatalf("kubectl amc %v: exit code %d\n%s", args, code, out)
	}
}

// amcSays runs kubectl amc and looks for its exit code and for texts in what it prints.
func amcSays(t testing.TB, wantCode int, want []string, args ...string) {
	t.Helper()
	out, code := amc(t, args...)
	if code != wantCode {
		t.Errorf("kubectl amc %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, wantCode, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("kubectl amc %s does not print %q:\n%s", strings.Join(args, " "), text, out)
		}
	}
}

// everywhere is a strategy of one stage of all three members at once.
func everywhere(name string, deadline *metav1.Duration) *placementv1.ClusterStagedUpdateStrategy {
	return &placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placementv1.UpdateStrategySpec{Stages: []placementv1.StageConfig{{
		Name: "all", LabelSelector: &metav1.LabelSelector{}, MaxConcurrency: ptr.To(intstr.FromString("100%")), ProgressDeadline: deadline,
	}}}}
}

// TestPastWhatFails has a member refuse a change: the run ends failed, is retried there alone and on the very same snapshot;
// another skips it, and one more is cancelled. Each tells who asked, and why.
func TestPastWhatFails(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const ns = "failing"
	create(t, hub, namespace(ns))
	cm := create(t, hub, configMap(ns, "test-cm", "value1"))
	create(t, hub, placeNamespace(ns, ns, placementv1.ExternalRolloutStrategyType))
	create(t, hub, everywhere("failing-calm", nil))
	create(t, hub, everywhere("failing-strict", &metav1.Duration{Duration: 20 * time.Second}))
	change := func(value string) {
		t.Helper()
		cm.Data["key"] = value
		if err := hub.Update(t.Context(), cm); err != nil {
			t.Fatalf("change the ConfigMap to %s: %v", value, err)
		}
	}
	// An immutable ConfigMap cannot be given another value: the member refuses it until the ConfigMap is deleted.
	refuse := func() {
		t.Helper()
		if err := m[1].Patch(t.Context(), configMap(ns, "test-cm", ""), client.RawPatch("application/merge-patch+json", []byte(`{"immutable":true}`))); err != nil {
			t.Fatalf("make the ConfigMap of member2 immutable: %v", err)
		}
	}
	mend := func() {
		t.Helper()
		if err := m[1].Delete(t.Context(), configMap(ns, "test-cm", "")); err != nil {
			t.Fatalf("delete the ConfigMap of member2: %v", err)
		}
	}
	first := create(t, hub, updateRun("failing-first", ns, "failing-calm", "", placementv1.UpdateRunStateRun))
	awaitRun(t, hub, first, "Succeeded", "True/UpdateRunSucceeded")

	refuse()
	change("value2")
	second := create(t, hub, updateRun("failing-second", ns, "failing-strict", "", placementv1.UpdateRunStateRun))
	awaitRun(t, hub, second, "Succeeded", "False/UpdateRunFailed")
	if diff := cmp.Diff([3]string{"value2", "value1", "value2"}, values(t, m, ns)); diff != "" {
		t.Errorf("after the run has failed (-want +got):\n%s", diff)
	}
	change("value3")
	mend()
	mustAmc(t, "run", "retry", second.Name, "member2", "--reason", "mended")
	awaitRun(t, hub, second, "Succeeded", "True/UpdateRunSucceeded")
	if diff := cmp.Diff([3]string{"value2", "value2", "value2"}, values(t, m, ns)); diff != "" {
		t.Errorf("after the retry (-want +got):\n%s", diff)
	}
	if a := second.Status.ClusterActions; len(a) != 1 || a[0].RequestedBy != "admin" || a[0].Reason != "mended" || a[0].Result != placementv1.ClusterActionAccepted {
		t.Errorf("the run does not say who had it retried, and why: %+v", a)
	}
	out, code := amc(t, "run", "retry", second.Name, "member2")
	if code != 1 || !strings.Contains(out, "there is nothing to retry") || strings.Count(out, "\n") != 1 {
		t.Errorf("retrying what is done: exit code %d\n%s", code, out)
	}

	refuse()
	third := create(t, hub, updateRun("failing-third", ns, "failing-calm", "", placementv1.UpdateRunStateRun))
	awaitRun(t, hub, third, "Progressing", "False/UpdateRunStuck")
	mustAmc(t, "run", "skip", third.Name, "member2", "--reason", "later")
	awaitRun(t, hub, third, "Succeeded", "True/UpdateRunSucceeded")
	if diff := cmp.Diff([3]string{"value3", "value2", "value3"}, values(t, m, ns)); diff != "" {
		t.Errorf("after member2 was skipped (-want +got):\n%s", diff)
	}

	change("value4")
	fourth := create(t, hub, updateRun("failing-fourth", ns, "failing-calm", "", placementv1.UpdateRunStateRun))
	awaitRun(t, hub, fourth, "Progressing", "False/UpdateRunStuck")
	mustAmc(t, "run", "cancel", fourth.Name, "--reason", "wrong image")
	awaitRun(t, hub, fourth, "Succeeded", "False/UpdateRunCancelled")
	if c := fourth.Status.Cancelled; c == nil || c.RequestedBy != "admin" || c.Reason != "wrong image" {
		t.Errorf("the run does not say who cancelled it, and why: %+v", c)
	}
	mend()
}

// TestPastWhatFailsNamespaced is the same in a namespace, where the commands take -n: a cluster is skipped, then updated all the
// same, and another run is cancelled. Without -n they find no such run.
func TestPastWhatFailsNamespaced(t *testing.T) {
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const ns, name = "failing-there", "app"
	create(t, hub, namespace(ns))
	cm := create(t, hub, configMap(ns, "test-cm", "value1"))
	placeShell(t, hub, "failing-there-shell", ns)
	create(t, hub, placeConfigMap(ns, name, placementv1.ExternalRolloutStrategyType))
	create(t, hub, &placementv1.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "calm"}, Spec: everywhere("", nil).Spec})
	awaitNamespacedRun(t, hub, create(t, hub, namespacedRun(ns, "first", name, "calm", "")))

	if err := m[1].Patch(t.Context(), configMap(ns, "test-cm", ""), client.RawPatch("application/merge-patch+json", []byte(`{"immutable":true}`))); err != nil {
		t.Fatalf("make the ConfigMap of member2 immutable: %v", err)
	}
	cm.Data["key"] = "value2"
	if err := hub.Update(t.Context(), cm); err != nil {
		t.Fatalf("change the ConfigMap: %v", err)
	}
	stuck := func(run *placementv1.StagedUpdateRun) {
		t.Helper()
		framework.Await(t, hub, run, "is stuck", func(r *placementv1.StagedUpdateRun) bool {
			return condition(r.Status.Conditions, placementv1.ConditionProgressing) == "False/UpdateRunStuck"
		})
	}
	second := create(t, hub, namespacedRun(ns, "second", name, "calm", ""))
	stuck(second)
	if out, code := amc(t, "run", "skip", second.Name, "member2"); code != 1 || !strings.Contains(out, "with -n NAMESPACE a StagedUpdateRun is meant") {
		t.Errorf("skipping without the run's namespace: exit code %d\n%s", code, out)
	}
	mustAmc(t, "run", "skip", second.Name, "member2", "-n", ns, "--reason", "later")
	awaitNamespacedRun(t, hub, second)
	if diff := cmp.Diff([3]string{"value2", "value1", "value2"}, values(t, m, ns)); diff != "" {
		t.Errorf("after member2 was skipped (-want +got):\n%s", diff)
	}

	third := create(t, hub, namespacedRun(ns, "third", name, "calm", ""))
	stuck(third)
	mustAmc(t, "run", "cancel", third.Name, "-n", ns, "--reason", "wrong image")
	framework.Await(t, hub, third, "is cancelled", func(r *placementv1.StagedUpdateRun) bool {
		return condition(r.Status.Conditions, placementv1.ConditionSucceeded) == "False/UpdateRunCancelled"
	})
	if c := third.Status.Cancelled; c == nil || c.RequestedBy != "admin" || c.Reason != "wrong image" {
		t.Errorf("the run does not say who cancelled it, and why: %+v", c)
	}

	fourth := create(t, hub, namespacedRun(ns, "fourth", name, "calm", ""))
	stuck(fourth)
	mustAmc(t, "run", "skip", fourth.Name, "member2", "-n", ns, "--reason", "later")
	awaitNamespacedRun(t, hub, fourth)
	if err := m[1].Delete(t.Context(), configMap(ns, "test-cm", "")); err != nil {
		t.Fatalf("delete the ConfigMap of member2: %v", err)
	}
	mustAmc(t, "run", "retry", fourth.Name, "member2", "-n", ns, "--reason", "mended")
	framework.Await(t, hub, fourth, "has answered and succeeded", func(r *placementv1.StagedUpdateRun) bool {
		return len(r.Status.ClusterActions) == 2 && condition(r.Status.Conditions, placementv1.ConditionSucceeded) == "True/UpdateRunSucceeded"
	})
	if diff := cmp.Diff([3]string{"value2", "value2", "value2"}, values(t, m, ns)); diff != "" {
		t.Errorf("after the retry (-want +got):\n%s", diff)
	}
	if a := fourth.Status.ClusterActions; a[1].RequestedBy != "admin" || a[1].Reason != "mended" || a[1].Result != placementv1.ClusterActionAccepted {
		t.Errorf("the run does not say who had member2 retried, and why: %+v", a)
	}
}

// TestHubIsGuarded has somebody with all rights, but not an administrator of the fleet, change what is the hub's, and run a
// Pod on the hub.
func TestHubIsGuarded(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	const name = "guarded"
	placeWeb(t, hub, name)
	create(t, hub, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "e2e-anna"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "anna"}}})
	anna := as(t, "anna")
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-member1", Name: name + "-work"}}
	framework.Await(t, hub, work, "exists", func(*placementv1.Work) bool { return true })
	bindings := &placementv1.ClusterResourceBindingList{}
	if err := hub.List(t.Context(), bindings, client.MatchingLabels{placementv1.LabelParentPlacement: name}); err != nil || len(bindings.Items) != 3 {
		t.Fatalf("list the placement's bindings: %v, %d of them", err, len(bindings.Items))
	}
	binding := &bindings.Items[0]
	snapshot := &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name + "-0-snapshot"}}
	mark := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"by":"anna"}}}`))
	for what, err := range map[string]error{
		"change a Work":             anna.Patch(t.Context(), work, mark),
		"change a binding":          anna.Patch(t.Context(), binding, mark),
		"change a snapshot":         anna.Patch(t.Context(), snapshot, mark),
		"change a member namespace": anna.Patch(t.Context(), namespace("fleet-member-member1"), mark),
		"make a member namespace":   anna.Create(t.Context(), namespace("fleet-member-anna")),
		"delete a Work":             anna.Delete(t.Context(), work),
		"delete a binding":          anna.Delete(t.Context(), binding),
		"delete policy snapshots":   anna.DeleteAllOf(t.Context(), &placementv1.ClusterSchedulingPolicySnapshot{}),
		"delete all snapshots":      anna.DeleteAllOf(t.Context(), &placementv1.ClusterResourceSnapshot{}),
		"delete a member namespace": anna.Delete(t.Context(), namespace("fleet-member-member1")),
	} {
		verb, _, _ := strings.Cut(what, " ")
		if !apierrors.IsForbidden(err) || (!strings.Contains(err.Error(), "only the hub may "+verb) && !strings.Contains(err.Error(), "deleting binding")) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := hub.Patch(t.Context(), work, mark, client.DryRunAll); err != nil {
		t.Errorf("an administrator changes a Work: %v", err)
	}
	checkHubWorkloads(t, hub, name)
}

// checkHubWorkloads looks whether Pods are refused on the hub until the switch lets them in. A value that the switch does not
// know lets nothing in.
func checkHubWorkloads(t *testing.T, hub client.Client, namespace string) {
	t.Helper()
	run := func(namespace string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
		return hub.Create(t.Context(), pod, client.DryRunAll)
	}
	refused := func(when string) {
		t.Helper()
		if err := run(namespace); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "hub-workloads") {
			t.Errorf("run a Pod on the hub, %s: %v", when, err)
		}
	}
	// What the switch is set to takes effect a moment later, and nothing but trying tells when.
	until := func(what string, done func(error) bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, framework.Patience, true, func(context.Context) (bool, error) { return done(run(namespace)), nil })
		if err != nil {
			t.Fatalf("wait until Pods are %s: %v", what, err)
		}
	}
	refused("as it comes")
	if err := run("fleetwright-system"); apierrors.IsForbidden(err) && strings.Contains(err.Error(), "hub-workloads") {
		t.Errorf("run a Pod in a namespace of the system: %v", err)
	}
	rails := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleetwright-system", Name: "fleetwright-guard-rails"}}
	t.Cleanup(func() {
		off := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"hub-workloads":null}}`))
		if err := hub.Patch(framework.CleanupContext(t), rails, off); err != nil {
			t.Errorf("set the switch back: %v", err)
		}
	})
	change(t, hub, rails, `{"data":{"hub-workloads":"allowed, please"}}`)
	refused("with a value that the switch does not know")
	change(t, hub, rails, `{"data":{"hub-workloads":"Allowed"}}`)
	until("let in", func(err error) bool { return err == nil || !strings.Contains(err.Error(), "hub-workloads") })
	change(t, hub, rails, `{"data":{"hub-workloads":"Refused"}}`)
	until("refused again", apierrors.IsForbidden)
}
