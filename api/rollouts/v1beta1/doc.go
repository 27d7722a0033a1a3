// Package v1beta1 is what the fleet knows of Kruise Rollouts' API: as much of a Rollout as is needed to keep it on the hub, to tell how a
// release goes, and to check it before it is sent to members. Kruise's own definition there has the last word; what it knows and
// this one does not is kept as it is.
//
// +kubebuilder:object:generate=true
// +groupName=rollouts.kruise.io
package v1beta1
