package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InstallPolicies installs the hub's admission policies and waits until they are in force, which an API server tells only by
// its answers.
func InstallPolicies(t testing.TB, config *rest.Config) {
	t.Helper()
	c := Client(t, config)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleetwright-system"}}
	if err := c.Create(t.Context(), system); client.IgnoreAlreadyExists(err) != nil {
		t.Fatalf("create namespace %s: %v", system.Name, err)
	}
	for _, object := range Manifests(t, filepath.Join("config", "policies")) {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("install %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	for what, inForce := range map[string]func(context.Context, client.Client) (bool, error){
		"refuse Pods": refusesPods, "record approvers and keep accepted approvals": guardsApprovals,
		"record who asked": recordsRequesters,
		"keep the fleet's objects": func(ctx context.Context, c client.Client) (bool, error) {
			return guardsTheFleet(ctx, c, config)
		},
	} {
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
			return inForce(ctx, c)
		})
		if err != nil {
			t.Fatalf("wait until the policies %s: %v", what, err)
		}
	}
}

// Manifests reads every object of the YAML files in a folder of the repository.
func Manifests(t testing.TB, folder string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(), folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("list the manifests in %s: %v, %d found", folder, err, len(files))
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("read a manifest: %v", err)
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("parse %s: %v", file, err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// recordsRequesters cancels a run that nobody makes, and looks for who did.
func recordsRequesters(ctx context.Context, c client.Client) (bool, error) {
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
	run.Spec = placementv1.UpdateRunSpec{PlacementName: "probe", StagedUpdateStrategyName: "probe", State: placementv1.UpdateRunStateRun,
		Cancel: &placementv1.RunCancellation{}}
	err := c.Create(ctx, run, client.DryRunAll)
	if apierrors.IsServiceUnavailable(err) {
		return false, nil
	}
	return err == nil && run.Spec.Cancel != nil && run.Spec.Cancel.RequestedBy != "", err
}

// guardsTheFleet tells whether an administrator may make a Work, and somebody else who has all rights may not.
func guardsTheFleet(ctx context.Context, c client.Client, config *rest.Config) (bool, error) {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "policy-probe"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "policy-probe"}},
	}
	if err := c.Create(ctx, binding); client.IgnoreAlreadyExists(err) != nil {
		return false, fmt.Errorf("give the probe rights: %w", err)
	}
	other := rest.CopyConfig(config)
	other.Impersonate = rest.ImpersonationConfig{UserName: "policy-probe"}
	probe, err := client.New(other, client.Options{Scheme: Scheme()})
	if err != nil {
		return false, fmt.Errorf("make a client: %w", err)
	}
	work := func() *placementv1.Work {
		return &placementv1.Work{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: "default"}}
	}
	if err := c.Create(ctx, work(), client.DryRunAll); err != nil {
		return false, nil //nolint:nilerr // before the policy has read its ConfigMap it refuses everything
	}
	err = probe.Create(ctx, work(), client.DryRunAll)
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "only the hub may"), nil
}

func refusesPods(ctx context.Context, c client.Client) (bool, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
	err := c.Create(ctx, pod, client.DryRunAll)
	return apierrors.IsForbidden(err), ignoreForbidden(err)
}

// guardsApprovals tries to approve another generation of a request than its own, approves and accepts it, looks for the
// approver, and tries to take the approval back.
func guardsApprovals(ctx context.Context, c client.Client) (guarded bool, err error) {
	request := &placementv1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec:       placementv1.ApprovalRequestSpec{TargetUpdateRun: "probe", TargetStage: "probe"},
	}
	if err := c.Create(ctx, request); err != nil {
		return false, fmt.Errorf("create an approval request: %w", err)
	}
	defer func() { err = errors.Join(err, c.Delete(ctx, request)) }()
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: status, Reason: "Probe", LastTransitionTime: metav1.Now(), ObservedGeneration: request.Generation,
		}
	}
	elsewhere := condition(placementv1.ConditionApproved, metav1.ConditionTrue)
	elsewhere.ObservedGeneration++
	request.Status.Conditions = []metav1.Condition{elsewhere}
	// For some seconds after a definition was installed the API server cannot yet apply policies to its kind, and says so.
	if err := c.Status().Update(ctx, request); err == nil || apierrors.IsServiceUnavailable(err) {
		return false, nil
	} else if !apierrors.IsInvalid(err) {
		return false, fmt.Errorf("approve another generation: %w", err)
	}
	accepted := condition(placementv1.ConditionApprovalAccepted, metav1.ConditionTrue)
	request.Status.Conditions = []metav1.Condition{condition(placementv1.ConditionApproved, metav1.ConditionTrue), accepted}
	if err := c.Status().Update(ctx, request); apierrors.IsServiceUnavailable(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("approve: %w", err)
	}
	if request.Status.ApprovedBy == nil {
		return false, nil
	}
	request.Status.Conditions = []metav1.Condition{condition(placementv1.ConditionApproved, metav1.ConditionFalse), accepted}
	err = c.Status().Update(ctx, request)
	return apierrors.IsForbidden(err), ignoreForbidden(err)
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
