package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objectKey names an object of the member, whatever API version it is written in.
type objectKey struct {
	schema.GroupKind
	namespace, name string
}

func (k objectKey) String() string {
	return placement.ObjectName(k.Kind, k.namespace, k.name)
}

// manifest is one object of a Work, and in the end what has become of it.
type manifest struct {
	id  placementv1.WorkResourceIdentifier
	key objectKey
	gvr schema.GroupVersionResource
	// raw is the manifest as it stands in the Work, which belongs to the cache; hash stands for it.
	raw  []byte
	hash string

	// reason and problem say why it is not applied; reason is empty while all is well.
	reason, problem string
	// note is said of an object that is applied.
	note string
	// live is the object as the member has it, and kept what of it was left to others when it was applied.
	live *unstructured.Unstructured
	kept kept
	// diff is in what the member's object differs from the manifest, where that is not applied; drift in what it was changed
	// since it was applied. undetected says why the latter is not known.
	diff, drift *comparison
	undetected  string
	// held stands for the object, where it is left as it is on purpose.
	held string
}

func (m *manifest) fail(reason string, format string, args ...any) {
	m.reason, m.problem = reason, fmt.Sprintf(format, args...)
}

// kind is the kind of the object, in the version of the manifest.
func (m *manifest) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: m.id.Group, Version: m.id.Version, Kind: m.id.Kind}
}

// pending tells that the manifest is about to be applied, as soon as what it waits for has happened.
func (m *manifest) pending() bool { return placementv1.IsAboutToBeApplied(m.reason) }

// head is the part of a manifest that tells which object it is.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name, Namespace string
	} `json:"metadata"`
}

func keyOf(raw []byte) (objectKey, schema.GroupVersionKind, error) {
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return objectKey{}, schema.GroupVersionKind{}, err
	}
	gvk := h.GroupVersionKind()
	return objectKey{GroupKind: gvk.GroupKind(), namespace: h.Metadata.Namespace, name: h.Metadata.Name}, gvk, nil
}

// decode reads which objects a Work has. What cannot be applied has a reason.
func decode(work *placementv1.Work) []*manifest {
	manifests := make([]*manifest, 0, len(work.Spec.Workload.Manifests))
	seen := map[objectKey]bool{}
	for i := range work.Spec.Workload.Manifests {
		m := &manifest{id: placementv1.WorkResourceIdentifier{Ordinal: int32(i)}, raw: work.Spec.Workload.Manifests[i].Raw}
		manifests = append(manifests, m)
		key, gvk, err := keyOf(m.raw)
		switch {
		case err != nil:
			m.fail(placementv1.ReasonManifestDecodingErred, "not a Kubernetes object: %v", err)
			continue
		case gvk.Kind == "" || gvk.Version == "":
			m.fail(placementv1.ReasonManifestDecodingErred, "not a Kubernetes object: it has no apiVersion or no kind")
			continue
		}
		m.id.Group, m.id.Version, m.id.Kind, m.id.Namespace, m.id.Name = gvk.Group, gvk.Version, gvk.Kind, key.namespace, key.name
		if key.name == "" {
			m.fail(placementv1.ReasonManifestFoundGenerateName, "the object has no metadata.name; give it one, names are not generated for placed objects")
			continue
		}
		m.key = key
		sum := sha256.Sum256(m.raw)
		m.hash = hex.EncodeToString(sum[:16])
		if seen[key] {
			m.fail(placementv1.ReasonManifestDuplicated, "%s stands earlier in this Work already", key)
		}
		seen[key] = true
	}
	return manifests
}

// object reads the manifest as it is to be applied.
func (m *manifest) object() (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(m.raw); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	sanitize(o)
	return o, nil
}

// sanitize removes from a manifest what belongs to the cluster that it came from, once more after the hub has done so:
// what the hub leaves in by mistake must do no harm here. Finalizers go too: a controller that would lift them need not
// run in this member.
func sanitize(o *unstructured.Unstructured) {
	placement.Sanitize(o)
	unstructured.RemoveNestedField(o.Object, "metadata", "finalizers")
	if o.GroupVersionKind().GroupKind() == namespaces {
		unstructured.RemoveNestedField(o.Object, "spec", "finalizers")
	}
	for field, values := range map[string]map[string]string{"annotations": o.GetAnnotations(), "labels": o.GetLabels()} {
		before := len(values)
		maps.DeleteFunc(values, tracks)
		switch {
		case len(values) == 0:
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		case len(values) == before:
		case field == "labels":
			o.SetLabels(values)
		default:
			o.SetAnnotations(values)
		}
	}
}

// tracks tells whether a label or annotation is one by which Argo CD or Helm know what is theirs. In the member nothing is:
// an Argo CD or Helm that runs there would take the object for its own, and remove it. app.kubernetes.io/instance, by which
// an older Argo CD may go as well, stays: too many selectors need it.
func tracks(key, value string) bool {
	switch {
	case strings.HasPrefix(key, "argocd.argoproj.io/"), strings.HasPrefix(key, "meta.helm.sh/"):
		return true
	case key == "app.kubernetes.io/managed-by":
		return value == "Helm"
	}
	return false
}
