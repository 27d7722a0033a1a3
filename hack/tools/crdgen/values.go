package main

import "strings"

const (
	// timePattern is what Go reads as a time. The format date-time, which the API server checks, also lets through what Go does
	// not read, such as lower-case letters and the 60th second; one such object would keep every client from listing its kind.
	timePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	// quantityPattern is what Go reads as a quantity, and no number so long that reading it is work. controller-gen's own lets
	// fractions of exponents through, and exponents of any size.
	quantityPattern = `^[+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// anyQuantity is how controller-gen's begins.
	anyQuantity = `^(\+|-)?((`
)

// tightenValues sees to it that every value at or below schema is one that Go can read.
func tightenValues(schema map[string]any) {
	if schema == nil {
		return
	}
	if schema["format"] == "date-time" {
		schema["pattern"] = timePattern
	}
	if pattern, _ := schema["pattern"].(string); schema["x-kubernetes-int-or-string"] == true && strings.HasPrefix(pattern, anyQuantity) {
		schema["pattern"] = quantityPattern
	}
	for _, property := range object(schema, "properties") {
		child, _ := property.(map[string]any)
		tightenValues(child)
	}
	tightenValues(object(schema, "items"))
	tightenValues(object(schema, "additionalProperties"))
}
