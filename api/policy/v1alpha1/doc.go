// Package v1alpha1 holds the policy API.
//
// +kubebuilder:object:generate=true
// +groupName=policy.one.alibabacloud.com
package v1alpha1
