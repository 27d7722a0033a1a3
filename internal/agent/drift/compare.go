package drift

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// WholeObject stands for an object that one side does not have at all.
	WholeObject = "(the whole object)"
	// Redacted stands for what is not shown.
	Redacted = "(redacted for security reasons)"
	// maxValue is how much of a value is shown, in bytes.
	maxValue = 512
	// lastApplied is kubectl's record of what it applied, the values of a Secret included.
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// envelope marks a ConfigMap whose values are manifests, Secrets perhaps.
	envelope = "kubernetes-fleet.io/envelope-configmap"
)

// Hash stands for all of an object that can be compared, whoever has written it.
func Hash(object *unstructured.Unstructured) string {
	return hash(map[string]any{"uid": string(object.GetUID()), "content": content(object.Object)})
}

// Missing is what is said of an object that the member does not have.
func Missing() []placementv1.PatchDetail {
	return []placementv1.PatchDetail{{Path: Whole, ValueInHub: WholeObject}}
}

// Compare tells in which places the member's object is not what the hub wants it to be, a hundred of them at the most. What
// API servers and controllers keep for themselves does not count: status, most of the metadata, and those labels and
// annotations in the domains of Kubernetes, the fleet and Kruise of which the manifest says nothing. With saidOnly fields
// that hub does not have do not count either.
func Compare(member, hub, manifest *unstructured.Unstructured, saidOnly bool) []placementv1.PatchDetail {
	c := comparison{saidOnly: saidOnly}
	c.maps("", reduced(member, manifest), reduced(hub, manifest), false)
	slices.SortStableFunc(c.found, func(a, b placementv1.PatchDetail) int { return strings.Compare(a.Path, b.Path) })
	return c.found
}

// reduced is what of an object is compared.
func reduced(object, manifest *unstructured.Unstructured) map[string]any {
	o := maps.Clone(object.Object)
	delete(o, "status")
	delete(o, "apiVersion") // the version that was asked for
	metadata := map[string]any{}
	for field, values := range map[string][2]map[string]string{
		"labels":      {object.GetLabels(), manifest.GetLabels()},
		"annotations": {object.GetAnnotations(), manifest.GetAnnotations()},
	} {
		kept := map[string]any{}
		for key, value := range values[0] {
			if _, said := values[1][key]; (said || !isSystems(key)) && key != lastApplied && key != Merged {
				kept[key] = value
			}
		}
		metadata[field] = kept
	}
	o["metadata"] = metadata
	return o
}

// isSystems tells whether a label or annotation is in a domain in which systems, and not people, write.
func isSystems(key string) bool {
	domain, _, has := strings.Cut(key, "/")
	if !has {
		return false
	}
	for _, theirs := range []string{"k8s.io", "kubernetes.io", "kubernetes-fleet.io", "fleetwright.io", "rollouts.kruise.io"} {
		if domain == theirs || strings.HasSuffix(domain, "."+theirs) {
			return true
		}
	}
	return false
}

// comparison gathers places.
type comparison struct {
	saidOnly bool
	found    []placementv1.PatchDetail
}

func (c *comparison) any(path string, member, hub any, secret bool) {
	if len(c.found) >= maxPaths || reflect.DeepEqual(member, hub) || sameNumber(member, hub) {
		return
	}
	switch h := hub.(type) {
	case map[string]any:
		if m, ok := member.(map[string]any); ok {
			c.maps(path, m, h, secret)
			return
		}
	case []any:
		if m, ok := member.([]any); ok {
			c.lists(path, m, h, secret)
			return
		}
	}
	c.found = append(c.found, placementv1.PatchDetail{Path: path, ValueInMember: show(member, secret), ValueInHub: show(hub, secret)})
}

func (c *comparison) maps(path string, member, hub map[string]any, secret bool) {
	keys := slices.Collect(maps.Keys(hub))
	if !c.saidOnly {
		for key := range member {
			if _, both := hub[key]; !both {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		hidden := secret || hides(member, key) || hides(hub, key)
		c.any(path+"/"+escape.Replace(key), member[key], hub[key], hidden)
	}
}

// lists compares entries of one name with each other, and where they have none, or share one, those in one position.
func (c *comparison) lists(path string, member, hub []any, secret bool) {
	byName, named := names(member)
	_, both := names(hub)
	done := map[int]bool{}
	for i, entry := range hub {
		at := i
		if named && both {
			at = -1
			if found, ok := byName[nameOf(entry)]; ok {
				at = found
			}
		}
		var there any
		if at >= 0 && at < len(member) {
			there = member[at]
			done[at] = true
		}
		c.any(path+"/"+strconv.Itoa(i), there, entry, secret)
	}
	for i, entry := range member {
		if !done[i] { // an entry more is a change of the list, which the manifest says
			c.any(path+"/"+strconv.Itoa(i), entry, nil, secret)
		}
	}
}

// names finds the entries of a list by their names, if each has one of its own.
func names(list []any) (byName map[string]int, named bool) {
	byName = map[string]int{}
	for i, entry := range list {
		name := nameOf(entry)
		if _, twice := byName[name]; twice || name == "" {
			return nil, false
		}
		byName[name] = i
	}
	return byName, true
}

func nameOf(entry any) string {
	e, _ := entry.(map[string]any)
	name, _ := e["name"].(string)
	return name
}

// sameNumber tells whether two values are one number, which may be read as an integer here and as a fraction there.
func sameNumber(a, b any) bool {
	x, ok := number(a)
	y, also := number(b)
	return ok && also && x == y
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// hides tells whether what an object has under a key is not to be shown: the contents of a Secret, on its own or within
// another object, and of a ConfigMap that envelops manifests.
func hides(object map[string]any, key string) bool {
	if key != "data" && key != "stringData" && key != "binaryData" {
		return false
	}
	if object["kind"] == "Secret" {
		return true
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, enveloping := annotations[envelope]
	return object["kind"] == "ConfigMap" && enveloping
}

// show is a value for a person: text as it is, anything else as JSON, not too long.
func show(value any, secret bool) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		if secret {
			return Redacted
		}
		return placement.Cut(v, maxValue)
	default:
		if secret {
			return Redacted
		}
		data, err := json.Marshal(redact(v))
		if err != nil {
			return placement.Cut(fmt.Sprint(reflect.TypeOf(v)), maxValue)
		}
		return placement.Cut(string(data), maxValue)
	}
}

// redact is a value without what is not to be shown of it.
func redact(value any) any {
	switch v := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for key, field := range v {
			switch {
			case hides(v, key):
				shown[key] = Redacted
			case key == lastApplied, key == Merged:
			default:
				shown[key] = redact(field)
			}
		}
		return shown
	case []any:
		shown := make([]any, len(v))
		for i := range v {
			shown[i] = redact(v[i])
		}
		return shown
	}
	return value
}
