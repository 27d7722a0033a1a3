package apply

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Marks of Kruise Rollouts on a Deployment that it is releasing.
const (
	kruiseInProgress = "rollouts.kruise.io/in-progressing"
	kruiseControl    = "batchrelease.rollouts.kruise.io/control-info"
	// kruiseDisabled ends the name of the workload in an autoscaler that Kruise has put aside during a release.
	kruiseDisabled = "-DisableByRollout"
	// kruiseStable is the label by which Kruise keeps a Service on the stable pods during a release.
	kruiseStable = "pod-template-hash"
)

var (
	deployments  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSets = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	replicaSets  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	services     = schema.GroupKind{Kind: "Service"}
	autoscalers  = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
)

// retain puts into what is to be applied the values of the live object which somebody in the member is in charge of for the
// time being, and tells whether it changed anything. What a manifest says nothing of needs no care: nobody applies it.
//
// Each value is kept as it is rather than left out, since what is left out of an applied object is removed from it.
func retain(wanted, live *unstructured.Unstructured, autoscaled func() (bool, error)) (bool, error) {
	switch live.GroupVersionKind().GroupKind() {
	case deployments:
		changed := false
		if annotations := live.GetAnnotations(); annotations[kruiseInProgress] != "" || annotations[kruiseControl] != "" {
			changed = keep(wanted, live, "spec", "paused")
			changed = keep(wanted, live, "spec", "strategy") || changed
		}
		scaled, err := retainReplicas(wanted, live, autoscaled)
		return changed || scaled, err
	case statefulSets, replicaSets:
		return retainReplicas(wanted, live, autoscaled)
	case autoscalers:
		want, _, _ := unstructured.NestedString(wanted.Object, "spec", "scaleTargetRef", "name")
		have, _, _ := unstructured.NestedString(live.Object, "spec", "scaleTargetRef", "name")
		return have == want+kruiseDisabled && keep(wanted, live, "spec", "scaleTargetRef", "name"), nil
	case services:
		want, _, _ := unstructured.NestedStringMap(wanted.Object, "spec", "selector")
		have, _, _ := unstructured.NestedStringMap(live.Object, "spec", "selector")
		hash, held := have[kruiseStable]
		if want == nil || !held {
			return false, nil
		}
		want = maps.Clone(want)
		want[kruiseStable] = hash
		return maps.Equal(want, have) && keep(wanted, live, "spec", "selector"), nil
	}
	return false, nil
}

// retainReplicas leaves the number of replicas to an autoscaler, where there is one.
func retainReplicas(wanted, live *unstructured.Unstructured, autoscaled func() (bool, error)) (bool, error) {
	want, said, _ := unstructured.NestedInt64(wanted.Object, "spec", "replicas")
	have, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !said || want == have {
		return false, nil
	}
	yes, err := autoscaled()
	if err != nil || !yes {
		return false, err
	}
	return keep(wanted, live, "spec", "replicas"), nil
}

// keep makes a field of wanted, if it is said there, what it is in the live object.
func keep(wanted, live *unstructured.Unstructured, path ...string) bool {
	want, said, err := unstructured.NestedFieldNoCopy(wanted.Object, path...)
	if !said || err != nil {
		return false
	}
	have, exists, err := unstructured.NestedFieldCopy(live.Object, path...)
	switch {
	case err != nil:
		return false
	case !exists:
		unstructured.RemoveNestedField(wanted.Object, path...)
		return true
	case reflect.DeepEqual(want, have):
		return false
	}
	return unstructured.SetNestedField(wanted.Object, have, path...) == nil
}

// targets tells whether an autoscaler scales an object.
func targets(autoscaler *unstructured.Unstructured, kind schema.GroupKind, name string) bool {
	ref, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	gv, err := schema.ParseGroupVersion(ref["apiVersion"])
	return err == nil && gv.Group == kind.Group && ref["kind"] == kind.Kind && ref["name"] == name
}
