package placement

import (
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Marks that an API server puts on what it makes for itself in every cluster.
const (
	markBootstrapping = "kubernetes.io/bootstrapping"
	markAutomanaged   = "kube-aggregator.kubernetes.io/automanaged"
)

// Why an object is its cluster's own; they follow the object's name.
const (
	madeByKubernetes = "Kubernetes makes it in every cluster, and a cluster that loses it breaks"
	madeByFleet      = "it is a part of Fleetwright itself"
)

// own tells, of the objects of one kind, which ones a cluster has of its own, by what every reader of an object sees.
type own struct {
	// names and prefixes are names, and beginnings of names, that Kubernetes uses.
	names, prefixes []string
	// fleet are beginnings of the names that this system uses, and fleetEnds their ends.
	fleet, fleetEnds []string
}

var (
	installed = []string{"fleetwright-", "fleetwright:"}
	// groupsOfTheHub are the API groups that no member gets its kinds of.
	groupsOfTheHub = []string{"." + placementv1.GroupVersion.Group, ".cluster.kubernetes-fleet.io", ".policy.one.alibabacloud.com", ".gateway.fleetwright.io"}
)

const (
	admissionGroup = "admissionregistration.k8s.io"
	roleGroup      = rbacv1.GroupName
	flowGroup      = flowcontrolv1.GroupName
)

var ownByKind = map[schema.GroupKind]own{
	NamespaceKind: {names: []string{"default", "kube-system", "kube-public", "kube-node-lease"}, fleet: installed},

	{Group: roleGroup, Kind: "ClusterRole"}:        {names: []string{"cluster-admin", "admin", "edit", "view"}, prefixes: []string{"system:"}, fleet: installed},
	{Group: roleGroup, Kind: "ClusterRoleBinding"}: {names: []string{"cluster-admin"}, prefixes: []string{"system:"}, fleet: installed},
	{Group: roleGroup, Kind: "Role"}:               {prefixes: []string{"system:"}},
	{Group: roleGroup, Kind: "RoleBinding"}:        {prefixes: []string{"system:"}},

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:        {prefixes: []string{"system-"}},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:          {names: []string{"kubernetes"}},
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}: {prefixes: []string{"kubernetes.io:"}},

	{Group: flowGroup, Kind: "FlowSchema"}: {names: []string{
		"exempt", "catch-all", "probes", "system-leader-election", "workload-leader-election", "endpoint-controller", "system-node-high", "system-nodes",
		"kube-controller-manager", "kube-scheduler", "kube-system-service-accounts", "service-accounts", "global-default",
	}},
	{Group: flowGroup, Kind: "PriorityLevelConfiguration"}: {names: []string{
		"exempt", "catch-all", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default",
	}},

	{Group: admissionGroup, Kind: "ValidatingAdmissionPolicy"}:        {fleet: installed},
	{Group: admissionGroup, Kind: "ValidatingAdmissionPolicyBinding"}: {fleet: installed},
	{Group: admissionGroup, Kind: "MutatingAdmissionPolicy"}:          {fleet: installed},
	{Group: admissionGroup, Kind: "MutatingAdmissionPolicyBinding"}:   {fleet: installed},
	{Group: admissionGroup, Kind: "ValidatingWebhookConfiguration"}:   {fleet: installed},
	{Group: admissionGroup, Kind: "MutatingWebhookConfiguration"}:     {fleet: installed},

	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {fleetEnds: groupsOfTheHub},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {fleetEnds: groupsOfTheHub},
}

// OwnOfCluster says why an object is one that every cluster has of its own: the hub's is placed nowhere, and a member's is
// never deleted. It is empty for all others. An object of which no more than the name is known is judged by that.
func OwnOfCluster(kind schema.GroupKind, object metav1.Object) string {
	name, o := object.GetName(), ownByKind[kind]
	starts := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	_, bootstrapping := object.GetLabels()[markBootstrapping]
	_, automanaged := object.GetLabels()[markAutomanaged]
	switch {
	case bootstrapping, automanaged && kind.Group == "apiregistration.k8s.io",
		kind.Group == flowGroup && object.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey] == "true",
		slices.Contains(o.names, name), slices.ContainsFunc(o.prefixes, starts):
		return madeByKubernetes
	case slices.ContainsFunc(o.fleet, starts), slices.ContainsFunc(o.fleetEnds, ends):
		return madeByFleet
	}
	return ""
}
