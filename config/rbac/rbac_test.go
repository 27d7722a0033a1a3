// Package rbac_test asks a real API server what the roles in this folder allow.
package rbac_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	hubUser   = "system:serviceaccount:fleetwright-system:fleetwright-hub"
	agentUser = "system:serviceaccount:fleetwright-system:fleetwright-agent"
	placement = ".placement.kubernetes-fleet.io"
	cluster   = ".cluster.kubernetes-fleet.io"
)

var hub *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hub)) }

// install installs the roles of a folder, and binds each role for people to a user of its name.
func install(t *testing.T, config *rest.Config, folder string) client.Client {
	t.Helper()
	c := framework.Client(t, config)
	for _, object := range framework.Manifests(t, "config/rbac/"+folder) {
		if err := c.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("install %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	for _, role := range []string{"fleetwright-viewer", "fleetwright-approver", "fleetwright-editor"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role}},
		}
		if err := c.Create(t.Context(), binding); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("bind %s: %v", role, err)
		}
	}
	return c
}

// may asks whether a user may do the verb to the resource, such as "works/status.placement.kubernetes-fleet.io" or
// "signers.certificates.k8s.io=NAME".
func may(t *testing.T, c client.Client, user, verb, resource string) bool {
	t.Helper()
	resource, name, _ := strings.Cut(resource, "=")
	resource, apiGroup, _ := strings.Cut(resource, ".")
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: apiGroup, Resource: resource, Subresource: subresource, Name: name,
		},
	}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatalf("ask whether %s may %s %s: %v", user, verb, resource, err)
	}
	return review.Status.Allowed
}

func TestRights(t *testing.T) {
	c := install(t, hub, "hub")
	for user, tc := range map[string]struct{ allowed, denied map[string]string }{ // resource → verbs
		hubUser: {
			allowed: map[string]string{
				"secrets": "get list watch", "widgets.example.com": "get list watch",
				"clusterresourceplacements" + placement: "patch", "clusterresourceplacements/status" + placement: "update",
				"clusterresourcesnapshots" + placement: "create patch delete", "clusterresourcebindings" + placement: "create update delete",
				"works" + placement: "create update delete", "clusterapprovalrequests" + placement: "create delete",
				"clusterstagedupdateruns" + placement: "patch", "clusterstagedupdateruns/status" + placement: "update",
				"memberclusters" + cluster: "patch", "internalmemberclusters" + cluster: "create update delete",
				"namespaces": "create delete", "leases.coordination.k8s.io": "create", "leases.coordination.k8s.io=fleet-heartbeat": "update patch",
				"leases.coordination.k8s.io=fleetwright-hub": "update patch", "serviceaccounts": "create", "serviceaccounts=fleet-bootstrap": "update delete",
				"certificatesigningrequests/approval.certificates.k8s.io":         "update",
				"signers.certificates.k8s.io=kubernetes.io/kube-apiserver-client": "approve",
				"events": "create patch", "events.events.k8s.io": "create patch",
			},
			denied: map[string]string{
				"secrets": "create update delete", "pods": "create", "deployments.apps": "create update patch delete",
				"clusterresourceplacements" + placement: "create update delete", "clusterstagedupdatestrategies" + placement: "create update delete",
				"resourceplacements" + placement: "update", "clusterstagedupdateruns" + placement: "update", "stagedupdateruns" + placement: "update",
				"clusterresourcesnapshots" + placement: "update", "clusterschedulingpolicysnapshots" + placement: "update",
				"clusterapprovalrequests" + placement: "update", "approvalrequests" + placement: "update",
				"memberclusters" + cluster: "create update delete", "clusterroles.rbac.authorization.k8s.io": "escalate bind",
				"roles.rbac.authorization.k8s.io":                                         "escalate bind",
				"signers.certificates.k8s.io=kubernetes.io/kube-apiserver-client-kubelet": "approve",
				"serviceaccounts/token":                                                   "create", "users": "impersonate",
				"leases.coordination.k8s.io=kube-scheduler": "update patch delete", "serviceaccounts=default": "update patch delete",
			},
		},
		"fleetwright-viewer": {
			allowed: map[string]string{
				"clusterresourceplacements" + placement: "get list watch", "clusterstagedupdatestrategies" + placement: "get list watch",
				"clusterstagedupdateruns" + placement: "get list watch", "clusterapprovalrequests" + placement: "get list watch",
				"memberclusters" + cluster:                        "get list watch",
				"propagationpolicies.policy.one.alibabacloud.com": "get list watch", "objectplacements.policy.one.alibabacloud.com": "get list watch",
			},
			denied: map[string]string{
				"propagationpolicies.policy.one.alibabacloud.com": "create update", "overridepolicies.policy.one.alibabacloud.com": "get",
				"clusterresourceplacements" + placement: "create update patch delete", "clusterapprovalrequests/status" + placement: "update patch",
				"memberclusters" + cluster: "create update patch delete", "internalmemberclusters" + cluster: "get list watch", "secrets": "get list",
			},
		},
		"fleetwright-approver": {
			allowed: map[string]string{"clusterapprovalrequests" + placement: "get list watch", "clusterapprovalrequests/status" + placement: "update patch"},
			denied: map[string]string{
				"clusterapprovalrequests" + placement: "create update patch delete", "clusterstagedupdateruns" + placement: "create update patch delete",
				"clusterresourceplacements" + placement: "get update",
			},
		},
		"fleetwright-editor": {
			allowed: map[string]string{
				"clusterresourceplacements" + placement: "create update patch delete get", "clusterstagedupdatestrategies" + placement: "create update",
				"clusterstagedupdateruns" + placement: "create patch delete", "clusterapprovalrequests/status" + placement: "patch",
				"memberclusters" + cluster:                               "create update patch delete",
				"clusterpropagationpolicies.policy.one.alibabacloud.com": "create update patch delete",
			},
			denied: map[string]string{
				"objectplacements.policy.one.alibabacloud.com": "create update patch delete",
				"clusterresourceplacements/status" + placement: "update patch", "clusterstagedupdateruns/status" + placement: "update patch",
				"internalmemberclusters" + cluster: "get create update", "secrets": "get", "clusterroles.rbac.authorization.k8s.io": "create bind escalate",
			},
		},
	} {
		t.Run(user, func(t *testing.T) {
			compare(t, c, user, tc.allowed, true)
			compare(t, c, user, tc.denied, false)
		})
	}
}

func compare(t *testing.T, c client.Client, user string, rights map[string]string, want bool) {
	t.Helper()
	for resource, verbs := range rights {
		for verb := range strings.FieldsSeq(verbs) {
			if got := may(t, c, user, verb, resource); got != want {
				t.Errorf("may %s %s %s: %t, want %t", user, verb, resource, got, want)
			}
		}
	}
}

// copies hold copies of what is placed, Secrets included.
var copies = []string{"clusterresourcesnapshots", "clusterschedulingpolicysnapshots", "clusterresourcebindings", "works"}

// TestNobodyReadsCopies: no role for people, and none that is added to the built-in ones, reads snapshots, bindings or Works.
func TestNobodyReadsCopies(t *testing.T) {
	c := install(t, hub, "hub")
	for _, role := range []string{"fleetwright-viewer", "fleetwright-approver", "fleetwright-editor"} {
		for _, resource := range copies {
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				if may(t, c, role, verb, resource+placement) {
					t.Errorf("%s may %s %s", role, verb, resource)
				}
			}
		}
	}
	for _, object := range framework.Manifests(t, "config/rbac/hub") {
		if object.GetKind() != "ClusterRole" || strings.HasPrefix(object.GetName(), "fleetwright-hub") { // not for people
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			t.Fatalf("read %s: %v", object.GetName(), err)
		}
		if role.AggregationRule != nil {
			t.Errorf("%s gathers rules from other roles, which this test does not see", role.Name)
		}
		for _, rule := range role.Rules {
			if strings.Contains(strings.Join(append(rule.Resources, rule.APIGroups...), " "), "*") {
				t.Errorf("%s has a rule for everything: %v", role.Name, rule)
			}
		}
	}
}

// TestHubGivesOnlyWhatItHas: the hub can give agents their rights, and no others.
func TestHubGivesOnlyWhatItHas(t *testing.T) {
	admin := install(t, hub, "hub")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-member-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create a member's namespace: %v", err)
	}
	config := rest.CopyConfig(hub)
	config.Impersonate = rest.ImpersonationConfig{UserName: hubUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	c := framework.Client(t, config)
	for name, tc := range map[string]struct {
		group, resource, verb string
		named                 []string
		denied                bool
	}{
		"read works":              {group: "placement.kubernetes-fleet.io", resource: "works", verb: "watch"},
		"report on works":         {group: "placement.kubernetes-fleet.io", resource: "works/status", verb: "patch"},
		"report on the cluster":   {group: "cluster.kubernetes-fleet.io", resource: "internalmemberclusters/status", verb: "update"},
		"give a sign of life":     {group: "coordination.k8s.io", resource: "leases", verb: "update", named: []string{"fleet-heartbeat"}},
		"touch every lease":       {group: "coordination.k8s.io", resource: "leases", verb: "update", denied: true},
		"ask for a certificate":   {group: "certificates.k8s.io", resource: "certificatesigningrequests", verb: "create"},
		"tell of events":          {group: "events.k8s.io", resource: "events", verb: "create"},
		"write secrets":           {group: "", resource: "secrets", verb: "update", denied: true},
		"run pods":                {group: "", resource: "pods", verb: "create", denied: true},
		"speak in another's name": {group: "", resource: "users", verb: "impersonate", denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			role := &rbacv1.Role{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, GenerateName: "case-"},
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{tc.group}, Resources: []string{tc.resource}, Verbs: []string{tc.verb}, ResourceNames: tc.named}},
			}
			if err := c.Create(t.Context(), role); apierrors.IsForbidden(err) != tc.denied || (err != nil && !tc.denied) {
				t.Errorf("give the right to %s %s: %v, want it forbidden: %t", tc.verb, tc.resource, err, tc.denied)
			}
		})
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "all"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "anybody"}},
	}
	if err := c.Create(t.Context(), binding); !apierrors.IsForbidden(err) {
		t.Errorf("make somebody an administrator: %v, want it forbidden", err)
	}
}

func TestAgentInItsOwnCluster(t *testing.T) {
	c := install(t, framework.StartMemberAPIServer(t), "member")
	for _, right := range []string{"create deployments.apps", "escalate roles.rbac.authorization.k8s.io", "delete appliedworks" + placement, "patch widgets.example.com"} {
		verb, resource, _ := strings.Cut(right, " ")
		if !may(t, c, agentUser, verb, resource) {
			t.Errorf("the agent may not %s %s", verb, resource)
		}
	}
	if may(t, c, "system:serviceaccount:default:default", "get", "secrets") {
		t.Error("the rights of the agent are given to others as well")
	}
}

// TestHubWritesStatusesAlone: the role of statuses gathers those of the label, to which an administrator may add, and those that
// come with it write statuses and nothing else.
func TestHubWritesStatusesAlone(t *testing.T) {
	c := install(t, hub, "hub")
	gathering := &rbacv1.ClusterRole{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "fleetwright-hub-status"}, gathering); err != nil {
		t.Fatal(err)
	}
	label := map[string]string{placementv1.LabelAggregateToHubStatus: "true"}
	if r := gathering.AggregationRule; r == nil || len(r.ClusterRoleSelectors) != 1 || !maps.Equal(r.ClusterRoleSelectors[0].MatchLabels, label) {
		t.Errorf("it gathers %+v", r)
	}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "fleetwright-hub-status"}, binding); err != nil || binding.RoleRef.Name != gathering.Name || len(binding.Subjects) != 1 {
		t.Errorf("it is bound by %+v, error %v", binding, err)
	}
	var roles rbacv1.ClusterRoleList
	if err := c.List(t.Context(), &roles, client.MatchingLabels(label)); err != nil || len(roles.Items) != 1 {
		t.Fatalf("%d roles have the label, error %v", len(roles.Items), err)
	}
	for _, rule := range roles.Items[0].Rules {
		for _, resource := range rule.Resources {
			if !strings.HasSuffix(resource, "/status") || strings.Contains(resource, "*") || resource == "pods/status" || !slices.Equal(rule.Verbs, []string{"update"}) {
				t.Errorf("it may %v %s", rule.Verbs, resource)
			}
		}
	}
}
