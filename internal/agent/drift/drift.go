// Package drift tells, from objects alone, whether what was applied has been changed since, and where.
package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// Whole is the path of a whole object.
	Whole = "/"
	// Merged is the annotation that marks an object which could not be applied on the server's side and was merged.
	Merged = "kubernetes-fleet.io/last-applied-configuration"
	// maxPaths is how many changed places are named at the most.
	maxPaths = 100
)

// bookkeeping is what API servers write into metadata on their own account.
var bookkeeping = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

// Fingerprint stands for what a field manager has applied to an object. While it stays the same, the object carries all
// that was applied: whoever changes a field takes it from its manager, and the API server writes that down in the object.
// Fields of others do not count, so that their changes are no reason to apply again. An object that the manager has not
// applied on the server's side stands for its whole content. So does one that was merged, even if it was applied before:
// what it was applied with then says nothing of what was merged since.
func Fingerprint(object *unstructured.Unstructured, manager string) string {
	if _, merged := object.GetAnnotations()[Merged]; merged {
		return hash(map[string]any{"uid": string(object.GetUID()), "content": content(object.Object)})
	}
	entries, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	for _, entry := range list {
		e, _ := entry.(map[string]any)
		if e["manager"] == manager && e["operation"] == "Apply" && (e["subresource"] == nil || e["subresource"] == "") {
			return hash(map[string]any{"uid": string(object.GetUID()), "fields": e["fieldsV1"], "time": e["time"]})
		}
	}
	return hash(map[string]any{"uid": string(object.GetUID()), "content": content(object.Object)})
}

// content is an object without its status and without what API servers write on their own account.
func content(object map[string]any) map[string]any {
	c := maps.Clone(object)
	delete(c, "status")
	if metadata, ok := c["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range bookkeeping {
			delete(metadata, field)
		}
		c["metadata"] = metadata
	}
	return c
}

func hash(v map[string]any) string {
	data, err := json.Marshal(v) // sorts keys
	if err != nil {
		return "" // equals no fingerprint of a real object: it is applied once more
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Paths are the places in which two states of an object differ, as JSON pointers, without values. Nothing that was there
// before is the whole object, "/".
func Paths(before, after *unstructured.Unstructured) []string {
	if before == nil || before.GetUID() != after.GetUID() {
		return []string{Whole}
	}
	var paths []string
	compare("", content(before.Object), content(after.Object), &paths)
	slices.Sort(paths)
	return paths
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func compare(path string, a, b any, paths *[]string) {
	if len(*paths) >= maxPaths || reflect.DeepEqual(a, b) {
		return
	}
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			keys := slices.Collect(maps.Keys(x))
			for key := range y {
				if _, both := x[key]; !both {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				compare(path+"/"+escape.Replace(key), x[key], y[key], paths)
			}
			return
		}
	}
	if x, ok := a.([]any); ok {
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				compare(path+"/"+strconv.Itoa(i), x[i], y[i], paths)
			}
			return
		}
	}
	*paths = append(*paths, path)
}
