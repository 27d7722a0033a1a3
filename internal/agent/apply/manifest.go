package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objectKey names an object of the member.
type objectKey struct {
	schema.GroupKind
	namespace, name string
}

func (k objectKey) String() string {
	if k.namespace == "" {
		return k.Kind + " " + k.name
	}
	return k.Kind + " " + k.namespace + "/" + k.name
}

// manifest is one object of a Work on its way into the member.
type manifest struct {
	id     placementv1.WorkResourceIdentifier
	key    objectKey
	gvr    schema.GroupVersionResource
	object *unstructured.Unstructured
	// reason and problem say why it is not applied; reason is empty while all is well.
	reason, problem string
	// note is said of an object that is applied.
	note string
	// live is the object as the member has it.
	live *unstructured.Unstructured
}

func (m *manifest) fail(reason string, format string, args ...any) {
	m.reason, m.problem = reason, fmt.Sprintf(format, args...)
}

// keyOf returns the key of a raw manifest; false where it is not a named Kubernetes object.
func keyOf(raw []byte) (objectKey, bool) {
	var head metav1.PartialObjectMetadata
	if json.Unmarshal(raw, &head) != nil || head.Kind == "" || head.Name == "" {
		return objectKey{}, false
	}
	return objectKey{GroupKind: head.GroupVersionKind().GroupKind(), namespace: head.Namespace, name: head.Name}, true
}

// decode reads the manifests of a Work. What cannot be applied has a reason.
func decode(work *placementv1.Work, mapper meta.RESTMapper) []*manifest {
	manifests := make([]*manifest, 0, len(work.Spec.Workload.Manifests))
	seen := map[objectKey]bool{}
	for i := range work.Spec.Workload.Manifests {
		m := &manifest{id: placementv1.WorkResourceIdentifier{Ordinal: int32(i)}}
		manifests = append(manifests, m)
		m.read(work.Spec.Workload.Manifests[i].Raw, mapper)
		if m.reason != "" {
			continue
		}
		if seen[m.key] {
			m.fail(placementv1.ReasonManifestDuplicated, "%s stands earlier in this Work already", m.key)
		}
		seen[m.key] = true
	}
	return manifests
}

func (m *manifest) read(raw []byte, mapper meta.RESTMapper) {
	m.object = &unstructured.Unstructured{}
	if err := m.object.UnmarshalJSON(raw); err != nil {
		m.fail(placementv1.ReasonManifestDecodingErred, "not a Kubernetes object: %v", err)
		return
	}
	gvk := m.object.GroupVersionKind()
	m.id.Group, m.id.Version, m.id.Kind = gvk.Group, gvk.Version, gvk.Kind
	m.id.Namespace, m.id.Name = m.object.GetNamespace(), m.object.GetName()
	m.key = objectKey{GroupKind: gvk.GroupKind(), namespace: m.id.Namespace, name: m.id.Name}
	if m.id.Name == "" {
		m.fail(placementv1.ReasonManifestFoundGenerateName, "the object has no metadata.name; give it one, names are not generated for placed objects")
		return
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		m.fail(placementv1.ReasonManifestDecodingErred, "the member does not serve %s: install its CustomResourceDefinition there, or place it too (%v)", gvk, err)
		return
	}
	m.gvr, m.id.Resource = mapping.Resource, mapping.Resource.Resource
	if namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; namespaced != (m.id.Namespace != "") {
		m.fail(placementv1.ReasonManifestDecodingErred, "%s is namespaced in the member: %t, and the manifest has the namespace %q", gvk.Kind, namespaced, m.id.Namespace)
		return
	}
	sanitize(m.object)
}

// sanitize removes from a manifest what belongs to the cluster that it came from, and the marks by which Argo CD and Helm
// know what is theirs: in the member it is not.
func sanitize(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "status")
	for _, field := range []string{
		"resourceVersion", "uid", "generation", "managedFields", "ownerReferences", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "selfLink", "finalizers",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	annotations, labels := o.GetAnnotations(), o.GetLabels()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "argocd.argoproj.io/") || strings.HasPrefix(key, "meta.helm.sh/")
	})
	maps.DeleteFunc(labels, func(key, value string) bool {
		return strings.HasPrefix(key, "argocd.argoproj.io/") || key == "app.kubernetes.io/managed-by" && value == "Helm"
	})
	setOrRemove(o, annotations, "annotations", o.SetAnnotations)
	setOrRemove(o, labels, "labels", o.SetLabels)
}

func setOrRemove(o *unstructured.Unstructured, values map[string]string, field string, set func(map[string]string)) {
	if len(values) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
		return
	}
	set(values)
}
