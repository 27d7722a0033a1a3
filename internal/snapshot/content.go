// Package snapshot is how a revision of what a placement selects is identified, split into API objects, counted and
// forgotten. It does no I/O.
package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// MaxPart is how much content is put into one snapshot object, in bytes of JSON.
	MaxPart = 800 * 1024
	// MaxObject is the size of the largest object that can be placed. A snapshot and a Work have to hold it, and etcd
	// takes no more than 1.5 MiB in one request.
	MaxObject = 1400 * 1024
)

// Object is one selected object.
type Object struct {
	placementv1.ResourceIdentifier
	// Content is the object as JSON, in the one form that an object has: keys sorted, no white space.
	Content []byte
}

// NewObject makes an Object of a sanitized Kubernetes object.
func NewObject(o *unstructured.Unstructured) (Object, error) {
	kind := o.GroupVersionKind()
	id := placementv1.ResourceIdentifier{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: o.GetName(), Namespace: o.GetNamespace(),
	}
	content, err := json.Marshal(o.Object)
	if err != nil {
		return Object{}, fmt.Errorf("encode %s: %w", Describe(id), err)
	}
	return Object{ResourceIdentifier: id, Content: content}, nil
}

// Describe names an object for a person.
func Describe(id placementv1.ResourceIdentifier) string {
	kind := id.Kind
	if id.Group != "" {
		kind += "." + id.Group
	}
	if id.Namespace == "" {
		return fmt.Sprintf("%s %s", kind, id.Name)
	}
	return fmt.Sprintf("%s %s/%s", kind, id.Namespace, id.Name)
}

// Sort puts objects into the order in which they are applied.
func Sort(objects []Object) {
	slices.SortFunc(objects, func(a, b Object) int {
		return placement.CompareIdentifiers(a.ResourceIdentifier, b.ResourceIdentifier)
	})
}

// Hash is the SHA-256, in hex, of a whole sorted selection. It does not depend on how the selection is split.
func Hash(objects []Object) string {
	sum := sha256.New()
	for _, o := range objects {
		// The length before each object keeps two selections apart that are the same bytes put together.
		sum.Write(binary.AppendUvarint(nil, uint64(len(o.Content))))
		sum.Write(o.Content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Split divides a sorted selection into the contents of the objects of one snapshot, each filled as far as it goes. An
// empty selection is one empty part.
func Split(objects []Object) [][]Object {
	parts := [][]Object{nil}
	size := 0
	for _, o := range objects {
		last := len(parts) - 1
		if len(parts[last]) > 0 && size+len(o.Content) > MaxPart {
			parts, size, last = append(parts, nil), 0, last+1
		}
		parts[last] = append(parts[last], o)
		size += len(o.Content)
	}
	return parts
}

// Envelopes says where the envelopes of a split selection are: the number of the part, a colon, and the envelope's ID.
func Envelopes(parts [][]Object) []string {
	var envelopes []string
	for i, part := range parts {
		for _, o := range part {
			if placement.IsEnvelope(schema.GroupKind{Group: o.Group, Kind: o.Kind}) {
				envelopes = append(envelopes, fmt.Sprintf("%d:%s", i, placement.EnvelopeID(o.Kind, o.Namespace, o.Name)))
			}
		}
	}
	return envelopes
}
