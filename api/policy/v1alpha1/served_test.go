package v1alpha1_test

import (
	"fmt"
	"testing"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	placedObject        = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: ObjectPlacement\nmetadata: {namespace: default}\n"
	clusterPlacedObject = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: ClusterObjectPlacement\n"
	theResource         = "resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}, "
)

// TestServedKinds looks at what `kubectl api-resources` shows.
func TestServedKinds(t *testing.T) {
	ours := []string{"fleet", "fleet-policy"}
	want := map[string]apitest.Served{
		"propagationpolicies":        {Kind: "PropagationPolicy", Namespaced: true, ShortNames: []string{"pp"}, Categories: ours, Status: true},
		"clusterpropagationpolicies": {Kind: "ClusterPropagationPolicy", ShortNames: []string{"cpp"}, Categories: ours, Status: true},
		"overridepolicies":           {Kind: "OverridePolicy", Namespaced: true, ShortNames: []string{"op"}, Categories: ours},
		"clusteroverridepolicies":    {Kind: "ClusterOverridePolicy", ShortNames: []string{"cop"}, Categories: ours},
		"objectplacements":           {Kind: "ObjectPlacement", Namespaced: true, ShortNames: []string{"objp"}, Categories: ours, Status: true},
		"clusterobjectplacements":    {Kind: "ClusterObjectPlacement", ShortNames: []string{"cobjp"}, Categories: ours, Status: true},
	}
	if diff := cmp.Diff(want, apitest.Kinds(t, hub, group+"/v1alpha1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestObjectPlacementRules(t *testing.T) {
	items := func(n int) (list string) {
		for i := range n {
			list += fmt.Sprintf("{name: c%d, applied: \"True\", available: Unknown}, ", i)
		}
		return "status: {items: [" + list + "]}"
	}
	onBoth(t, placedObject, clusterPlacedObject, map[string]apitest.Case{
		"no object":         {Create: "propagateDeps: true", Refused: "spec.resource: Required value"},
		"an object unnamed": {Create: "resource: {apiVersion: v1, kind: ConfigMap, name: \"\"}", Refused: "should be at least 1 chars long"},
		"a policy":          {Create: theResource + "policy: {kind: ClusterPropagationPolicy, name: all}"},
		"another kind of policy": {
			Create: theResource + "policy: {kind: ClusterResourcePlacement, name: all}", Refused: `Unsupported value: "ClusterResourcePlacement"`,
		},
		"another object later": {
			Create: theResource, Update: "spec: {resource: {name: api}}", Refused: "resource is immutable; each object has an internal placement of its own",
		},
		"what the policy says of clusters is kept whole": {
			Create: theResource + "placement: {clusterAffinity: {clusterNames: [a]}, replicaScheduling: {replicaSchedulingType: Duplicated}}",
			Want: map[string]any{"spec.placement": map[string]any{
				"clusterAffinity": map[string]any{"clusterNames": []any{"a"}}, "replicaScheduling": map[string]any{"replicaSchedulingType": "Duplicated"},
			}},
		},
		"suspended in two ways": {
			Create: theResource + "suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}}", Refused: "dispatching and dispatchingOnClusters exclude each other",
		},
		"a share":          {Create: theResource, UpdateStatus: "status: {clusters: [{name: a, replicas: 0}, {name: b}], decidedFor: 2147483647}"},
		"two shares":       {Create: theResource, UpdateStatus: "status: {clusters: [{name: a}, {name: a}]}", Refused: "Duplicate value"},
		"100 clusters":     {Create: theResource, UpdateStatus: items(100)},
		"101 clusters":     {Create: theResource, UpdateStatus: items(101), Refused: "must have at most 100 items"},
		"a share too much": {Create: theResource, UpdateStatus: "status: {clusters: [{name: a, replicas: 2147483648}]}", Refused: "replicas"},
	})
}

// TestNothingIsStoredThatCannotBeRead: one object that Go cannot read keeps the hub from reading any of its kind, so the API
// server must not take it.
func TestNothingIsStoredThatCannotBeRead(t *testing.T) {
	numbers := []string{"99999999999", "-99999999999", "9223372036854775808", "1e30", "1.5", `"1"`}
	times := []string{"2026-01-02t03:04:05z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05"}
	aPolicy := propagation + "spec: {resourceSelectors: [" + aSelector + "]}"
	anObject := placedObject + "spec: {" + theResource + "}"
	const condition = `status: {conditions: [{type: Ready, status: "True", reason: r, message: m, lastTransitionTime: %q}]}`
	for name, tc := range map[string]struct {
		object string
		into   client.Object
		patch  string
		status bool
		values []string
	}{
		"a priority":    {aPolicy, &policyv1alpha1.PropagationPolicy{}, "spec: {priority: %s}", false, numbers},
		"groups":        {aPolicy, &policyv1alpha1.PropagationPolicy{}, "spec: {placement: {spreadConstraints: [{maxGroups: %s}]}}", false, numbers},
		"a weight":      {aPolicy, &policyv1alpha1.PropagationPolicy{}, "spec: {placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: %s}]}}}}", false, numbers},
		"a toleration":  {aPolicy, &policyv1alpha1.PropagationPolicy{}, "spec: {placement: {clusterTolerations: [{operator: Exists, tolerationSeconds: %s}]}}", false, numbers[2:]},
		"a count":       {aPolicy, &policyv1alpha1.PropagationPolicy{}, "status: {claimed: %s}", true, numbers},
		"a generation":  {aPolicy, &policyv1alpha1.PropagationPolicy{}, "status: {observedGeneration: %s}", true, numbers[2:]},
		"a transition":  {aPolicy, &policyv1alpha1.PropagationPolicy{}, condition, true, times},
		"a share":       {anObject, &policyv1alpha1.ObjectPlacement{}, "status: {clusters: [{name: a, replicas: %s}]}", true, numbers},
		"a total":       {anObject, &policyv1alpha1.ObjectPlacement{}, "status: {decidedFor: %s}", true, numbers},
		"a rebalancing": {anObject, &policyv1alpha1.ObjectPlacement{}, "spec: {rebalanceTriggeredAt: %q}", false, times},
		"one that was":  {anObject, &policyv1alpha1.ObjectPlacement{}, "status: {lastRebalance: {changed: true, triggeredAt: %q}}", true, times},
	} {
		for _, value := range tc.values {
			t.Run(name+" of "+value, func(t *testing.T) {
				c := framework.Client(t, hub)
				object := apitest.Parse(t, tc.object)
				object.SetGenerateName("unreadable-")
				if err := c.Create(t.Context(), object); err != nil {
					t.Fatalf("create an object: %v", err)
				}
				patch, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(tc.patch, value)))
				if err != nil {
					t.Fatalf("parse a change: %v", err)
				}
				if tc.status {
					err = c.Status().Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
				} else {
					err = c.Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
				}
				if err == nil {
					t.Errorf("it was stored: %s", patch)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), tc.into); err != nil {
					t.Errorf("it is not readable: %v", err)
				}
			})
		}
	}
}

// TestColumns is what kubectl prints. Each kind is printed alone, before other tests' objects are made: the server is of this
// test's own.
func TestColumns(t *testing.T) {
	server := framework.StartAPIServer(t)
	const (
		ready = `status: {claimed: 3, scheduled: 2, available: 1, conditions: [{type: Ready, status: "False", reason: NotPropagated, message: one waits, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`
		goes  = `status: {clusterCount: 2, conditions: [
{type: Scheduled, status: "True", reason: r, message: to 2 clusters, lastTransitionTime: "2026-01-02T03:04:05Z"},
{type: Available, status: "False", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}`
		selects = "spec: {priority: 7, resourceSelectors: [" + aSelector + "]}"
		claimed = "spec: {" + theResource + "policy: {kind: PropagationPolicy, name: shop}}"
	)
	for name, tc := range map[string]struct{ plural, object, status, want, wide string }{
		"a PropagationPolicy": {"propagationpolicies", propagation + selects, ready, `
NAME   CLAIMED   SCHEDULED   AVAILABLE   READY   AGE
web    3         2           1           False   AGE`, `
NAME   CLAIMED   SCHEDULED   AVAILABLE   READY   CONFLICT   PRIORITY   MESSAGE     AGE
web    3         2           1           False   Abort      7          one waits   AGE`},
		"a ClusterPropagationPolicy": {"clusterpropagationpolicies", clusterPropagation + selects, ready, `
NAME   CLAIMED   SCHEDULED   AVAILABLE   READY   AGE
web    3         2           1           False   AGE`, `
NAME   CLAIMED   SCHEDULED   AVAILABLE   READY   CONFLICT   PRIORITY   MESSAGE     AGE
web    3         2           1           False   Abort      7          one waits   AGE`},
		"an OverridePolicy":       {"overridepolicies", overriding + "spec: {" + rule("") + "}", "", "\nNAME   AGE\nweb    AGE", "\nNAME   AGE\nweb    AGE"},
		"a ClusterOverridePolicy": {"clusteroverridepolicies", clusterOverriding + "spec: {" + rule("") + "}", "", "\nNAME   AGE\nweb    AGE", "\nNAME   AGE\nweb    AGE"},
		"an ObjectPlacement": {"objectplacements", placedObject + claimed, goes, `
NAME   KIND         OBJECT   POLICY   CLUSTERS   SCHEDULED   AVAILABLE   AGE
web    Deployment   web      shop     2          True        False       AGE`, `
NAME   KIND         OBJECT   POLICY   CLUSTERS   SCHEDULED   AVAILABLE   MESSAGE         AGE
web    Deployment   web      shop     2          True        False       to 2 clusters   AGE`},
		"a ClusterObjectPlacement": {"clusterobjectplacements", clusterPlacedObject + claimed, goes, `
NAME   KIND         OBJECT   POLICY   CLUSTERS   SCHEDULED   AVAILABLE   AGE
web    Deployment   web      shop     2          True        False       AGE`, `
NAME   KIND         OBJECT   POLICY   CLUSTERS   SCHEDULED   AVAILABLE   MESSAGE         AGE
web    Deployment   web      shop     2          True        False       to 2 clusters   AGE`},
	} {
		t.Run(name, func(t *testing.T) {
			c := framework.Client(t, server)
			object := apitest.Parse(t, tc.object)
			object.SetName("web")
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatalf("create: %v", err)
			}
			if tc.status != "" {
				patch, err := yaml.YAMLToJSON([]byte(tc.status))
				if err != nil {
					t.Fatalf("parse the status: %v", err)
				}
				if err := c.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
					t.Fatalf("set the status: %v", err)
				}
			}
			path := "/apis/" + group + "/v1alpha1/" + tc.plural
			if diff := cmp.Diff(tc.want, "\n"+apitest.Printed(t, server, path, false)); diff != "" {
				t.Errorf("kubectl get (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wide, "\n"+apitest.Printed(t, server, path, true)); diff != "" {
				t.Errorf("kubectl get -o wide (-want +got):\n%s", diff)
			}
		})
	}
}
