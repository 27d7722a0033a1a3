package placement

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// replicaFields are where the kinds of workloads say how many pods they run.
var replicaFields = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:            {"spec", "replicas"},
	{Group: "apps", Kind: "StatefulSet"}:           {"spec", "replicas"},
	{Group: "apps", Kind: "ReplicaSet"}:            {"spec", "replicas"},
	{Group: "batch", Kind: "Job"}:                  {"spec", "parallelism"},
	{Group: "apps.kruise.io", Kind: "CloneSet"}:    {"spec", "replicas"},
	{Group: "apps.kruise.io", Kind: "StatefulSet"}: {"spec", "replicas"},
}

// HasReplicas tells whether objects of a kind run a number of pods that can be divided over clusters.
func HasReplicas(kind schema.GroupKind) bool { return replicaFields[kind] != nil }

// Replicas is how many pods an object is to run; ok is false where its kind has no such number. One that does not say runs one.
func Replicas(o *unstructured.Unstructured) (replicas int32, ok bool, err error) {
	field := replicaFields[o.GroupVersionKind().GroupKind()]
	if field == nil {
		return 0, false, nil
	}
	n, found, err := unstructured.NestedInt64(o.Object, field...)
	if err != nil {
		return 0, true, fmt.Errorf("read the replicas of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if !found {
		return 1, true, nil
	}
	return int32(min(max(n, 0), int64(1<<31-1))), true, nil //nolint:gosec // it is bounded on this very line
}

// SetReplicas has an object run a number of pods; without one, it says none. It does nothing to kinds that have no such number.
func SetReplicas(o *unstructured.Unstructured, replicas *int32) error {
	field := replicaFields[o.GroupVersionKind().GroupKind()]
	switch {
	case field == nil:
		return nil
	case replicas == nil:
		unstructured.RemoveNestedField(o.Object, field...)
		return nil
	}
	if err := unstructured.SetNestedField(o.Object, int64(*replicas), field...); err != nil {
		return fmt.Errorf("set the replicas of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
