package apply

import (
	"encoding/json"
	"strconv"
	"strings"
)

// What an API server says when it cannot read an object as its schema wants it. There is no other way to learn of it than
// these words: the errors have neither a reason nor causes.
const (
	sayUnknown   = ": field not declared in schema"
	sayDuplicate = "duplicate entries for key ["
	sayPrefix    = "): " // ends "failed to create typed patch object (NAMESPACE/NAME; VERSION, Kind=KIND): "
)

// unknownFields are the paths of the fields that the member's schema does not know, as its refusal names them.
func unknownFields(err error) []string {
	var paths []string
	for line := range strings.Lines(err.Error()) {
		line, unknown := strings.CutSuffix(strings.TrimSpace(line), sayUnknown)
		if !unknown {
			continue
		}
		if !strings.HasPrefix(line, ".") {
			if _, after, found := strings.Cut(line, sayPrefix); found {
				line = after
			}
		}
		if strings.HasPrefix(line, ".") {
			paths = append(paths, line)
		}
	}
	return paths
}

// hasDuplicates tells whether an apply was refused because a list has two entries with one key.
func hasDuplicates(err error) bool { return strings.Contains(err.Error(), sayDuplicate) }

// dropField removes the field at a path, such as .spec.containers[name="web"].fancy, and tells whether it was there.
func dropField(value any, path string) bool {
	switch v := value.(type) {
	case map[string]any:
		// A key may have dots in it: the longest one that fits is meant.
		best := ""
		for key := range v {
			if rest, fits := strings.CutPrefix(path, "."+key); fits && (rest == "" || rest[0] == '.' || rest[0] == '[') && len(key) > len(best) {
				best = key
			}
		}
		if best == "" {
			return false
		}
		rest := path[1+len(best):]
		if rest == "" {
			delete(v, best)
			return true
		}
		return dropField(v[best], rest)
	case []any:
		selector, rest, ok := cutSelector(path)
		if !ok || rest == "" {
			return false
		}
		if at, err := strconv.Atoi(selector); err == nil {
			return at >= 0 && at < len(v) && dropField(v[at], rest)
		}
		want := keysOf(selector)
		dropped := false
		for _, element := range v {
			if e, ok := element.(map[string]any); ok && want != nil && matches(e, want) {
				dropped = dropField(e, rest) || dropped
			}
		}
		return dropped
	}
	return false
}

// cutSelector splits [selector]rest. Brackets in quotes belong to the selector.
func cutSelector(path string) (selector, rest string, ok bool) {
	if !strings.HasPrefix(path, "[") {
		return "", "", false
	}
	quoted := false
	for i := 1; i < len(path); i++ {
		switch path[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ']':
			if !quoted {
				return path[1:i], path[i+1:], true
			}
		}
	}
	return "", "", false
}

// keysOf reads name="web",port=80; nil where it is something else.
func keysOf(selector string) map[string]any {
	keys := map[string]any{}
	for selector != "" {
		name, rest, found := strings.Cut(selector, "=")
		if !found || name == "" {
			return nil
		}
		decoder := json.NewDecoder(strings.NewReader(rest))
		var value any
		if decoder.Decode(&value) != nil {
			return nil
		}
		keys[name] = value
		selector = strings.TrimPrefix(rest[decoder.InputOffset():], ",")
	}
	return keys
}

// matches tells whether an element of a list has the keys. One that the element leaves out has been filled in by a default.
func matches(element map[string]any, keys map[string]any) bool {
	for key, want := range keys {
		switch got := element[key].(type) {
		case nil:
		case int64:
			if float, ok := want.(float64); !ok || float != float64(got) {
				return false
			}
		default:
			if got != want {
				return false
			}
		}
	}
	return true
}
