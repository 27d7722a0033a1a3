package statusback

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetwright/fleetwright/internal/placement"
)

const observedGeneration = "observedGeneration"

// generations are what an observedGeneration of the member's is read against, and what it becomes on the hub.
type generations struct {
	// member is the object's generation in the member when its status was seen, hub the one that it has on the hub.
	member, hub int64
	// current tells that what the member was given is what the object says on the hub.
	current bool
}

// translate makes of a status in the member the one on the hub, where before is what that is so far. Each cluster counts the
// generations of an object by itself, so that the member's number means nothing on the hub. Where the member has observed its
// object as it is, and that is what the hub's object says, the hub's generation has been observed. Else whatever was observed
// before still is, and of an object that says something else by now no more than the generation before.
func (g generations) translate(status, before map[string]any) map[string]any {
	translated := runtime.DeepCopyJSON(status)
	g.set(translated, before)
	conditions, _ := translated["conditions"].([]any)
	earlier, _ := before["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			g.set(condition, ofType(earlier, condition["type"]))
		}
	}
	return translated
}

// set replaces the observedGeneration of a status or a condition.
func (g generations) set(fields, before map[string]any) {
	observed, counts := fields[observedGeneration].(int64)
	if !counts {
		return
	}
	was, _ := before[observedGeneration].(int64)
	now := min(was, g.hub)
	switch {
	case g.current && observed == g.member:
		now = g.hub
	case !g.current:
		now = min(was, g.hub-1)
	}
	if now <= 0 {
		delete(fields, observedGeneration)
		return
	}
	fields[observedGeneration] = now
}

// ofType finds a condition; nil where there is none.
func ofType(conditions []any, conditionType any) map[string]any {
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == conditionType {
			return condition
		}
	}
	return nil
}

// sameContent tells whether a manifest says what an object on the hub says, but for metadata, whose changes are no generation of
// an object.
func sameContent(manifest, object *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(contentOf(manifest), contentOf(object))
}

func contentOf(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy()
	placement.Sanitize(copied)
	delete(copied.Object, "metadata")
	return copied.Object
}
