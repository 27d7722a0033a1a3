package policy

import (
	"fmt"
	"strings"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Failure is a policy that cannot be applied to an object in a cluster. It quotes no value.
type Failure struct {
	// Policy, Object and Cluster name what it is about.
	Policy, Object, Cluster string
	// Overrider is where the change stands in the policy, such as spec.overrideRules[0].overriders.plaintext[1]; empty where it
	// is about the policy as a whole.
	Overrider string
	// Path leads to the field in the object, where there is one.
	Path string
	// Problem is what is wrong, with what to do about it.
	Problem string
}

// Error says all of it.
func (f *Failure) Error() string {
	text := f.Policy
	if f.Overrider != "" {
		text += ", " + f.Overrider
	}
	text += fmt.Sprintf(", for %s in cluster %q", f.Object, f.Cluster)
	if f.Path != "" {
		text += fmt.Sprintf(", path %q", f.Path)
	}
	return text + ": " + f.Problem
}

// trouble is what is wrong with one change.
type trouble struct{ path, problem string }

func wrong(path, format string, args ...any) *trouble {
	return &trouble{path: path, problem: fmt.Sprintf(format, args...)}
}

// Apply changes an object, as JSON, as the policies say, and leaves the JSON that it was given as it is. An error is a *Failure: the
// object is not to be brought into the cluster then, since nobody can tell what of it would be wrong there.
func (s *Set) Apply(raw []byte) ([]byte, error) {
	o, err := Look(raw)
	if err != nil {
		return nil, &Failure{Policy: s.policies[0].String(), Object: "an object", Cluster: s.cluster, Problem: err.Error()}
	}
	policies, failure := s.order(&o)
	if failure == nil && len(policies) == 0 {
		return raw, nil
	}
	var content map[string]any
	if failure == nil {
		if err := json.Unmarshal(raw, &content); err != nil || content == nil {
			failure = &Failure{Policy: policies[0].String(), Problem: "the object cannot be read"}
		}
	}
	for i := 0; failure == nil && i < len(policies); i++ {
		content, failure = policies[i].apply(content)
	}
	if failure != nil {
		failure.Object, failure.Cluster = o.String(), s.cluster
		return nil, failure
	}
	changed, err := json.Marshal(content)
	if err != nil {
		return nil, &Failure{Policy: policies[0].String(), Object: o.String(), Cluster: s.cluster, Problem: "the object cannot be written with its changes"}
	}
	return changed, nil
}

// change is one overrider.
type change struct {
	at    string // its field in the overriders
	apply func(map[string]any) (map[string]any, *trouble)
}

// apply applies the rules that are for the cluster, in their order.
func (p *inForce) apply(content map[string]any) (map[string]any, *Failure) {
	for _, r := range p.rules {
		if r.unclear != nil {
			return nil, &Failure{Policy: p.String(), Problem: r.unclear.Error()}
		}
		at := "spec.overriders"
		if p.Spec.Overriders == nil {
			at = fmt.Sprintf("spec.overrideRules[%d].overriders", r.index)
		}
		for _, c := range changes(&r.Overriders) {
			before := identity(content)
			changed, problem := c.apply(content)
			if problem == nil {
				problem = compare(before, changed)
			}
			if problem != nil {
				return nil, &Failure{Policy: p.String(), Overrider: at + "." + c.at, Path: problem.path, Problem: problem.problem}
			}
			content = changed
		}
	}
	return content, nil
}

// changes lists overriders in the order in which they are applied.
func changes(o *policyv1alpha1.Overriders) []change {
	var all []change
	add := func(list string, n int, apply func(i int, content map[string]any) (map[string]any, *trouble)) {
		for i := range n {
			all = append(all, change{at: fmt.Sprintf("%s[%d]", list, i), apply: func(content map[string]any) (map[string]any, *trouble) { return apply(i, content) }})
		}
	}
	inPlace := func(apply func(i int, content map[string]any) *trouble) func(int, map[string]any) (map[string]any, *trouble) {
		return func(i int, content map[string]any) (map[string]any, *trouble) { return content, apply(i, content) }
	}
	add("imageOverrider", len(o.ImageOverrider), inPlace(func(i int, content map[string]any) *trouble {
		return changeImages(&o.ImageOverrider[i], content)
	}))
	add("commandOverrider", len(o.CommandOverrider), inPlace(func(i int, content map[string]any) *trouble {
		return changeItems(&o.CommandOverrider[i], "command", content)
	}))
	add("argsOverrider", len(o.ArgsOverrider), inPlace(func(i int, content map[string]any) *trouble {
		return changeItems(&o.ArgsOverrider[i], "args", content)
	}))
	add("labelsOverrider", len(o.LabelsOverrider), inPlace(func(i int, content map[string]any) *trouble {
		return changeEntries(&o.LabelsOverrider[i], "labels", content)
	}))
	add("annotationsOverrider", len(o.AnnotationsOverrider), inPlace(func(i int, content map[string]any) *trouble {
		return changeEntries(&o.AnnotationsOverrider[i], "annotations", content)
	}))
	add("fieldOverrider", len(o.FieldOverrider), inPlace(func(i int, content map[string]any) *trouble {
		return changeText(&o.FieldOverrider[i], content)
	}))
	add("plaintext", len(o.Plaintext), func(i int, content map[string]any) (map[string]any, *trouble) {
		return changeField(&o.Plaintext[i], content)
	})
	return all
}

// identity is a copy of what says which object it is, and of what is not placed.
func identity(content map[string]any) map[string]any {
	kept := map[string]any{"apiVersion": content["apiVersion"], "kind": content["kind"], "status": content["status"]}
	of, _ := content["metadata"].(map[string]any)
	metadata := map[string]any{}
	for key, value := range of {
		if key != "labels" && key != "annotations" {
			metadata[key] = value
		}
	}
	kept["metadata"] = metadata
	return runtime.DeepCopyJSON(kept)
}

// compare tells whether an object is still the one that it was.
func compare(before, content map[string]any) *trouble {
	after := identity(content)
	for _, key := range []string{"apiVersion", "kind"} {
		if !equality.Semantic.DeepEqual(before[key], after[key]) {
			return wrong("/"+key, "an override cannot change %s: that would make another object of it", key)
		}
	}
	if !equality.Semantic.DeepEqual(before["metadata"], after["metadata"]) {
		return wrong("/metadata", "of the metadata an override can change labels and annotations alone: a change of name or namespace would make another object of it, and no other field is placed")
	}
	if !equality.Semantic.DeepEqual(before["status"], after["status"]) {
		return wrong("/status", "an override cannot change the status, which is not placed")
	}
	for _, key := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(content, "metadata", key); err != nil {
			return wrong("/metadata/"+key, "%s are keys with texts, and would be something else", key)
		}
	}
	for key := range content {
		for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
			if key != field && strings.EqualFold(key, field) { // some readers would take it for the other
				return wrong("/"+key, "an object has no such field, but %s; correct the path", field)
			}
		}
	}
	return nil
}
