package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Envelope is where in a resource snapshot an envelope is.
type Envelope struct {
	// Part is the position of the part that it is in; ID is what the name of its Work ends with.
	Part int
	ID   string
}

// ParseEnvelopes reads where the envelopes of a resource snapshot of some parts are.
func ParseEnvelopes(text string, parts int) ([]Envelope, error) {
	if text == "" {
		return nil, nil
	}
	var envelopes []Envelope
	for item := range strings.SplitSeq(text, ",") {
		number, id, ok := strings.Cut(item, ":")
		part, err := strconv.Atoi(number)
		if !ok || err != nil || part < 0 || part >= parts {
			return nil, fmt.Errorf("%q does not say in which of %d parts an envelope is", item, parts)
		}
		envelopes = append(envelopes, Envelope{Part: part, ID: id})
	}
	return envelopes, nil
}

// count is the number of Works that carry a revision.
func (r *Revision) count() int { return len(r.Parts) + len(r.Envelopes) }

// place returns from which part the Work of a position is rendered, and its name.
func (r *Revision) place(t Target, i int) (part int, name string) {
	if i < len(r.Parts) {
		return i, placement.WorkName(t.Placement, i)
	}
	e := r.Envelopes[i-len(r.Parts)]
	return e.Part, placement.EnvelopeWorkName(t.Placement, e.ID)
}

// envelope is an envelope as it is in a snapshot.
type envelope struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct{ Name, Namespace string } `json:"metadata"`
	Data            map[string]json.RawMessage       `json:"data"`
}

// asEnvelope reads an object as an envelope; nil where it is none.
func asEnvelope(raw []byte) *envelope {
	id, err := Identify(raw)
	if err != nil || !placement.IsEnvelope(schema.GroupKind{Group: id.Group, Kind: id.Kind}) {
		return nil
	}
	e := &envelope{}
	if err := json.Unmarshal(raw, e); err != nil {
		return &envelope{} // it has nothing in it
	}
	return e
}

// Objects names the objects that are placed for one that is selected: itself and, of an envelope, what is in it.
func Objects(raw []byte) []placementv1.ResourceIdentifier {
	var all []placementv1.ResourceIdentifier
	if e := asEnvelope(raw); e != nil {
		for _, entry := range e.Data {
			if id, err := Identify(entry); err == nil {
				all = append(all, id)
			}
		}
		return all
	}
	if id, err := Identify(raw); err == nil {
		all = append(all, id)
	}
	return all
}

// Unwrap returns what of a part's content a Work carries: of one that carries an envelope, by its ID, what is in that, and of
// another one all but the envelopes. It says on the Work which envelope it is, and which entries are refused; rules say of which
// namespaces.
func Unwrap(w *placementv1.Work, id string, content []placementv1.ResourceContent, rules placement.Rules) []placementv1.ResourceContent {
	plain := make([]placementv1.ResourceContent, 0, len(content))
	for i := range content {
		e := asEnvelope(content[i].Raw)
		switch {
		case e == nil && id == "":
			plain = append(plain, content[i])
		case e != nil && id != "" && placement.EnvelopeID(e.Kind, e.Metadata.Namespace, e.Metadata.Name) == id:
			return e.open(w, rules)
		}
	}
	return plain
}

// open returns what is in an envelope, in the order in which it is applied.
func (e *envelope) open(w *placementv1.Work, rules placement.Rules) []placementv1.ResourceContent {
	w.Labels[placementv1.LabelEnvelopeType], w.Labels[placementv1.LabelEnvelopeName] = e.Kind, e.Metadata.Name
	if e.Metadata.Namespace != "" {
		w.Labels[placementv1.LabelEnvelopeNamespace] = e.Metadata.Namespace
	}
	type object struct {
		id  placementv1.ResourceIdentifier
		raw json.RawMessage
	}
	var objects []object
	var refused []string
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		id, err := Identify(e.Data[key])
		var why string
		if err != nil {
			why = "it is no Kubernetes object; give it apiVersion, kind and metadata.name"
		} else {
			why = cmp.Or(e.refuses(id, rules), ownOfCluster(id, e.Data[key]))
		}
		if why != "" {
			refused = append(refused, fmt.Sprintf("entry %q of %s: %s", key, e, why))
			continue
		}
		objects = append(objects, object{id: id, raw: e.Data[key]})
	}
	if len(refused) > 0 {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, placementv1.AnnotationEnvelopeRefused, placement.Quote(strings.Join(refused, "; ")))
	}
	slices.SortStableFunc(objects, func(a, b object) int { return placement.CompareIdentifiers(a.id, b.id) })
	content := make([]placementv1.ResourceContent, len(objects))
	for i := range objects {
		content[i].Raw = objects[i].raw
	}
	return content
}

// String names the envelope for a person.
func (e *envelope) String() string {
	return placement.ObjectName(e.Kind, e.Metadata.Namespace, e.Metadata.Name)
}

// ownOfCluster says of an entry that every cluster has of its own why it is refused, and what to do; empty for others.
func ownOfCluster(id placementv1.ResourceIdentifier, entry []byte) string {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(entry, &o); err != nil {
		return "its metadata cannot be read: " + err.Error() + "; correct it"
	}
	why := placement.OwnOfCluster(schema.GroupKind{Group: id.Group, Kind: id.Kind}, &o)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s %s is never placed, because %s; remove the entry, or place a copy of the object under another name", id.Kind, id.Name, why)
}

// refuses says why an object may not be in the envelope, and what to do; empty where it may.
func (e *envelope) refuses(id placementv1.ResourceIdentifier, rules placement.Rules) string {
	kind := schema.GroupKind{Group: id.Group, Kind: id.Kind}
	switch {
	case id.Kind == "" || id.Name == "":
		return "it has no kind or no metadata.name; give it both"
	case placement.IsEnvelope(kind):
		return "an envelope cannot be in an envelope; put its entries into this one, or place it by itself"
	case kind == placement.NamespaceKind && rules.Reserved(id.Name):
		return fmt.Sprintf("namespace %s is reserved and cannot be placed; remove the entry", id.Name)
	case placement.NeverPlaced(kind) != "":
		return fmt.Sprintf("objects of kind %s are never placed, because %s; remove the entry", id.Kind, placement.NeverPlaced(kind))
	case e.Kind == string(placementv1.ClusterResourceEnvelopeType):
		if id.Namespace != "" {
			return fmt.Sprintf("%s %s/%s is in a namespace, and a ClusterResourceEnvelope holds cluster-scoped objects; move it to a ResourceEnvelope in namespace %s",
				id.Kind, id.Namespace, id.Name, id.Namespace)
		}
		return ""
	case id.Group == "rbac.authorization.k8s.io":
		return fmt.Sprintf("%s %s gives rights, which an envelope in a namespace may not carry; let an administrator of the fleet place it", id.Kind, id.Name)
	case id.Namespace == "":
		return fmt.Sprintf("%s %s has no metadata.namespace; set it to %s, or, if it is cluster-scoped, move it to a ClusterResourceEnvelope",
			id.Kind, id.Name, e.Metadata.Namespace)
	case id.Namespace != e.Metadata.Namespace:
		return fmt.Sprintf("%s %s/%s is in another namespace than the envelope; move it to a ResourceEnvelope in namespace %s",
			id.Kind, id.Namespace, id.Name, id.Namespace)
	}
	return ""
}
