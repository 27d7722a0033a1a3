package policy

import "encoding/json"

// maxDescribed is how many bytes a description of objects may have: it stands in an annotation, and an object has 256 KB for all of
// its annotations.
const maxDescribed = 64 << 10

// Describe says of objects, as JSON, what selectors look at, in a text that can stand in an annotation. It is empty where the text would
// be too long, or where an object cannot be read: then the objects themselves have to be asked.
func Describe(contents [][]byte) string {
	objects, err := LookAll(contents)
	if err != nil {
		return ""
	}
	text, err := json.Marshal(objects)
	if err != nil || len(text) > maxDescribed {
		return ""
	}
	return string(text)
}

// LookAll reads of objects, as JSON, what selectors look at.
func LookAll(contents [][]byte) ([]Object, error) {
	objects := make([]Object, 0, len(contents))
	for _, raw := range contents {
		o, err := Look(raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// Described reads a description back. known is false where there is none that can be read.
func Described(text string) (objects []Object, known bool) {
	if text == "" {
		return nil, false
	}
	if err := json.Unmarshal([]byte(text), &objects); err != nil {
		return nil, false
	}
	return objects, true
}
