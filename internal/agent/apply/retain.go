package apply

import (
	"maps"
	"reflect"

	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	deployments    = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	services       = schema.GroupKind{Kind: "Service"}
	autoscalerKind = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
)

// kept is what retain went by that can end without any field of ours being written: then the object is looked at anew,
// although it is as it was applied.
type kept struct {
	// held tells that Kruise was releasing the object.
	held bool
	// scaled tells that an autoscaler had the replicas, epoch since which of its namespace's epochs that is known.
	scaled bool
	epoch  int
}

// stillKept tells whether those are still in charge to whom something of an object was left when it was applied.
func (p *pass) stillKept(k kept, key objectKey, seen *unstructured.Unstructured) bool {
	return (!k.held || p.releasing(key, seen)) && (!k.scaled || p.autoscalers.epoch(key.namespace) == k.epoch)
}

// retain puts into what is to be applied the values of the live object which somebody in the member is in charge of for the
// time being, and tells whether it changed anything. What a manifest says nothing of needs no care: nobody applies it.
//
// held tells that Kruise is releasing the object. Each value is kept as it is rather than left out, since what is left out of an applied object is removed from it.
func retain(wanted, live *unstructured.Unstructured, held bool, autoscaled func() (bool, error)) (bool, error) {
	switch live.GroupVersionKind().GroupKind() {
	case autoscalerKind:
		want, _, _ := unstructured.NestedString(wanted.Object, "spec", "scaleTargetRef", "name")
		have, _, _ := unstructured.NestedString(live.Object, "spec", "scaleTargetRef", "name")
		return have == want+kruise.Aside && keep(wanted, live, "spec", "scaleTargetRef", "name"), nil
	case services:
		want, _, _ := unstructured.NestedStringMap(wanted.Object, "spec", "selector")
		have, _, _ := unstructured.NestedStringMap(live.Object, "spec", "selector")
		hash, held := have[kruise.Stable]
		if want == nil || !held {
			return false, nil
		}
		want = maps.Clone(want)
		want[kruise.Stable] = hash
		return maps.Equal(want, have) && keep(wanted, live, "spec", "selector"), nil
	}
	changed := false
	if held && live.GroupVersionKind().GroupKind() == deployments {
		changed = keep(wanted, live, "spec", "paused")
		changed = keep(wanted, live, "spec", "strategy") || changed
	}
	scaled, err := retainReplicas(wanted, live, autoscaled)
	return changed || scaled, err
}

// retainReplicas leaves the number of replicas to an autoscaler, where there is one. Whatever has such a number may be scaled:
// kinds with definitions of their own as well.
func retainReplicas(wanted, live *unstructured.Unstructured, autoscaled func() (bool, error)) (bool, error) {
	want, said, _ := unstructured.NestedInt64(wanted.Object, "spec", "replicas")
	have, exists, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !said || !exists || want == have || live.GetNamespace() == "" {
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

// targets tells whether an autoscaler scales an object, or will again once Kruise has released it.
func targets(autoscaler *unstructured.Unstructured, kind schema.GroupKind, name string) bool {
	ref, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	gv, err := schema.ParseGroupVersion(ref["apiVersion"])
	return err == nil && gv.Group == kind.Group && ref["kind"] == kind.Kind && (ref["name"] == name || ref["name"] == name+kruise.Aside)
}
