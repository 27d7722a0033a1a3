package main

const (
	// The limits keep the rules below within the cost that an API server allows for one definition.
	maxRequirements = 20
	// nestedRequirements is maxRequirements for selectors of which there may be more than manySelectors in one object.
	nestedRequirements = 10
	manySelectors      = 100
	maxValues          = 100
	maxKeyLength       = 317 // a domain of 253 characters, a slash, and a name of 63
	maxValueLength     = 63
	// labelValue is a pattern, whose refusal names no remedy: a rule that does would be beyond that cost.
	labelValue = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
)

// tightenSelectors gives every label selector at or below schema the rules that Kubernetes checks for one, so that a wrong
// selector is refused when it is written, and not found later by a controller that cannot use it.
func tightenSelectors(schema map[string]any) { tightenEach(schema, 1) }

// tightenEach does so where a schema may occur a number of times in one object.
func tightenEach(schema map[string]any, times float64) {
	if schema == nil {
		return
	}
	properties := object(schema, "properties")
	if properties["matchLabels"] != nil && properties["matchExpressions"] != nil {
		limit := maxRequirements
		if times > manySelectors {
			limit = nestedRequirements
		}
		tightenLabels(object(properties, "matchLabels"), limit)
		tightenExpressions(object(properties, "matchExpressions"), limit)
		return
	}
	for _, property := range properties {
		child, _ := property.(map[string]any)
		tightenEach(child, times)
	}
	inList := times
	if most, ok := schema["maxItems"].(float64); ok {
		inList *= most
	}
	tightenEach(object(schema, "items"), inList)
	tightenEach(object(schema, "additionalProperties"), times)
}

func tightenLabels(labels map[string]any, limit int) {
	labels["maxProperties"] = limit
	value := object(labels, "additionalProperties")
	value["maxLength"], value["pattern"] = maxValueLength, labelValue
	labels["x-kubernetes-validations"] = []any{map[string]any{
		"rule":    "self.all(key, !format.qualifiedName().validate(key).hasValue())",
		"message": "each key of matchLabels must be a label key, such as environment or example.com/environment",
	}}
}

func tightenExpressions(expressions map[string]any, limit int) {
	expressions["maxItems"] = limit
	requirement := object(expressions, "items")
	properties := object(requirement, "properties")
	object(properties, "operator")["enum"] = []any{"In", "NotIn", "Exists", "DoesNotExist"}
	key := object(properties, "key")
	key["minLength"], key["maxLength"] = 1, maxKeyLength
	values := object(properties, "values")
	values["maxItems"] = maxValues
	value := object(values, "items")
	value["maxLength"], value["pattern"] = maxValueLength, labelValue
	requirement["x-kubernetes-validations"] = []any{
		map[string]any{
			"rule":    "!format.qualifiedName().validate(self.key).hasValue()",
			"message": "key must be a label key, such as environment or example.com/environment",
		},
		map[string]any{
			"rule":    "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
			"message": "values must be given for the operators In and NotIn, and left out for Exists and DoesNotExist",
		},
	}
}
