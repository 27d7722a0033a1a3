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
	c.maps("", reduced(member, manifest), reduced(hub, manifest), shown)
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

func (c *comparison) any(path string, member, hub any, v veil) {
	if len(c.found) >= maxPaths || reflect.DeepEqual(member, hub) || sameNumber(member, hub) {
		return
	}
	switch h := hub.(type) {
	case map[string]any:
		if m, ok := member.(map[string]any); ok {
			c.maps(path, m, h, v)
			return
		}
	case []any:
		if m, ok := member.([]any); ok {
			c.lists(path, m, h, v)
			return
		}
	}
	c.found = append(c.found, placementv1.PatchDetail{Path: path, ValueInMember: show(member, v), ValueInHub: show(hub, v)})
}

func (c *comparison) maps(path string, member, hub map[string]any, v veil) {
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
		c.any(path+"/"+escape.Replace(key), member[key], hub[key], max(v.below(member, key), v.below(hub, key)))
	}
}

// lists compares entries of one name with each other, and where they have none, or share one, those in one position.
func (c *comparison) lists(path string, member, hub []any, v veil) {
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
		c.any(path+"/"+strconv.Itoa(i), there, entry, v.entry())
	}
	for i, entry := range member {
		if !done[i] { // an entry more is a change of the list, which the manifest says
			c.any(path+"/"+strconv.Itoa(i), entry, nil, v.entry())
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

// veil is what of a part of an object is not to be shown.
type veil int

const (
	shown veil = iota
	// annotationsHidden is for the metadata of what holds secrets: whoever applies such an object may keep all of it in an
	// annotation, in a form that is known to nobody else.
	annotationsHidden
	hidden
)

// below is the veil over what an object under a veil has under a key: over the contents of a Secret, on its own or within
// another object, and of a ConfigMap that envelops manifests.
func (v veil) below(object map[string]any, key string) veil {
	if v == hidden || (v == annotationsHidden && key == "annotations") {
		return hidden
	}
	if !holdsSecrets(object) {
		return shown
	}
	switch key {
	case "data", "stringData", "binaryData":
		return hidden
	case "metadata":
		return annotationsHidden
	}
	return shown
}

// entry is the veil over an entry of a list under a veil.
func (v veil) entry() veil {
	if v == hidden {
		return hidden
	}
	return shown
}

func holdsSecrets(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, enveloping := annotations[envelope]
	return object["kind"] == "Secret" || (object["kind"] == "ConfigMap" && enveloping)
}

// show is a value for a person: text as it is, anything else as JSON, not too long.
func show(value any, v veil) string {
	text, isText := value.(string)
	switch {
	case value == nil:
		return ""
	case v == hidden:
		return Redacted
	case isText:
		return placement.Cut(text, maxValue)
	}
	data, err := json.Marshal(redact(value, v))
	if err != nil {
		return placement.Cut(fmt.Sprint(reflect.TypeOf(value)), maxValue)
	}
	return placement.Cut(string(data), maxValue)
}

// redact is a value without what is not to be shown of it.
func redact(value any, v veil) any {
	switch part := value.(type) {
	case map[string]any:
		seen := make(map[string]any, len(part))
		for key, field := range part {
			switch below := v.below(part, key); {
			case key == lastApplied, key == Merged:
			case below == hidden:
				seen[key] = Redacted
			default:
				seen[key] = redact(field, below)
			}
		}
		return seen
	case []any:
		seen := make([]any, len(part))
		for i := range part {
			seen[i] = redact(part[i], v.entry())
		}
		return seen
	}
	return value
}
