// Package v1alpha1 holds the part of Kubernetes' Cluster Inventory API (KEP 4322, by SIG Multicluster) that the hub writes:
// a ClusterProfile for each member, by which other tools find the clusters of the fleet.
//
// The API is not ours. The schema here takes whatever the published one takes in these fields.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
