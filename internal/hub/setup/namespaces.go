package setup

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Namespaces are names of namespaces, as a flag that takes them with commas between.
type Namespaces []string

// Set is called by package flag, which adds the flag's name to an error.
func (n *Namespaces) Set(value string) error {
	var names Namespaces
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if name == "" && strings.TrimSpace(value) == "" {
			break
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", name, strings.Join(problems, "; "))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	*n = slices.Compact(names)
	return nil
}

func (n *Namespaces) String() string { return strings.Join(*n, ",") }
