package policy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// container is a container of an object, with the path that leads to it.
type container struct {
	path   string
	fields map[string]any
}

// containersOf finds the containers of a pod, of what makes pods from a template, and of a CronJob, those that run first included. Other
// objects have none.
func containersOf(content map[string]any) ([]container, *trouble) {
	path := []string{"spec", "template", "spec"}
	switch content["kind"] {
	case "Pod":
		path = path[:1]
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "PodTemplate":
		path = path[1:]
	}
	spec, found, err := unstructured.NestedFieldNoCopy(content, path...)
	pod, isPod := spec.(map[string]any)
	if err != nil || !found || !isPod {
		return nil, nil
	}
	var all []container
	for _, list := range []string{"initContainers", "containers"} {
		items, isList := pod[list].([]any)
		if pod[list] != nil && !isList {
			return nil, wrong("/"+strings.Join(path, "/")+"/"+list, "what is there is no list of containers")
		}
		for i := range items {
			at := fmt.Sprintf("/%s/%s/%d", strings.Join(path, "/"), list, i)
			fields, ok := items[i].(map[string]any)
			if !ok {
				return nil, wrong(at, "what is there is no container")
			}
			all = append(all, container{path: at, fields: fields})
		}
	}
	return all, nil
}

// changeItems adds to the command or the arguments of a container, or takes from them. An object that has no such container stays as it is:
// a policy may be for many objects.
func changeItems(o *policyv1alpha1.CommandArgsOverrider, field string, content map[string]any) *trouble {
	if len(o.Value) == 0 {
		return wrong("", "value is needed: what to %s", o.Operator)
	}
	containers, problem := containersOf(content)
	if problem != nil {
		return problem
	}
	for _, c := range containers {
		if c.fields["name"] != o.ContainerName {
			continue
		}
		items, isList := c.fields[field].([]any)
		if c.fields[field] != nil && !isList {
			return wrong(c.path+"/"+field, "what is there is no list")
		}
		switch o.Operator {
		case policyv1alpha1.OverrideAdd:
			for _, v := range o.Value {
				items = append(items, v)
			}
		case policyv1alpha1.OverrideRemove:
			items = slices.DeleteFunc(items, func(item any) bool {
				text, isText := item.(string)
				return isText && slices.Contains(o.Value, text)
			})
		default:
			return wrong(c.path+"/"+field, "operator is %q; it can be add or remove", o.Operator)
		}
		if c.fields[field] = items; len(items) == 0 {
			delete(c.fields, field)
		}
	}
	return nil
}

// changeEntries changes labels or annotations.
func changeEntries(o *policyv1alpha1.LabelAnnotationOverrider, field string, content map[string]any) *trouble {
	path := "/metadata/" + field
	if len(o.Value) == 0 {
		return wrong(path, "value is needed: the %s to %s", field, o.Operator)
	}
	entries, _, err := unstructured.NestedStringMap(content, "metadata", field)
	if err != nil {
		return wrong(path, "what is there is no list of keys with texts")
	}
	if entries == nil {
		entries = map[string]string{}
	}
	for key, value := range o.Value {
		_, there := entries[key]
		switch o.Operator {
		case policyv1alpha1.OverrideRemove:
			delete(entries, key)
			continue
		case policyv1alpha1.OverrideReplace:
			if !there {
				continue
			}
		case policyv1alpha1.OverrideAdd:
		default:
			return wrong(path, "operator is %q; it can be add, replace or remove", o.Operator)
		}
		mistakes := validation.IsQualifiedName(strings.ToLower(key))
		if field == "labels" {
			mistakes = append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		}
		if len(mistakes) > 0 {
			return wrong(path+"/"+escape.Replace(key), "value has what can be none of %s: %s", field, mistakes[0])
		}
		entries[key] = value
	}
	if len(entries) == 0 {
		unstructured.RemoveNestedField(content, "metadata", field)
		return nil
	}
	if err := unstructured.SetNestedStringMap(content, entries, "metadata", field); err != nil {
		return wrong("/metadata", "what is there are no fields")
	}
	return nil
}

// changeText changes what is in a text of the object.
func changeText(o *policyv1alpha1.FieldOverrider, content map[string]any) *trouble {
	value, set, problem := find(content, string(o.FieldPath))
	if problem != nil {
		return problem
	}
	text, isText := value.(string)
	switch {
	case !isText:
		return wrong(string(o.FieldPath), "what is there is no text; correct fieldPath, or use plaintext")
	case (len(o.JSON) > 0) == (len(o.YAML) > 0):
		return wrong(string(o.FieldPath), "give either json or yaml, with what to change: the text is one of them")
	}
	patches, language, document := o.JSON, "json", []byte(text)
	if len(o.YAML) > 0 {
		patches, language = o.YAML, "yaml"
		if document, problem = readYAML(string(o.FieldPath), text); problem != nil {
			return problem
		}
	}
	if !json.Valid(document) {
		return wrong(string(o.FieldPath), "the text is not JSON; correct it, or use yaml")
	}
	for i := range patches {
		f := &patches[i]
		var mistake string
		if document, mistake = patch(document, f.SubPath, f.Operator, f.Value); mistake != "" {
			return wrong(string(o.FieldPath), "%s[%d], subPath %q: %s", language, i, f.SubPath, mistake)
		}
	}
	if language == "yaml" {
		var err error
		if document, err = yaml.JSONToYAML(document); err != nil {
			return wrong(string(o.FieldPath), "the text cannot be written as YAML with its changes")
		}
	}
	set(string(document))
	return nil
}

// readYAML reads a text that is one YAML document, as JSON.
func readYAML(path, text string) ([]byte, *trouble) {
	documents := yamlreader.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var only []byte
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wrong(path, "the text is not YAML")
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if only != nil {
			return nil, wrong(path, "the text is more than one YAML document, of which none can be changed; put them into fields of their own")
		}
		only = document
	}
	read, err := yaml.YAMLToJSON(only)
	if err != nil {
		return nil, wrong(path, "the text is not YAML")
	}
	return read, nil
}

// changeField changes any field.
func changeField(o *policyv1alpha1.PlaintextOverrider, content map[string]any) (map[string]any, *trouble) {
	document, err := json.Marshal(content)
	if err != nil {
		return nil, wrong(string(o.Path), "the object cannot be written")
	}
	document, mistake := patch(document, string(o.Path), o.Operator, o.Value)
	if mistake != "" {
		return nil, wrong(string(o.Path), "%s", mistake)
	}
	var changed map[string]any
	if err := utiljson.Unmarshal(document, &changed); err != nil || changed == nil {
		return nil, wrong(string(o.Path), "value makes no object of it that can be read")
	}
	return changed, nil
}

// patch makes one change of a JSON document. What is wrong it says without the value of anything.
func patch(document []byte, path string, operator policyv1alpha1.OverriderOperator, value *apiextensionsv1.JSON) (changed []byte, mistake string) {
	given := value != nil && len(value.Raw) > 0
	known := []policyv1alpha1.OverriderOperator{policyv1alpha1.OverrideAdd, policyv1alpha1.OverrideRemove, policyv1alpha1.OverrideReplace}
	switch {
	case !slices.Contains(known, operator):
		return nil, fmt.Sprintf("operator is %q; it can be add, replace or remove", operator)
	case operator == policyv1alpha1.OverrideRemove && given:
		return nil, "value is given to remove; take it off, or use replace"
	case operator != policyv1alpha1.OverrideRemove && !given:
		return nil, fmt.Sprintf("value is needed to %s", operator)
	case given && !json.Valid(value.Raw):
		return nil, "value is not JSON"
	case !isPointer(path):
		return nil, "it is not a JSON pointer, such as /spec/replicas"
	}
	if first := bytes.TrimSpace(document); len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return nil, "there is neither an object nor a list, of which alone something can be changed"
	}
	op := jsonpatch.Operation{"op": raw(string(operator)), "path": raw(path)}
	if given {
		op["value"] = (*json.RawMessage)(&value.Raw)
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices, options.EscapeHTML = false, false
	changed, err := jsonpatch.Patch{op}.ApplyWithOptions(document, options)
	switch {
	case err == nil:
		return changed, ""
	case errors.Is(err, jsonpatch.ErrMissing) && operator == policyv1alpha1.OverrideAdd:
		return nil, "there is nothing to add it to; add the parent of the path first, as an object or a list"
	case errors.Is(err, jsonpatch.ErrMissing):
		return nil, fmt.Sprintf("there is nothing to %s; correct the path, or use add", operator)
	case errors.Is(err, jsonpatch.ErrInvalidIndex):
		return nil, "the list has no item of this index; count from 0, or add to the end with -"
	default:
		return nil, "the path leads through something that is neither an object nor a list with this index"
	}
}

func raw(text string) *json.RawMessage {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic("encode a string: " + err.Error()) // which can be encoded
	}
	return (*json.RawMessage)(&encoded)
}

var (
	// unescape reads, and escape writes, a text as a part of a JSON pointer.
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	// escapes are what a tilde begins.
	escapes = strings.NewReplacer("~0", "", "~1", "")
)

// isPointer tells whether a text is a JSON pointer to a part of a document.
func isPointer(path string) bool {
	return strings.HasPrefix(path, "/") && path != "/" && !strings.Contains(escapes.Replace(path), "~")
}

// find returns what a JSON pointer leads to, and what puts something else there.
func find(content map[string]any, path string) (value any, set func(any), problem *trouble) {
	if !isPointer(path) {
		return nil, nil, wrong(path, "it is not a JSON pointer, such as /data/config.yaml")
	}
	value = content
	for _, part := range strings.Split(path[1:], "/") {
		key := unescape.Replace(part)
		switch parent := value.(type) {
		case map[string]any:
			var there bool
			if value, there = parent[key]; !there {
				return nil, nil, wrong(path, "the object has no such field; correct the path")
			}
			set = func(v any) { parent[key] = v }
		case []any:
			i, err := strconv.ParseUint(key, 10, 31)
			if err != nil || i >= uint64(len(parent)) || key != strconv.FormatUint(i, 10) {
				return nil, nil, wrong(path, "the list in the object has no item of this index; count from 0")
			}
			value, set = parent[i], func(v any) { parent[i] = v }
		default:
			return nil, nil, wrong(path, "the path leads through something that is neither an object nor a list")
		}
	}
	return value, set, nil
}
