package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rendered are annotations that a Work has only where what it was rendered from asks for them.
var rendered = []string{
	placementv1.AnnotationResourceOverrideHash, placementv1.AnnotationClusterResourceOverrideHash, placementv1.AnnotationOverrideFailed,
	placementv1.AnnotationEnvelopeRefused, placementv1.AnnotationHeldObjects, placementv1.AnnotationAppliedOverrides,
	placementv1.AnnotationReplicas,
}

// overrideHashes say on a Work which overrides went into it.
func overrideHashes(a override.Applied) map[string]string {
	hashes := map[string]string{}
	if len(a.ClusterResourceOverrideSnapshots) > 0 {
		hashes[placementv1.AnnotationClusterResourceOverrideHash] = hashOf(a.ClusterResourceOverrideSnapshots)
	}
	if len(a.ResourceOverrideSnapshots) > 0 {
		hashes[placementv1.AnnotationResourceOverrideHash] = hashOf(a.ResourceOverrideSnapshots)
	}
	return hashes
}

// noteOverrides writes on a Work which overrides its binding has.
func noteOverrides(w *placementv1.Work, a override.Applied) {
	if a.Empty() {
		return
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic("encode the names of overrides: " + err.Error()) // strings, which can be encoded
	}
	w.Annotations[placementv1.AnnotationAppliedOverrides] = string(text)
}

// OverridesOf reads from the first Work of a binding which overrides the binding had. known is false where that does not fit what
// went into the Work.
func OverridesOf(first *placementv1.Work) (a override.Applied, known bool) {
	if text, noted := first.Annotations[placementv1.AnnotationAppliedOverrides]; noted {
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return override.Applied{}, false
		}
	}
	hashes := overrideHashes(a)
	for _, key := range []string{placementv1.AnnotationResourceOverrideHash, placementv1.AnnotationClusterResourceOverrideHash} {
		if first.Annotations[key] != hashes[key] {
			return override.Applied{}, false
		}
	}
	return a, true
}

// overridesText stands for all that the overrides of a target depend on. Snapshots of overrides are immutable, and the name of
// one is not given to another.
func overridesText(t Target) string {
	return hashOf(t.Overrides) + t.Cluster
}

func hashOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("encode the names of overrides: " + err.Error()) // strings, which can be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// maxHeld is how many bytes a list of held objects may have: an object has 256 KB for all of its annotations.
const maxHeld = 64 << 10

// Identify tells which object a manifest is.
func Identify(raw []byte) (placementv1.ResourceIdentifier, error) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct{ Name, Namespace string } `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return placementv1.ResourceIdentifier{}, fmt.Errorf("read a manifest: %w", err)
	}
	kind := head.GroupVersionKind()
	return placementv1.ResourceIdentifier{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name,
	}, nil
}

// Previous returns the manifest of an object as it was last rendered for the target; nil where there was none.
type Previous func(placementv1.ResourceIdentifier) ([]byte, error)

// Override applies overrides to the content of a snapshot part, for one cluster. An object that cannot be overridden stays what
// it was, or stays out if it was not there; the others do not wait for it. failures says what could not be overridden, and held
// are those of which it is not known what they were: whatever the cluster has of them stays.
func Override(content []placementv1.ResourceContent, snapshots []placementv1.OverrideSnapshotObject, c override.Cluster, previous Previous) (
	manifests []placementv1.ResourceContent, failures []FailedOverride, held []placementv1.ResourceIdentifier, err error) {
	return Change(content, func(id placementv1.ResourceIdentifier, raw []byte) ([]byte, bool, error) {
		return override.Apply(snapshots, c, id, raw)
	}, previous)
}

// Change makes changes of the content of a snapshot part, for one cluster. change returns an object as it is to be, and left false where
// the cluster is to be without it; an error of it is a failure of that object alone, with which is done as Override says.
func Change(content []placementv1.ResourceContent, change func(id placementv1.ResourceIdentifier, raw []byte) (changed []byte, left bool, err error), previous Previous) (
	manifests []placementv1.ResourceContent, failures []FailedOverride, held []placementv1.ResourceIdentifier, err error) {
	manifests = make([]placementv1.ResourceContent, 0, len(content))
	for i := range content {
		id, err := Identify(content[i].Raw)
		if err != nil { // what is no object is told by the member
			manifests = append(manifests, content[i])
			continue
		}
		changed, left, failure := change(id, content[i].Raw)
		if failure != nil {
			failures = append(failures, FailedOverride{Object: id, Message: failure.Error()})
			if changed, err = previous(id); err != nil {
				return nil, nil, nil, err
			}
			if left = changed != nil; !left {
				held = append(held, id)
			}
		}
		if left {
			manifests = append(manifests, placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: changed}})
		}
	}
	return manifests, failures, held, nil
}

// FailedOverride is an object that could not be overridden.
type FailedOverride struct {
	// Object is the object, without an envelope: that is the Work's.
	Object placementv1.ResourceIdentifier `json:"resourceIdentifier"`
	// Message says which override failed for which object in which cluster, and why.
	Message string `json:"message"`
}

// maxFailedOverrides is how many bytes a list of objects may have that could not be overridden.
const maxFailedOverrides = 64 << 10

// FailOverrides says on a Work which of its objects could not be overridden. Of a list that is too long what has no room is
// left out; the first has.
func FailOverrides(w *placementv1.Work, failures []FailedOverride, held []placementv1.ResourceIdentifier) {
	if len(held) > 0 {
		text, err := json.Marshal(held)
		if err != nil || len(text) > maxHeld {
			text = []byte(placementv1.HeldAll)
		}
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, placementv1.AnnotationHeldObjects, string(text))
	}
	if len(failures) == 0 {
		return
	}
	list, room := make([]string, 0, len(failures)), maxFailedOverrides-len("[]")
	for _, f := range failures {
		f.Message = placement.Quote(f.Message)
		text, err := json.Marshal(f)
		if err != nil {
			panic("encode why an object could not be overridden: " + err.Error()) // strings, which can be encoded
		}
		if room -= len(text) + len(","); room < 0 {
			break
		}
		list = append(list, string(text))
	}
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, placementv1.AnnotationOverrideFailed, "["+strings.Join(list, ",")+"]")
}

// FailedOverridesOf reads back from a Work which of its objects could not be overridden. What somebody else wrote there counts as
// a failure of an object that is not known.
func FailedOverridesOf(w *placementv1.Work) []FailedOverride {
	text := w.Annotations[placementv1.AnnotationOverrideFailed]
	if text == "" {
		return nil
	}
	var list []FailedOverride
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return []FailedOverride{{Message: placement.Quote(text)}}
	}
	return list
}
