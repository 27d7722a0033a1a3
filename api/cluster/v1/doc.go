// Package v1 holds the membership API: the clusters of the fleet.
//
// Every kind is stored as v1 and also served as v1beta1 from the same schema.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.kubernetes-fleet.io
package v1
