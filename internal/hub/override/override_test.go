package override_test

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse

	add     = placementv1.JSONPatchOverrideOpAdd
	replace = placementv1.JSONPatchOverrideOpReplace
)

// An override of a namespace reaches what is in it, in the clusters that it selects, with the cluster's own values; edited, it
// reaches them again, and deleted it is taken back.
func TestClusterResourceOverride(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	o := f.overrideAll("all", change(labelled("env", "prod"), add, "/metadata/labels", `{"cluster":"${MEMBER-CLUSTER-NAME}","zone":"${MEMBER-CLUSTER-LABEL-KEY-zone}"}`))
	f.snapshot(0, f.configMap("a", "x"))
	a, b := f.join("a", map[string]string{"env": "prod", "zone": "z1"}), f.join("b", map[string]string{"env": "test"})
	f.given(a, []string{o.Name + "-0"}, nil, yes, placementv1.ReasonOverriddenSucceeded)
	f.given(b, nil, nil, yes, placementv1.ReasonNoOverrideSpecified)
	want := map[string]string{"cluster": f.Cluster("a"), "zone": "z1"}
	if diff := cmp.Diff(want, f.placed("a", "ConfigMap", "a").GetLabels()); diff != "" {
		t.Errorf("labels in a (-want +got):\n%s", diff)
	}
	if l := f.placed("b", "ConfigMap", "a").GetLabels(); len(l) > 0 {
		t.Errorf("labels in b: %v", l)
	}
	f.Change(o, `{"spec":{"policy":{"overrideRules":[{"clusterSelector":{},"overrideType":"JSONPatch","jsonPatchOverrides":[{"op":"add","path":"/metadata/labels","value":{"v":"2"}}]}]}}}`)
	f.given(a, []string{o.Name + "-1"}, nil, yes, placementv1.ReasonOverriddenSucceeded)
	f.given(b, []string{o.Name + "-1"}, nil, yes, placementv1.ReasonOverriddenSucceeded)
	for _, c := range []string{"a", "b"} {
		if diff := cmp.Diff(map[string]string{"v": "2"}, f.placed(c, "ConfigMap", "a").GetLabels()); diff != "" {
			t.Errorf("labels in %s after the edit (-want +got):\n%s", c, diff)
		}
	}
	if err := f.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, f, o)
	f.given(a, nil, nil, yes, placementv1.ReasonNoOverrideSpecified)
	if l := f.placed("a", "ConfigMap", "a").GetLabels(); len(l) > 0 {
		t.Errorf("labels in a after the override is gone: %v", l)
	}
	for _, name := range []string{o.Name + "-0", o.Name + "-1"} {
		framework.AwaitGone(t, f, &placementv1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// What cannot be overridden keeps in the cluster what it has, and stops nothing else and no other cluster.
func TestOverrideThatFails(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	first := f.snapshot(0, f.configMap("a", "old"), f.configMap("b", "old"))
	one, two := f.join("one", map[string]string{"zone": "z1"}), f.join("two", nil)
	f.given(one, nil, nil, yes, placementv1.ReasonNoOverrideSpecified)
	f.given(two, nil, nil, yes, placementv1.ReasonNoOverrideSpecified)

	f.Change(first, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	f.override("zone", []string{"a", "new"}, change(everywhere(), replace, "/data/value", `"${MEMBER-CLUSTER-LABEL-KEY-zone}"`))
	f.snapshot(1, f.configMap("a", "hub"), f.configMap("b", "hub"), f.configMap("new", "hub"))
	list := []string{f.namespace + "/zone-0"}
	f.given(one, nil, list, yes, placementv1.ReasonOverriddenSucceeded)
	f.given(two, nil, list, no, placementv1.ReasonOverriddenFailed)
	for _, tc := range []struct{ cluster, name, want string }{
		{"one", "a", "z1"}, {"one", "b", "hub"}, {"one", "new", "z1"},
		{"two", "a", "old"}, {"two", "b", "hub"}, {"two", "new", "-"},
	} {
		if got := f.value(tc.cluster, tc.name); got != tc.want {
			t.Errorf("%s in %s is %q, want %q", tc.name, tc.cluster, got, tc.want)
		}
	}
	message := meta.FindStatusCondition(two.Status.Conditions, placementv1.ConditionOverridden).Message
	for _, part := range []string{f.namespace + "/zone", "rule 1", "ConfigMap " + f.namespace + "/a", f.Cluster("two"), "/data/value", `label "zone"`} {
		if !strings.Contains(message, part) {
			t.Errorf("message %q does not name %s", message, part)
		}
	}
	if meta.IsStatusConditionTrue(two.Status.Conditions, placementv1.ConditionAvailable) {
		t.Error("a cluster is available that does not have what it is to have")
	}
	// The remedy that the message names.
	member := f.member("two")
	f.Change(member, `{"metadata":{"labels":{"zone":"z2"}}}`)
	f.given(two, nil, list, yes, placementv1.ReasonOverriddenSucceeded)
	if got := f.value("two", "a") + f.value("two", "new"); got != "z2z2" {
		t.Errorf("after the label was set: %q", got)
	}
}

// Overrides of a namespace's own come after cluster-wide ones, by name, and later ones win. One that leaves an object out does
// so whatever comes after.
func TestOrderAndDelete(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	f.overrideAll("z", leaveOut(labelled("a", "out")))
	f.override("b", []string{"a", "b"}, change(everywhere(), replace, "/data/value", `"b"`))
	f.override("a", []string{"a"}, change(everywhere(), replace, "/data/value", `"a"`), change(everywhere(), add, "/data/${MEMBER-CLUSTER-NAME}", `"x"`))
	f.snapshot(0, f.configMap("a", "hub"), f.configMap("b", "hub"), f.configMap("c", "hub"))
	in, out := f.join("in", nil), f.join("out", map[string]string{"a": "out"})
	f.given(in, nil, []string{f.namespace + "/a-0", f.namespace + "/b-0"}, yes, placementv1.ReasonOverriddenSucceeded)
	f.given(out, []string{f.Name + "-z-0"}, []string{f.namespace + "/a-0", f.namespace + "/b-0"}, yes, placementv1.ReasonOverriddenSucceeded)
	if got := f.value("in", "a") + f.value("in", "b") + f.value("in", "c"); got != "bbhub" {
		t.Errorf("values %q, want those of the later override", got)
	}
	if data := f.placed("in", "ConfigMap", "a").Object["data"]; !cmp.Equal(data, map[string]any{"value": "b", f.Cluster("in"): "x"}) {
		t.Errorf("data %v", data)
	}
	if o := f.placed("out", "ConfigMap", "a"); o != nil {
		t.Errorf("left out, and placed: %v", o)
	}
}
