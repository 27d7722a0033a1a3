// Package v1 holds the placement API: what is placed, where, and how a change travels.
//
// One Go type serves every version of a kind. Most kinds are stored as v1 and also served as v1beta1, from the same schema;
// those that the public system has in v1beta1 alone are v1beta1 alone here too. hack/tools/crdgen makes the versions, and has the list.
//
// +kubebuilder:object:generate=true
// +groupName=placement.kubernetes-fleet.io
package v1
