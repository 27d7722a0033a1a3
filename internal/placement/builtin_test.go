package placement_test

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
)

// TestOwnOfCluster names one object of each sort that every cluster has of its own, and beside it one that is a user's.
func TestOwnOfCluster(t *testing.T) {
	const kubernetes, fleet = "Kubernetes makes it", "part of Fleetwright"
	cases := map[string]string{
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: cluster-admin}}`:                                                           kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin}}`:                                                                   kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: edit}}`:                                                                    kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view}}`:                                                                    kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:node"}}`:                                                           kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: later, labels: {kubernetes.io/bootstrapping: rbac-defaults}}}`:             kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: viewer}}`:                                                                  "",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: fleetwright-agent}}`:                                                       fleet,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "fleetwright:member-certificates:a"}}`:                                     fleet,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: cluster-admin}}`:                                                    kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "system:node"}}`:                                                    kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: fleetwright-hub}}`:                                                  fleet,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: view}}`:                                                             "",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "system:controller:a", namespace: demo}}`:                                         kubernetes,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: view, namespace: demo}}`:                                                          "",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "system:a", namespace: demo}}`:                                             kubernetes,
		`{apiVersion: v1, kind: Namespace, metadata: {name: kube-node-lease}}`:                                                                                     kubernetes,
		`{apiVersion: v1, kind: Namespace, metadata: {name: fleetwright-system}}`:                                                                                  fleet,
		`{apiVersion: v1, kind: Namespace, metadata: {name: demo}}`:                                                                                                "",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: system-a, namespace: demo}}`:                                                                           "",
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.apps, labels: {kube-aggregator.kubernetes.io/automanaged: onstart}}}`:       kubernetes,
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.com, labels: {kube-aggregator.kubernetes.io/automanaged: "true"}}}`: kubernetes,
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1alpha1.gateway.fleetwright.io}}`:                                             fleet,
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1beta1.metrics.k8s.io}}`:                                                      "",
		`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: system-node-critical}}`:                                                          kubernetes,
		`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}}`:                                                                          "",
		`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: probes, annotations: {apf.kubernetes.io/autoupdate-spec: "false"}}}`:     kubernetes,
		`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: later, annotations: {apf.kubernetes.io/autoupdate-spec: "true"}}}`:       kubernetes,
		`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: mine, annotations: {apf.kubernetes.io/autoupdate-spec: "false"}}}`:       "",
		`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: workload-low}}`:                                          kubernetes,
		`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: mine}}`:                                                  "",
		`{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: kubernetes}}`:                                                                      kubernetes,
		`{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {name: "kubernetes.io:kube-apiserver-serving:a"}}`:                          kubernetes,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: fleetwright-guard-rails}}`:                                fleet,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: fleetwright-guard-rails-binding}}`:                 fleet,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: fleetwright-approver}}`:                                     fleet,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: fleetwright-approver-binding}}`:                      fleet,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: fleetwright-a}}`:                                       fleet,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: fleetwright-a}}`:                                     fleet,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: my-fleetwright-a}}`:                                       "",
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: works.placement.kubernetes-fleet.io}}`:                             fleet,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: memberclusters.cluster.kubernetes-fleet.io}}`:                      fleet,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: rollouts.rollouts.kruise.io}}`:                                     "",
	}
	for document, want := range cases {
		o := fromYAML(t, document)
		got := placement.OwnOfCluster(o.GroupVersionKind().GroupKind(), o)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", document, got, want)
		}
		if skips := (placement.Rules{}).Skips(o, func(string) bool { return false }); skips != (want != "") {
			t.Errorf("%s: skipped %t, want %t", document, skips, want != "")
		}
	}
}

// TestParseSelectorsOfBuiltIns: who asks by name for what is never selected is told why, rather than that there is none.
func TestParseSelectorsOfBuiltIns(t *testing.T) {
	p := &placementv1.ClusterResourcePlacement{}
	p.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "view"}}
	_, err := placement.ParseSelectors(p, placement.Rules{})
	want := `resourceSelectors[0] (rbac.authorization.k8s.io/v1 ClusterRole "view"): it is never placed, because Kubernetes makes it in every cluster`
	if !placement.IsUserError(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a UserError with %q", err, want)
	}
	p.Spec.ResourceSelectors[0].Name = "viewer"
	if _, err := placement.ParseSelectors(p, placement.Rules{}); err != nil {
		t.Errorf("another name: %v", err)
	}
	p.Spec.ResourceSelectors[0].Name = ""
	if _, err := placement.ParseSelectors(p, placement.Rules{}); err != nil {
		t.Errorf("all of the kind: %v", err)
	}
}
