// Package v1alpha1 holds the policy API: which objects of the hub go to which clusters, with how many replicas, and what is different
// there. Manifests that were written for ACK One are taken as they are.
//
// +kubebuilder:object:generate=true
// +groupName=policy.one.alibabacloud.com
package v1alpha1
