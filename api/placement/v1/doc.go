// Package v1 holds the placement API: what is placed, where, and how a change travels.
//
// Every kind is stored as v1 and also served as v1beta1 from the same schema (hack/crdgen adds the second
// version), so one Go type serves both.
//
// +kubebuilder:object:generate=true
// +groupName=placement.kubernetes-fleet.io
package v1
