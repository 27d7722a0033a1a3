package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/snapshot"
)

// Failure is an override that cannot be applied to an object in a cluster. It says of which override, which rule, which
// object, which cluster and, where there is one, which path. It quotes no value.
type Failure struct {
	// Override describes the override, with the revision; Rule is the position of the rule in it.
	Override string
	Rule     int
	// Object describes the object, Cluster is the cluster's name.
	Object, Cluster string
	// Path is the path of the change, as it is written in the override.
	Path string
	// Problem is what is wrong, with what to do about it.
	Problem string
}

// Error says all of it.
func (f *Failure) Error() string {
	text := fmt.Sprintf("%s, rule %d, for %s in cluster %q", f.Override, f.Rule+1, f.Object, f.Cluster)
	if f.Path != "" {
		text += fmt.Sprintf(", path %q", f.Path)
	}
	return text + ": " + f.Problem
}

// Apply applies overrides to an object, in their order. left is false where one of them leaves the object out. An error is a
// *Failure.
func Apply(snapshots []placementv1.OverrideSnapshotObject, c Cluster, id placementv1.ResourceIdentifier, content []byte) (changed []byte, left bool, err error) {
	for _, s := range snapshots {
		if s.OverridePolicy() == nil || !Selects(s, id) {
			continue
		}
		for i := range s.OverridePolicy().OverrideRules {
			rule := &s.OverridePolicy().OverrideRules[i]
			if !covers(rule, c.Labels) {
				continue
			}
			if rule.OverrideType == placementv1.DeleteOverrideType {
				return nil, false, nil
			}
			var failure *Failure
			if content, failure = patch(rule.JSONPatchOverrides, c, content); failure != nil {
				failure.Override, failure.Rule = describe(s), i
				failure.Object, failure.Cluster = snapshot.Describe(id), c.Name
				return nil, false, failure
			}
		}
	}
	return content, true, nil
}

func describe(s placementv1.OverrideSnapshotObject) string {
	name, index := SplitName(s.GetName())
	if s.GetNamespace() == "" {
		return fmt.Sprintf("ClusterResourceOverride %s (snapshot %d)", name, index)
	}
	return fmt.Sprintf("ResourceOverride %s/%s (snapshot %d)", s.GetNamespace(), name, index)
}

// patch applies the changes of one rule.
func patch(changes []placementv1.JSONPatchOverride, c Cluster, content []byte) ([]byte, *Failure) {
	operations := make(jsonpatch.Patch, 0, len(changes))
	for i := range changes {
		op, err := operation(&changes[i], c)
		if err != nil {
			return nil, &Failure{Path: changes[i].Path, Problem: err.Error()}
		}
		operations = append(operations, op)
	}
	changed, err := operations.ApplyWithOptions(content, options())
	if err == nil {
		return changed, nil
	}
	// One by one, to tell which of them it was.
	for i := range operations {
		if content, err = operations[i:i+1].ApplyWithOptions(content, options()); err != nil {
			return nil, &Failure{Path: changes[i].Path, Problem: explain(&changes[i], err)}
		}
	}
	return content, nil
}

func options() *jsonpatch.ApplyOptions {
	o := jsonpatch.NewApplyOptions()
	o.SupportNegativeIndices, o.EscapeHTML = false, false
	return o
}

// explain says why a change cannot be applied, without the value of anything.
func explain(change *placementv1.JSONPatchOverride, err error) string {
	switch {
	case errors.Is(err, jsonpatch.ErrMissing) && change.Operator == placementv1.JSONPatchOverrideOpAdd:
		return "there is nothing in the object to add it to; add the parent of the path first, as an object or a list"
	case errors.Is(err, jsonpatch.ErrMissing):
		return fmt.Sprintf("there is nothing in the object to %s; correct the path, or use add", change.Operator)
	case errors.Is(err, jsonpatch.ErrInvalidIndex):
		return "the list in the object has no item of this index; count from 0, or add to the end with -"
	default:
		return "the path does not fit the object: it leads through something that is neither an object nor a list with this index"
	}
}

// operation is a change with its variables replaced.
func operation(change *placementv1.JSONPatchOverride, c Cluster) (jsonpatch.Operation, error) {
	path, err := expand(change.Path, c, escapePointer.Replace)
	if err != nil {
		return nil, err
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	op := jsonpatch.Operation{"op": rawString(string(change.Operator)), "path": rawString(path)}
	if change.Operator == placementv1.JSONPatchOverrideOpRemove {
		return op, nil
	}
	if change.Value == nil || len(change.Value.Raw) == 0 {
		return nil, fmt.Errorf("%s needs a value", change.Operator)
	}
	value, err := expandValue(change.Value.Raw, c)
	if err != nil {
		return nil, err
	}
	op["value"] = &value
	return op, nil
}

func rawString(text string) *json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic("encode a string: " + err.Error()) // which can be encoded
	}
	return (*json.RawMessage)(&raw)
}

// escapePointer writes a text as a part of a JSON pointer.
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// badEscape finds what is no escape of a JSON pointer.
var badEscape = regexp.MustCompile(`~([^01]|$)`)

// checkPath refuses paths that would make another object of an object, or say something that is not placed. What can be seen
// before variables are replaced is refused by the API already.
func checkPath(path string) error {
	parts := strings.Split(path, "/")
	if len(parts) < 2 || parts[0] != "" || path == "/" || badEscape.MatchString(path) {
		return errors.New("it is not a JSON pointer, such as /spec/replicas")
	}
	switch parts[1] {
	case "apiVersion", "kind":
		return fmt.Errorf("an override cannot change %s: that would make another object of it", parts[1])
	case "status":
		return errors.New("an override cannot change the status, which is not placed")
	case "metadata":
		if len(parts) < 3 || (parts[2] != "labels" && parts[2] != "annotations") {
			return errors.New("of the metadata an override can change labels and annotations alone")
		}
	}
	return nil
}

// variable finds what stands for something of the cluster: its name or, with a key, a label.
var variable = regexp.MustCompile(`\$\{MEMBER-CLUSTER-(?:NAME|LABEL-KEY-([A-Za-z0-9._/-]*))\}`)

// expand replaces the variables in a text. What stands for a variable is not looked at again.
func expand(text string, c Cluster, escape func(string) string) (string, error) {
	var missing error
	expanded := variable.ReplaceAllStringFunc(text, func(found string) string {
		if found == placementv1.OverrideClusterNameVariable {
			return escape(c.Name)
		}
		key := variable.FindStringSubmatch(found)[1]
		value, known := c.Labels[key]
		if !known && missing == nil {
			missing = fmt.Errorf("the cluster has no label %q; set it on the MemberCluster, or let the rule select only clusters that have it", key)
		}
		return escape(value)
	})
	return expanded, missing
}

// expandValue replaces the variables in all strings of a JSON value, keys included.
func expandValue(raw []byte, c Cluster) (json.RawMessage, error) {
	if !bytes.Contains(raw, []byte("${MEMBER-CLUSTER-")) {
		return raw, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errors.New("its value is not JSON")
	}
	value, err := expandAll(value, c)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, errors.New("its value cannot be written as JSON")
	}
	return text, nil
}

func expandAll(value any, c Cluster) (any, error) {
	switch v := value.(type) {
	case string:
		return expand(v, c, func(s string) string { return s })
	case []any:
		for i := range v {
			var err error
			if v[i], err = expandAll(v[i], c); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		expanded := make(map[string]any, len(v))
		for key, item := range v {
			newKey, err := expand(key, c, func(s string) string { return s })
			if err != nil {
				return nil, err
			}
			if expanded[newKey], err = expandAll(item, c); err != nil {
				return nil, err
			}
		}
		return expanded, nil
	}
	return value, nil
}
