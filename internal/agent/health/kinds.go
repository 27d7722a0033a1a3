package health

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// isA tells whether an object is of the kind's own type. kstatus takes what it cannot read for what is not there, or panics.
func isA[T any](u *unstructured.Unstructured) error {
	_, err := judge(func(*T) Verdict { return Verdict{} })(u)
	return err
}

// cronJob is available at once: what it starts are objects of their own.
func cronJob(u *unstructured.Unstructured) (Verdict, error) {
	if err := isA[batchv1.CronJob](u); err != nil {
		return Verdict{}, err
	}
	return byKstatus(u)
}

// pod is available when it is ready, or has done its work. One that has ended without is not, whatever restarts it elsewhere.
func pod(p *corev1.Pod) Verdict {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return available()
	case corev1.PodFailed:
		return failed("The Pod has failed%s", because(p.Status.Reason, p.Status.Message))
	case corev1.PodRunning:
		if c := podCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
			return available()
		}
	case corev1.PodPending:
	case "":
		return notYet("nobody has looked at the Pod")
	default:
		return notYet("the Pod is in phase %q", p.Status.Phase)
	}
	if looping := crashing(p); len(looping) > 0 {
		return failed("Containers of the Pod crash again and again: %s", strings.Join(looping, ", "))
	}
	if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return notYet("the Pod has no node%s", because(c.Reason, c.Message))
	}
	if c := podCondition(p, corev1.PodReady); c != nil {
		return notYet("the Pod is not ready%s", because(c.Reason, c.Message))
	}
	return notYet("the Pod is not ready")
}

func podCondition(p *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == conditionType {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// crashing are the containers that the kubelet starts again ever more seldom.
func crashing(p *corev1.Pod) []string {
	var names []string
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff" {
			names = append(names, c.Name)
		}
	}
	return names
}

func replicaSet(s *appsv1.ReplicaSet) Verdict {
	want := ptr.Deref(s.Spec.Replicas, 1)
	if s.Status.ObservedGeneration != s.Generation {
		return notYet("its controller has not seen generation %d", s.Generation)
	}
	for _, c := range s.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return notYet("its pods cannot be made or deleted%s", because(c.Reason, c.Message))
		}
	}
	switch {
	case s.Status.AvailableReplicas != want:
		return notYet("%d of %d replicas are available", s.Status.AvailableReplicas, want)
	case s.Status.Replicas != want:
		return notYet("it has %d replicas, and is to have %d", s.Status.Replicas, want)
	}
	return available()
}

// ingress is available with an address. Many controllers never say one.
func ingress(i *networkingv1.Ingress) Verdict {
	for _, to := range i.Status.LoadBalancer.Ingress {
		if to.IP != "" || to.Hostname != "" {
			return available()
		}
	}
	v := notTrackable()
	v.Message += ": the Ingress has no address, and its controller may never give it one"
	return v
}

// autoscaler is available when it can scale and knows by what. When it cannot, that may be for its metrics, for its target or
// for somebody who has scaled that to nothing: what it scales is judged by itself.
func autoscaler(u *unstructured.Unstructured) (Verdict, error) {
	o, err := conditionsOf(u)
	if err != nil {
		return Verdict{}, err
	}
	met := map[string]bool{}
	v := notTrackable()
	for _, c := range o {
		switch {
		case c.Type != "AbleToScale" && c.Type != "ScalingActive":
		case c.Status == corev1.ConditionTrue:
			met[c.Type] = true
		default:
			v.Message += fmt.Sprintf(": its condition %s is %s%s", c.Type, c.Status, because(c.Reason, c.Message))
		}
	}
	if met["AbleToScale"] && met["ScalingActive"] {
		return available(), nil
	}
	return v, nil
}

// definition is available when it is served. Names that another definition has will not become free by waiting.
func definition(d *apiextensionsv1.CustomResourceDefinition) Verdict {
	for _, want := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		met := false
		for _, c := range d.Status.Conditions {
			if want == apiextensionsv1.NamesAccepted && c.Type == want && c.Status == apiextensionsv1.ConditionFalse {
				return failed("The names of the definition are not accepted%s", because(c.Reason, c.Message))
			}
			met = met || (c.Type == want && c.Status == apiextensionsv1.ConditionTrue)
		}
		if !met {
			return notYet("its condition %s is not True", want)
		}
	}
	return available()
}

// because is what the member says of it, in brackets or behind a colon.
func because(reason, message string) string {
	switch {
	case message != "" && reason != "":
		return fmt.Sprintf(" (%s): %s", reason, message)
	case message != "":
		return ": " + message
	case reason != "":
		return fmt.Sprintf(" (%s)", reason)
	}
	return ""
}

// conditionsOf are the conditions of an object. Those that kstatus goes by must say what conditions say: it would pass over
// another text, and take the object for finished.
func conditionsOf(u *unstructured.Unstructured) ([]status.BasicCondition, error) {
	o, err := status.GetObjectWithConditions(u.Object)
	if err != nil {
		return nil, fmt.Errorf("read its conditions: %w", err)
	}
	for _, c := range o.Status.Conditions {
		if isKnown(c.Type) && c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse && c.Status != corev1.ConditionUnknown {
			return nil, fmt.Errorf("read its conditions: %s is %q, and not True, False or Unknown", c.Type, c.Status)
		}
	}
	return o.Status.Conditions, nil
}

func isKnown(conditionType string) bool {
	switch conditionType {
	case "Ready", "AbleToScale", "ScalingActive", string(status.ConditionReconciling), string(status.ConditionStalled):
		return true
	}
	return false
}
