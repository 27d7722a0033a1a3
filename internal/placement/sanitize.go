package placement

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// hubOnlyMetadata is what an API server keeps about an object for itself.
var hubOnlyMetadata = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "ownerReferences",
	"resourceVersion", "selfLink", "uid",
}

// hubOnlyAnnotations are kept on objects by kubectl and by the Deployment controller about their own work.
var hubOnlyAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"deployment.kubernetes.io/revision",
	placementv1.AnnotationInRelease,
}

// Sanitize takes out of an object what is true on the hub alone, so that what remains can be applied in any cluster and
// changes only when its author changes it. Labels, other annotations and finalizers stay.
func Sanitize(object *unstructured.Unstructured) {
	for _, field := range hubOnlyMetadata {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	removeKeys(object.Object, hubOnlyAnnotations, "metadata", "annotations")
	for _, field := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedStringMap(object.Object, "metadata", field)
		for key := range values {
			if kruise.IsNote(key) { // of an object that was copied from a member
				removeKeys(object.Object, []string{key}, "metadata", field)
			}
		}
	}

	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Service"}:
		sanitizeService(object.Object)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		sanitizeJob(object.Object)
	}
}

// sanitizeService drops what each cluster allots by itself. A headless Service is headless everywhere.
func sanitizeService(object map[string]any) {
	if ip, _, _ := unstructured.NestedString(object, "spec", "clusterIP"); ip != "None" {
		unstructured.RemoveNestedField(object, "spec", "clusterIP")
		unstructured.RemoveNestedField(object, "spec", "clusterIPs")
	}
	unstructured.RemoveNestedField(object, "spec", "healthCheckNodePort")
	spec, _ := object["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
}

// sanitizeJob drops the selector that the hub generated, which names the hub's object. A selector that the author
// manages stays.
func sanitizeJob(object map[string]any) {
	if manual, _, _ := unstructured.NestedBool(object, "spec", "manualSelector"); manual {
		return
	}
	generated := []string{"controller-uid", "batch.kubernetes.io/controller-uid"}
	removeKeys(object, generated, "spec", "selector", "matchLabels")
	removeKeys(object, generated, "spec", "template", "metadata", "labels")
	if selector, _, _ := unstructured.NestedMap(object, "spec", "selector"); len(selector) == 0 {
		unstructured.RemoveNestedField(object, "spec", "selector")
	}
}

// removeKeys deletes keys from a map inside object, and the map itself when nothing is left in it.
func removeKeys(object map[string]any, keys []string, path ...string) {
	for _, key := range keys {
		unstructured.RemoveNestedField(object, append(path[:len(path):len(path)], key)...)
	}
	if left, found, err := unstructured.NestedFieldNoCopy(object, path...); err == nil && found {
		if fields, ok := left.(map[string]any); ok && len(fields) == 0 {
			unstructured.RemoveNestedField(object, path...)
		}
	}
}
