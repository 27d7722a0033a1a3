package apply

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// ownedPart is what of a value somebody owns, by the set of fields as an API server writes it down: "f:" begins the name of a field,
// "k:" the keys of a list's entry, "v:" the entry itself, "i:" its position, and "." is the value as such. A field with nothing below
// it is owned as a whole.
func ownedPart(value any, fields map[string]any) any {
	if len(fields) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for key, below := range fields {
			name, isField := strings.CutPrefix(key, "f:")
			if !isField {
				continue
			}
			if field, has := v[name]; has {
				deeper, _ := below.(map[string]any)
				part[name] = ownedPart(field, deeper)
			}
		}
		return part
	case []any:
		part := []any{}
		for i, entry := range v { // in the order of the list
			for key, below := range fields {
				if !selects(key, entry, i) {
					continue
				}
				deeper, _ := below.(map[string]any)
				kept := ownedPart(entry, deeper)
				addKeys(key, kept)
				part = append(part, kept)
			}
		}
		return part
	}
	return value
}

// selects tells whether an element of a set of fields stands for an entry of a list.
func selects(element string, entry any, position int) bool {
	kind, text, ok := strings.Cut(element, ":")
	if !ok {
		return false
	}
	switch kind {
	case "i":
		return text == strconv.Itoa(position)
	case "v":
		return sameJSON(text, entry)
	case "k":
		keys := map[string]any{}
		if json.Unmarshal([]byte(text), &keys) != nil {
			return false
		}
		fields, ok := entry.(map[string]any)
		if !ok {
			return false
		}
		for name, want := range keys {
			data, err := json.Marshal(want)
			if have, has := fields[name]; !has || err != nil || !sameJSON(string(data), have) {
				return false
			}
		}
		return true
	}
	return false
}

// addKeys puts into an entry of a list the keys by which it is told apart.
func addKeys(element string, entry any) {
	fields, ok := entry.(map[string]any)
	text, keyed := strings.CutPrefix(element, "k:")
	if !ok || !keyed {
		return
	}
	keys := map[string]any{}
	if json.Unmarshal([]byte(text), &keys) != nil {
		return
	}
	for name, value := range keys {
		if number, isNumber := value.(float64); isNumber && number == float64(int64(number)) {
			value = int64(number)
		}
		fields[name] = value
	}
}

// sameJSON tells whether a text is the JSON of a value.
func sameJSON(text string, value any) bool {
	var want any
	if json.Unmarshal([]byte(text), &want) != nil {
		return false
	}
	if number, ok := value.(int64); ok {
		value = float64(number)
	}
	return reflect.DeepEqual(want, value)
}
