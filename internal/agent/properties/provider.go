package properties

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Report is what a provider knows of a cluster.
type Report struct {
	// Properties are named facts. A name is written like the key of a label.
	Properties map[string]string
	// Capacity and Allocatable are sums over all nodes; Available is Allocatable less what the pods on nodes request, never
	// below zero. A provider that knows nothing of resources leaves them nil.
	Capacity, Allocatable, Available corev1.ResourceList
}

// Provider finds out about a cluster. Another one than those here may know more, such as prices.
type Provider interface {
	// Name is what the provider looks at, for messages: "nodes and pods".
	Name() string
	// Run finds out until ctx ends. It says what it knows each time that there is news, and an error, with which the report
	// does not count, when it cannot find out any more. An error that it returns means that it could not begin or go on; it
	// is run again after a while. Whatever it does holds up nobody else.
	Run(ctx context.Context, say func(Report, error)) error
}
