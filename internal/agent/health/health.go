// Package health tells from an object alone whether it is available. Kinds of which the API says how, have rules here; all
// others are judged by kstatus.
package health

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Verdict says whether an object is available.
type Verdict struct {
	// Available is true also where nothing tells, with the reason NotTrackable.
	Available bool
	// Reason is one of the reasons of a manifest's Available.
	Reason string
	// Message says, for a person, what is missing.
	Message string
}

func available() Verdict {
	return Verdict{Available: true, Reason: placementv1.ReasonManifestAvailable, Message: "Manifest is available"}
}

func notYet(format string, args ...any) Verdict {
	return Verdict{Reason: placementv1.ReasonManifestNotAvailableYet, Message: "Manifest is not yet available: " + fmt.Sprintf(format, args...)}
}

// paused is of an object that stays as it is until somebody goes on with it.
func paused(format string, args ...any) Verdict {
	v := notYet(format, args...)
	v.Reason = placementv1.ReasonManifestPaused
	return v
}

func failed(format string, args ...any) Verdict {
	return Verdict{Reason: placementv1.ReasonManifestAvailabilityFailed, Message: fmt.Sprintf(format, args...)}
}

func notTrackable() Verdict {
	return Verdict{Available: true, Reason: placementv1.ReasonManifestNotTrackable, Message: "Nothing tells whether the object is available; it is taken as available"}
}

// rule judges objects of one kind.
type rule func(*unstructured.Unstructured) (Verdict, error)

// rules are the kinds that the public API has rules for.
var rules = map[schema.GroupKind]rule{
	{Group: "apps", Kind: "Deployment"}:                               judge(deployment),
	{Group: "apps", Kind: "StatefulSet"}:                              judge(statefulSet),
	{Group: "apps", Kind: "DaemonSet"}:                                judge(daemonSet),
	{Group: "apps", Kind: "ReplicaSet"}:                               judge(replicaSet),
	{Group: "batch", Kind: "CronJob"}:                                 cronJob,
	{Kind: "Pod"}:                                                     judge(pod),
	{Group: "networking.k8s.io", Kind: "Ingress"}:                     judge(ingress),
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           autoscaler,
	{Kind: "Service"}:                                                 judge(service),
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: judge(definition),
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    judge(disruptionBudget),
	{Kind: "PersistentVolumeClaim"}:                                   judge(volumeClaim),
	{Group: "batch", Kind: "Job"}:                                     job,
	{Group: "rollouts.kruise.io", Kind: "Rollout"}:                    rollout,
}

// atOnce are the kinds that are available as soon as they exist.
var atOnce = func() map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for group, names := range map[string][]string{
		"":                             {"Namespace", "Secret", "ConfigMap", "ServiceAccount", "LimitRange", "ResourceQuota"},
		"rbac.authorization.k8s.io":    {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"},
		"networking.k8s.io":            {"NetworkPolicy", "IngressClass"},
		"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "CSIStorageCapacity"},
		"apps":                         {"ControllerRevision"},
		"scheduling.k8s.io":            {"PriorityClass"},
		"admissionregistration.k8s.io": {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
	} {
		for _, name := range names {
			kinds[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	return kinds
}()

// AtOnce tells whether objects of a kind are available as soon as they exist: nothing but their metadata is looked at.
func AtOnce(kind schema.GroupKind) bool { return atOnce[kind] }

// Judge tells whether an object, as the member has it, is available. One that is being deleted is not: it comes back when
// it is gone.
func Judge(object *unstructured.Unstructured) Verdict {
	if since := object.GetDeletionTimestamp(); since != nil {
		return notYet("somebody deleted it in the member at %s; it is made again when it is gone", since.UTC().Format("15:04:05 MST"))
	}
	kind := object.GroupVersionKind().GroupKind()
	if atOnce[kind] {
		return available()
	}
	r, known := rules[kind]
	if !known {
		r = byKstatus
	}
	verdict, err := r(object)
	if err != nil {
		return failed("Failed to track the availability of the applied manifest (error = %v)", err)
	}
	return verdict
}

// judge makes a rule of a function on the kind's own type.
func judge[T any](f func(*T) Verdict) rule {
	return func(u *unstructured.Unstructured) (Verdict, error) {
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &typed); err != nil {
			return Verdict{}, fmt.Errorf("read its status: %w", err)
		}
		return f(&typed), nil
	}
}

func deployment(d *appsv1.Deployment) Verdict {
	want := ptr.Deref(d.Spec.Replicas, 1)
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" && !kruise.Holds(d.Annotations) && d.Status.ObservedGeneration == d.Generation {
			return failed("The Deployment has not progressed within its deadline: %s", c.Message)
		}
	}
	switch {
	case d.Status.ObservedGeneration != d.Generation:
		return notYet("its controller has not seen generation %d", d.Generation)
	case d.Status.UpdatedReplicas != want && kruise.Holds(d.Annotations) && d.Status.AvailableReplicas >= want:
		return byRollout(d.Status.UpdatedReplicas, want)
	case d.Status.UpdatedReplicas != want && kruise.Holds(d.Annotations):
		return notYet("%d of %d replicas are available", d.Status.AvailableReplicas, want)
	case d.Status.UpdatedReplicas != want && d.Spec.Paused:
		return paused("it is paused with %d of %d replicas updated, until somebody sets its spec.paused to false", d.Status.UpdatedReplicas, want)
	case d.Status.UpdatedReplicas != want:
		return notYet("%d of %d replicas are updated", d.Status.UpdatedReplicas, want)
	case d.Status.AvailableReplicas != want:
		return notYet("%d of %d replicas are available", d.Status.AvailableReplicas, want)
	case d.Status.UnavailableReplicas != 0:
		return notYet("%d replicas are unavailable", d.Status.UnavailableReplicas)
	}
	return available()
}

func statefulSet(s *appsv1.StatefulSet) Verdict {
	want := ptr.Deref(s.Spec.Replicas, 1)
	switch {
	case s.Status.ObservedGeneration != s.Generation:
		return notYet("its controller has not seen generation %d", s.Generation)
	case s.Status.AvailableReplicas != want:
		return notYet("%d of %d replicas are available", s.Status.AvailableReplicas, want)
	case s.Status.CurrentReplicas == s.Status.UpdatedReplicas && s.Status.CurrentRevision == s.Status.UpdateRevision:
		return available()
	case kruise.Holds(s.Annotations):
		return byRollout(s.Status.UpdatedReplicas, want)
	}
	const held = "%d of %d replicas are updated, and the others are held by its updateStrategy, until somebody "
	switch u := s.Spec.UpdateStrategy; {
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return paused(held+"deletes their pods", s.Status.UpdatedReplicas, want)
	case u.RollingUpdate != nil && ptr.Deref(u.RollingUpdate.Partition, 0) > 0 && s.Status.UpdatedReplicas >= want-*u.RollingUpdate.Partition:
		return paused(held+"lowers rollingUpdate.partition", s.Status.UpdatedReplicas, want)
	}
	return notYet("%d of %d replicas are updated", s.Status.UpdatedReplicas, want)
}

func daemonSet(d *appsv1.DaemonSet) Verdict {
	switch {
	case d.Status.ObservedGeneration != d.Generation:
		return notYet("its controller has not seen generation %d", d.Generation)
	case d.Status.NumberAvailable != d.Status.DesiredNumberScheduled:
		return notYet("%d of %d pods are available", d.Status.NumberAvailable, d.Status.DesiredNumberScheduled)
	case d.Status.CurrentNumberScheduled != d.Status.UpdatedNumberScheduled && d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return paused("%d of %d pods are updated, and the others are held by its updateStrategy, until somebody deletes them",
			d.Status.UpdatedNumberScheduled, d.Status.CurrentNumberScheduled)
	case d.Status.CurrentNumberScheduled != d.Status.UpdatedNumberScheduled:
		return notYet("%d of %d pods are updated", d.Status.UpdatedNumberScheduled, d.Status.CurrentNumberScheduled)
	}
	return available()
}

func service(s *corev1.Service) Verdict {
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return notTrackable()
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.IP != "" || ingress.Hostname != "" {
				return available()
			}
		}
		return notYet("the load balancer has no address yet")
	default:
		if s.Spec.ClusterIP == "" {
			return notYet("it has no cluster IP yet")
		}
		return available()
	}
}

func disruptionBudget(b *policyv1.PodDisruptionBudget) Verdict {
	if b.Status.ObservedGeneration != b.Generation {
		return notYet("its controller has not seen generation %d", b.Generation)
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition); c == nil || c.ObservedGeneration != b.Generation {
		return notYet("its controller has not said whether disruptions are allowed")
	}
	return available()
}

// volumeClaim cannot tell of a claim that is not bound whether it should be: many wait for a pod that uses them.
func volumeClaim(c *corev1.PersistentVolumeClaim) Verdict {
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return available()
	case corev1.ClaimLost:
		return failed("The volume %q of the claim is lost", c.Spec.VolumeName)
	default:
		v := notTrackable()
		v.Message += ": the claim is not bound, and may wait for a pod that uses it"
		return v
	}
}

// job is as kstatus has it, but for one that its author holds: there is nothing to wait for.
func job(u *unstructured.Unstructured) (Verdict, error) {
	if err := isA[batchv1.Job](u); err != nil {
		return Verdict{}, err
	}
	if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended {
		v := notTrackable()
		v.Message += ": the Job is suspended"
		return v, nil
	}
	return byKstatus(u)
}

// byKstatus judges kinds that have no rule. kstatus takes an object that says nothing of itself for a finished one; of that,
// nothing can be told here.
func byKstatus(u *unstructured.Unstructured) (Verdict, error) {
	conditions, err := conditionsOf(u)
	if err != nil {
		return Verdict{}, err
	}
	result, err := status.Compute(u)
	if err != nil {
		return Verdict{}, fmt.Errorf("compute its status: %w", err)
	}
	switch result.Status {
	case status.CurrentStatus:
		if !tells(u, conditions) {
			return notTrackable(), nil
		}
		return available(), nil
	case status.FailedStatus:
		return failed("It has failed: %s", result.Message), nil
	default:
		return notYet("%s", result.Message), nil
	}
}

// tells says whether kstatus has anything to go by: a rule for the kind, the generation that its controller has seen, or one
// of the conditions that it knows.
func tells(u *unstructured.Unstructured, conditions []status.BasicCondition) bool {
	if status.GetLegacyConditionsFn(u) != nil {
		return true
	}
	if _, has, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); has && err == nil {
		return true
	}
	for _, c := range conditions {
		switch c.Type {
		case "Ready", string(status.ConditionReconciling), string(status.ConditionStalled):
			return true
		}
	}
	return false
}
