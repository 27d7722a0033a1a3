package e2e

import (
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// labelMember sets a label of a member, or removes it where the value is "".
func labelMember(t *testing.T, hub client.Client, member, key, value string) {
	t.Helper()
	text := `"` + value + `"`
	if value == "" {
		text = "null"
	}
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
	if err := hub.Patch(framework.CleanupContext(t), m, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+key+`":`+text+`}}}`))); err != nil {
		t.Errorf("label %s with %s=%s: %v", member, key, value, err)
	}
}

// labelEach gives member1, member2 and so on a label of each of the values, until the test ends.
func labelEach(t *testing.T, hub client.Client, key string, values ...string) {
	t.Helper()
	for i, value := range values {
		labelMember(t, hub, fleet.Names()[i], key, value)
		t.Cleanup(func() { labelMember(t, hub, fleet.Names()[i], key, "") })
	}
}

// inClusters is a rule without its changes: for clusters with a label, or, with an empty selector, for all.
func inClusters(labels map[string]string) placementv1.OverrideRule {
	selector := &placementv1.OverrideClusterSelector{}
	if labels != nil {
		selector.ClusterSelectorTerms = []placementv1.OverrideClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}}
	}
	return placementv1.OverrideRule{ClusterSelector: selector}
}

// adding is a rule for all clusters that adds values, given as path and JSON in turns.
func adding(pathsAndValues ...string) placementv1.OverrideRule {
	rule := inClusters(nil)
	for i := 0; i < len(pathsAndValues); i += 2 {
		rule.JSONPatchOverrides = append(rule.JSONPatchOverrides, placementv1.JSONPatchOverride{
			Operator: placementv1.JSONPatchOverrideOpAdd, Path: pathsAndValues[i], Value: &apiextensionsv1.JSON{Raw: []byte(pathsAndValues[i+1])},
		})
	}
	return rule
}

// overrideOf is an override of one ConfigMap, on its way with one placement.
func overrideOf(namespace, name string, placement *placementv1.PlacementRef, configMap string, rules ...placementv1.OverrideRule) *placementv1.ResourceOverride {
	o := &placementv1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	o.Spec.Placement = placement
	o.Spec.ResourceSelectors = []placementv1.ResourceOverrideSelector{{Version: "v1", Kind: "ConfigMap", Name: configMap}}
	o.Spec.Policy = &placementv1.OverridePolicy{OverrideRules: rules}
	return o
}

// setRules changes the rules of an override.
func setRules(t *testing.T, hub client.Client, o *placementv1.ResourceOverride, rules ...placementv1.OverrideRule) {
	t.Helper()
	before := o.DeepCopy()
	o.Spec.Policy.OverrideRules = rules
	if err := hub.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatalf("change ResourceOverride %s/%s: %v", o.Namespace, o.Name, err)
	}
}

// TestOverrides has the same objects a little different in each member: cluster-scoped overrides first, then those of the
// namespace, with variables in values and in paths, and one object left out. A changed override keeps to the budget of the
// rolling update. One that cannot be applied names itself, object, cluster and path; it holds up that object in that cluster.
func TestOverrides(t *testing.T) {
	t.Parallel()
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const name, region = "overrides", "e2e.fleetwright.io/region"
	labelEach(t, hub, region, "r1", "r2", "r3")
	create(t, hub, namespace(name))
	create(t, hub, configMap(name, "test-cm", "hub"))
	other := create(t, hub, configMap(name, "other-cm", "value1"))
	ref := &placementv1.PlacementRef{Name: name}
	all := &placementv1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: name}}
	all.Spec.Placement = ref
	all.Spec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: name}}
	all.Spec.Policy = &placementv1.OverridePolicy{OverrideRules: []placementv1.OverrideRule{
		adding("/metadata/labels", `{"cluster":"${MEMBER-CLUSTER-NAME}","won-by":"cluster-scoped"}`),
	}}
	create(t, hub, all)
	later := create(t, hub, overrideOf(name, "b-later", ref, "test-cm",
		adding("/data/key", `"${MEMBER-CLUSTER-NAME} in ${MEMBER-CLUSTER-LABEL-KEY-`+region+`}"`, "/data/of-${MEMBER-CLUSTER-LABEL-KEY-"+region+"}", `"path"`, "/metadata/labels/won-by", `"later"`)))
	create(t, hub, overrideOf(name, "a-earlier", ref, "test-cm", adding("/metadata/labels/won-by", `"earlier"`)))
	out := inClusters(map[string]string{region: "r2"})
	out.OverrideType = placementv1.DeleteOverrideType
	create(t, hub, overrideOf(name, "out", ref, "other-cm", out))
	p := placeNamespace(name, name, placementv1.RollingUpdateRolloutStrategyType)
	p.Spec.Strategy.RollingUpdate = &placementv1.RollingUpdateConfig{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	placement := create(t, hub, p)
	awaitAvailable(t, hub, placement)
	for i := range m {
		member, r := fleet.Names()[i], "r"+fleet.Names()[i][len("member"):]
		got := configMap(name, "test-cm", "")
		framework.Await(t, m[i], got, "exists", func(*corev1.ConfigMap) bool { return true })
		if diff := cmp.Diff(map[string]string{"key": member + " in " + r, "of-" + r: "path"}, got.Data); diff != "" {
			t.Errorf("what %s was given (-want +got):\n%s", member, diff)
		}
		if diff := cmp.Diff(map[string]string{"cluster": member, "won-by": "later"}, got.Labels); diff != "" {
			t.Errorf("the labels in %s (-want +got):\n%s", member, diff)
		}
	}
	if got := [3]string{valueOf(t, m[0], name, "other-cm"), valueOf(t, m[1], name, "other-cm"), valueOf(t, m[2], name, "other-cm")}; got != [3]string{"value1", "", "value1"} {
		t.Errorf("the object that is left out in member2: %q", got)
	}

	history := recordBindings(t, hub, client.MatchingLabels{placementv1.LabelParentPlacement: name})
	setRules(t, hub, later, adding("/data/key", `"edited"`))
	for i := range m {
		awaitValue(t, m[i], name, "test-cm", "edited")
	}
	awaitAvailable(t, hub, placement)
	history.check(t, 1)

	// A label that member3 has not.
	const zone = "e2e.fleetwright.io/zone"
	labelEach(t, hub, zone, "z1", "z2")
	t.Cleanup(func() { labelMember(t, hub, "member3", zone, "") })
	setRules(t, hub, later, adding("/data/key", `"${MEMBER-CLUSTER-LABEL-KEY-`+zone+`}"`))
	other.Data["key"] = "value2"
	if err := hub.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, hub, placement, "says what is wrong in member3", func(p *placementv1.ClusterResourcePlacement) bool {
		return rowCondition(p, "member3", "Overridden").Reason == placementv1.ReasonOverriddenFailed
	})
	want := `ResourceOverride overrides/b-later (snapshot 2), rule 1, for ConfigMap overrides/test-cm in cluster "member3", path "/data/key": the cluster has no label "` + zone + `"`
	if got := rowCondition(placement, "member3", "Overridden").Message; !strings.Contains(got, want) {
		t.Errorf("message %q, want %q in it", got, want)
	}
	if failed := rowOf(placement, "member3").FailedPlacements; len(failed) != 1 || failed[0].Name != "test-cm" || !strings.Contains(failed[0].Condition.Message, want) {
		t.Errorf("failedPlacements of member3: %+v", failed)
	}
	awaitValue(t, m[0], name, "test-cm", "z1")
	awaitValue(t, m[1], name, "test-cm", "z2")
	awaitValue(t, m[2], name, "other-cm", "value2")
	if got := valueOf(t, m[2], name, "test-cm"); got != "edited" {
		t.Errorf("the object that cannot be overridden has %q in member3", got)
	}
	labelMember(t, hub, "member3", zone, "z3")
	awaitValue(t, m[2], name, "test-cm", "z3")
	awaitAvailable(t, hub, placement)
}

// TestOverridesOfANamespacedRun: an override that is for a ResourcePlacement travels with its update runs, and one for a
// ClusterResourcePlacement of the same name has nothing to do with it. What makes another object of an object is refused.
func TestOverridesOfANamespacedRun(t *testing.T) {
	t.Parallel()
	hub, m := clientFor(t, fleet, "hub"), members(t)
	const ns, name = "overrides-run", "config"
	create(t, hub, namespace(ns))
	create(t, hub, configMap(ns, "test-cm", "hub"))
	placeShell(t, hub, "overrides-run-shell", ns)
	own := create(t, hub, overrideOf(ns, "own", &placementv1.PlacementRef{Name: name, Scope: placementv1.NamespaceScoped}, "test-cm",
		adding("/data/key", `"${MEMBER-CLUSTER-NAME}"`)))
	create(t, hub, overrideOf(ns, "xother", &placementv1.PlacementRef{Name: name}, "test-cm", adding("/data/key", `"of another placement"`)))
	create(t, hub, placeConfigMap(ns, name, placementv1.ExternalRolloutStrategyType))
	strategy := &placementv1.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: everywhere(name, nil).Spec}
	create(t, hub, strategy)
	awaitNamespacedRun(t, hub, create(t, hub, namespacedRun(ns, "first", name, name, "")))
	if diff := cmp.Diff([3]string{"member1", "member2", "member3"}, values(t, m, ns)); diff != "" {
		t.Errorf("after the first run (-want +got):\n%s", diff)
	}
	setRules(t, hub, own, adding("/data/key", `"edited"`))
	second := namespacedRun(ns, "second", name, name, "")
	second.Spec.State = placementv1.UpdateRunStateInitialize
	create(t, hub, second)
	framework.Await(t, hub, second, "is planned", func(r *placementv1.StagedUpdateRun) bool {
		return condition(r.Status.Conditions, placementv1.ConditionInitialized) == "True/"+placementv1.ReasonUpdateRunInitialized
	})
	if diff := cmp.Diff([3]string{"member1", "member2", "member3"}, values(t, m, ns)); diff != "" {
		t.Errorf("the override was changed, and no run has begun (-want +got):\n%s", diff)
	}
	change(t, hub, second, `{"spec":{"state":"Run"}}`)
	awaitNamespacedRun(t, hub, second)
	if diff := cmp.Diff([3]string{"edited", "edited", "edited"}, values(t, m, ns)); diff != "" {
		t.Errorf("after the second run (-want +got):\n%s", diff)
	}

	renames := overrideOf(ns, "renames", nil, "test-cm", adding("/metadata/name", `"other"`))
	if err := hub.Create(t.Context(), renames); err == nil || !strings.Contains(err.Error(), "of the metadata an override can change labels and annotations alone") {
		t.Errorf("an override of the name: %v", err)
	}
	moved := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"placement":{"name":"another"}}}`))
	if err := hub.Patch(t.Context(), own, moved); err == nil || !strings.Contains(err.Error(), "The placement field is immutable") {
		t.Errorf("an override for another placement: %v", err)
	}
}
