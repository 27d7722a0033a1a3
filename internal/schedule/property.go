package schedule

import (
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resourcePrefix begins the names of properties that are about a resource; what follows is one of the three words, a dash and
// the resource's name, which may have dashes, dots and slashes of its own.
const resourcePrefix = "resources.kubernetes-fleet.io/"

// property is the name of a property, taken apart.
type property struct {
	name     string
	usage    func(*Cluster) corev1.ResourceList // nil for one that is no resource
	resource corev1.ResourceName
}

func parseProperty(name string) property {
	p := property{name: name}
	rest, isResource := strings.CutPrefix(name, resourcePrefix)
	kind, of, hasName := strings.Cut(rest, "-")
	if !isResource || !hasName || of == "" {
		return p
	}
	switch kind {
	case "total":
		p.usage = func(c *Cluster) corev1.ResourceList { return c.Usage.Capacity }
	case "allocatable":
		p.usage = func(c *Cluster) corev1.ResourceList { return c.Usage.Allocatable }
	case "available":
		p.usage = func(c *Cluster) corev1.ResourceList { return c.Usage.Available }
	}
	p.resource = corev1.ResourceName(of)
	return p
}

// of is the property of a cluster as text; found is false where the cluster does not report it.
func (p property) of(c *Cluster) (text string, found bool) {
	if p.usage == nil {
		value, found := c.Properties[p.name]
		return value.Value, found
	}
	q, found := p.usage(c)[p.resource]
	if !found {
		return "", false
	}
	return q.String(), true
}

// quantity is the property of a cluster; ok is false where the cluster does not report it, or reports no quantity.
func (p property) quantity(c *Cluster) (q resource.Quantity, ok bool) {
	if p.usage != nil {
		q, ok = p.usage(c)[p.resource]
		return q, ok
	}
	value, found := c.Properties[p.name]
	if !found {
		return q, false
	}
	q, err := resource.ParseQuantity(value.Value)
	return q, err == nil
}

// comparison is one requirement on a property.
type comparison struct {
	property
	operator placementv1.PropertySelectorOperator
	value    resource.Quantity
}

func (p *comparison) matches(c *Cluster) bool {
	q, ok := p.quantity(c)
	if !ok {
		return false
	}
	order := q.Cmp(p.value)
	switch p.operator {
	case placementv1.PropertyGreaterThan:
		return order > 0
	case placementv1.PropertyGreaterThanOrEqual:
		return order >= 0
	case placementv1.PropertyEqual:
		return order == 0
	case placementv1.PropertyNotEqual:
		return order != 0
	case placementv1.PropertyLessThan:
		return order < 0
	case placementv1.PropertyLessThanOrEqual:
		return order <= 0
	}
	return false
}
