package placement

import (
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NamespaceKind is the kind whose objects are placed with what is in them.
var NamespaceKind = schema.GroupKind{Kind: "Namespace"}

// Reasons why a kind is never placed; they end a sentence that begins with the kind.
const (
	ofOneCluster = "it says something about one cluster only"
	ofTheHub     = "it belongs to the hub"
)

// neverGroups are the API groups of which nothing is placed, with the reason.
var neverGroups = map[string]string{
	"events.k8s.io":                ofOneCluster,
	"coordination.k8s.io":          ofOneCluster,
	"metrics.k8s.io":               ofOneCluster,
	"custom.metrics.k8s.io":        ofOneCluster,
	"external.metrics.k8s.io":      ofOneCluster,
	"cluster.kubernetes-fleet.io":  ofTheHub,
	placementv1.GroupVersion.Group: ofTheHub,
	"policy.one.alibabacloud.com":  ofTheHub,
	"gateway.fleetwright.io":       ofTheHub,
}

// neverKinds are the kinds of other groups that are not placed, with the reason.
var neverKinds = map[schema.GroupKind]string{
	{Kind: "Pod"}:   "pods are made in the members, by what is placed there",
	{Kind: "Node"}:  ofOneCluster,
	{Kind: "Event"}: ofOneCluster,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:    ofOneCluster,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                      ofOneCluster,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                           ofOneCluster,
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:                ofOneCluster,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                  ofOneCluster,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                    ofOneCluster,
	{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}:         ofOneCluster,
	{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:         ofTheHub,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerProfile"}: ofTheHub,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerBackend"}: ofTheHub,
}

// NeverPlaced says why objects of a kind are not placed; empty for a kind that may be.
func NeverPlaced(kind schema.GroupKind) string {
	if IsEnvelope(kind) {
		return ""
	}
	if why := neverGroups[kind.Group]; why != "" {
		return why
	}
	return neverKinds[kind]
}

// NeverPlacedGroup says why nothing of an API group is placed; empty for a group of which something may be. It does not
// matter whether such a group can be read.
func NeverPlacedGroup(group string) string {
	if group == placementv1.GroupVersion.Group { // it has the envelopes
		return ""
	}
	return neverGroups[group]
}

// IsEnvelope tells whether a kind is one of envelopes, which are placed as what is in them.
func IsEnvelope(kind schema.GroupKind) bool {
	return kind.Group == placementv1.GroupVersion.Group &&
		(kind.Kind == string(placementv1.ClusterResourceEnvelopeType) || kind.Kind == string(placementv1.ResourceEnvelopeType))
}

// Rules are the rules of what may be placed that an operator can adjust.
type Rules struct {
	// SkippedNamespaces are never placed, besides those that Kubernetes, public systems and this one reserve.
	SkippedNamespaces []string
	// HubRunsWorkloads tells that the hub is an ordinary cluster: its PersistentVolumeClaims are then bound to its own
	// volumes, and are not placed.
	HubRunsWorkloads bool
}

// Reserved tells whether a namespace may not be placed.
func (r Rules) Reserved(namespace string) bool {
	return namespace == "default" || slices.Contains(r.SkippedNamespaces, namespace) ||
		slices.ContainsFunc([]string{"kube-", "fleet-", "fleetwright-"}, func(prefix string) bool {
			return strings.HasPrefix(namespace, prefix)
		})
}

// Skips tells whether an object of a kind that may be placed is left out all the same: it is being deleted, or every
// cluster makes its own. isService tells whether a Service of a name lives in the object's namespace.
func (r Rules) Skips(object *unstructured.Unstructured, isService func(name string) bool) bool {
	name, kind := object.GetName(), object.GroupVersionKind().GroupKind()
	if object.GetDeletionTimestamp() != nil || OwnOfCluster(kind, object) != "" {
		return true
	}
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}:
		return len(object.GetOwnerReferences()) > 0
	case schema.GroupKind{Kind: "ConfigMap"}:
		return name == "kube-root-ca.crt"
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return name == "default"
	case schema.GroupKind{Kind: "Secret"}:
		secretType, _, _ := unstructured.NestedString(object.Object, "type")
		return secretType == string(corev1.SecretTypeServiceAccountToken)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return r.HubRunsWorkloads
	case schema.GroupKind{Kind: "Endpoints"}:
		return isService(name)
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		_, managed := object.GetLabels()[discoveryv1.LabelManagedBy]
		return managed
	}
	return false
}
