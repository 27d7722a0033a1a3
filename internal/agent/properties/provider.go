package properties

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Report is what is known of a cluster.
type Report struct {
	// Properties are named facts.
	Properties map[string]string
	// Capacity and Allocatable are sums over all nodes; Available is Allocatable less what the pods on nodes request, never
	// below zero.
	Capacity, Allocatable, Available corev1.ResourceList
}

// Provider finds out about a cluster. Another one may know more, such as prices.
type Provider interface {
	// Start watches until ctx ends, and calls changed when there is something new.
	Start(ctx context.Context, changed func()) error
	// Report returns what is known, and false while that is nothing yet.
	Report() (Report, bool)
}
