package apply

import (
	"encoding/json"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition is what matters here of the manifest of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Served bool
		}
	}
}

// serves tells whether a definition has a version of its kind served.
func (d *definition) serves(version string) bool {
	for _, v := range d.Spec.Versions {
		if v.Name == version && v.Served {
			return true
		}
	}
	return false
}

// definitionOf finds the manifest of a kind's definition in the Work; nil where the Work does not have it.
func (p *pass) definitionOf(kind schema.GroupKind) (*manifest, *definition) {
	for _, m := range p.manifests {
		if m.key.GroupKind != definitionKind {
			continue
		}
		var d definition
		if json.Unmarshal(m.raw, &d) == nil && d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind {
			return m, &d
		}
	}
	return nil, nil
}

// unknownKind says that the member does not serve the kind of a manifest. If the Work itself brings the definition, that is
// only a matter of a moment, as a rule; where it takes longer, something is wrong with the definition.
func (p *pass) unknownKind(m *manifest) {
	along, d := p.definitionOf(m.key.GroupKind)
	switch {
	case along == nil:
		m.fail(placementv1.ReasonManifestDecodingErred, "the member does not serve %s: install its CustomResourceDefinition there, or place it too; this is noticed by itself", m.kind())
	case !d.serves(m.id.Version):
		m.fail(placementv1.ReasonManifestDecodingErred, "the member does not serve %s, and %s, which is placed along with it, has no such version served", m.kind(), along.key)
	case !p.overdue(m, maxBackoff):
		m.fail(placementv1.ReasonManifestPreparing, "Waits until the member serves %s, whose CustomResourceDefinition is placed along with it", m.id.Kind)
	default:
		var live *unstructured.Unstructured
		if seen := p.watches.get(definitions, along.key); seen != nil {
			live = seen.object
		}
		m.fail(placementv1.ReasonManifestDecodingErred, "the member does not serve %s, although %s is placed along with it: %s", m.kind(), along.key, unmet(live))
	}
}

// unmet says what a definition lacks for its kind to be served.
func unmet(definition *unstructured.Unstructured) string {
	if definition == nil {
		return "the definition is not in the member"
	}
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, wanted := range []struct{ condition, status string }{{"Terminating", "False"}, {"NamesAccepted", "True"}, {"Established", "True"}} {
		at := slices.IndexFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["type"] == wanted.condition
		})
		if at < 0 {
			if wanted.condition == "Established" {
				return "the definition is not Established yet"
			}
			continue
		}
		if c, _ := conditions[at].(map[string]any); c["status"] != wanted.status {
			return fmt.Sprintf("the definition's condition %s is %v (%v: %v)", wanted.condition, c["status"], c["reason"], c["message"])
		}
	}
	return "the definition is Established, but the member's API server does not list the kind"
}
