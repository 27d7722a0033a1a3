package placement

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// ObjectName names an object for a person, such as ConfigMap shop/settings.
func ObjectName(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// Owner names the placement that a Work with such labels is of, for a person; empty where they name none.
func Owner(labels map[string]string) string {
	name, namespace := labels[placementv1.LabelParentPlacement], labels[placementv1.LabelParentNamespace]
	switch {
	case name == "":
		return ""
	case namespace != "":
		return fmt.Sprintf("ResourcePlacement %q", namespace+"/"+name)
	default:
		return fmt.Sprintf("ClusterResourcePlacement %q", name)
	}
}

// maxQuote is how many bytes are kept of a text that a member wrote, so that what quotes it stays within its budget.
const maxQuote = 1024

// Quote shortens a text that comes from a member, between two characters, if it is longer than what is kept of such.
func Quote(text string) string { return Cut(text, maxQuote) }
