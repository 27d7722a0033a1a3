package placement

import (
	"cmp"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// applyOrder is the order in which kinds are applied: what others need comes before what needs it.
var applyOrder = []schema.GroupKind{
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "", Kind: "Namespace"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Group: "", Kind: "ResourceQuota"},
	{Group: "", Kind: "LimitRange"},
	{Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: "", Kind: "ServiceAccount"},
	{Group: "", Kind: "Secret"},
	{Group: "", Kind: "ConfigMap"},
	{Group: "storage.k8s.io", Kind: "StorageClass"},
	{Group: "", Kind: "PersistentVolume"},
	{Group: "", Kind: "PersistentVolumeClaim"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "", Kind: "Service"},
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "", Kind: "Pod"},
	{Group: "", Kind: "ReplicationController"},
	{Group: "apps", Kind: "ReplicaSet"},
	{Group: "apps", Kind: "Deployment"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "batch", Kind: "Job"},
	{Group: "batch", Kind: "CronJob"},
	{Group: "networking.k8s.io", Kind: "IngressClass"},
	{Group: "networking.k8s.io", Kind: "Ingress"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
}

var kindRanks = func() map[schema.GroupKind]int {
	ranks := make(map[schema.GroupKind]int, len(applyOrder))
	for i, kind := range applyOrder {
		ranks[kind] = i
	}
	return ranks
}()

// KindRank is the position of a kind in the order in which objects are applied. All kinds without a fixed place share
// the last one.
func KindRank(kind schema.GroupKind) int {
	if rank, known := kindRanks[kind]; known {
		return rank
	}
	return len(applyOrder)
}

// CompareIdentifiers orders objects as they are applied: by the rank of their kinds, kinds without a fixed place by
// group, version and kind, and objects of one kind by namespace and name.
func CompareIdentifiers(a, b placementv1.ResourceIdentifier) int {
	return cmp.Or(
		cmp.Compare(KindRank(schema.GroupKind{Group: a.Group, Kind: a.Kind}), KindRank(schema.GroupKind{Group: b.Group, Kind: b.Kind})),
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Version, b.Version),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}
