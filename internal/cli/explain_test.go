package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// explainFleet makes four members of which one has not joined, and removes them when the test ends.
func explainFleet(t *testing.T) client.Client {
	t.Helper()
	hub := framework.Client(t, hubConfig)
	if err := hub.DeleteAllOf(t.Context(), &clusterv1.MemberCluster{}); err != nil { // those that other tests have left
		t.Fatal(err)
	}
	for name, region := range map[string]string{"explain1": "east", "explain2": "west", "explain3": "east", "explain4": "east"} {
		m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}}
		if name == "explain3" {
			m.Spec.Taints = []clusterv1.Taint{{Key: "full", Effect: clusterv1.TaintNoSchedule}}
		}
		create(t, hub, m)
		if name == "explain4" {
			continue
		}
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonJoined})
		m.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent, LastReceivedHeartbeat: metav1.Now(), Conditions: []metav1.Condition{
			{Type: clusterv1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonHealthy, LastTransitionTime: metav1.Now()}}}}
		m.Status.Properties = map[string]clusterv1.PropertyValue{"kubernetes-fleet.io/node-count": {Value: "3", ObservationTime: metav1.Now()}}
		if err := hub.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return hub
}

// newNamespace makes a namespace with another name each time: without its controller none goes again.
func newNamespace(t *testing.T, hub client.Client, prefix string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if err := hub.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	return namespace.Name
}

// create makes an object for as long as the test runs.
func create(t *testing.T, hub client.Client, o client.Object) {
	t.Helper()
	if err := hub.Create(t.Context(), o); err != nil {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	t.Cleanup(func() {
		if err := hub.Delete(framework.CleanupContext(t), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete %s: %v", o.GetName(), err)
		}
	})
}

// file writes a file and returns its name.
func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "placement.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// lines are what was printed, with one space where there are more, so that names of any length will do.
func lines(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			all = append(all, line)
		}
	}
	return all
}

const explainedFile = `# a namespace comes along, and is none of the command's business
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: not-applied}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
  policy:
    placementType: PickN
    numberOfClusters: 2
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms:
          - labelSelector: {matchLabels: {region: east}}
            propertySelector: {matchExpressions: [{name: kubernetes-fleet.io/node-count, operator: Ge, values: ["3"]}]}
`

func TestExplainFile(t *testing.T) {
	explainFleet(t)
	out, err := amc(t, "explain", "placement", "-f", file(t, explainedFile))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`ClusterResourcePlacement "not-applied", PickN of 2: could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead; 2 are asked for; of the others, ` +
			`1 not connected to the fleet, 1 not matching the required cluster affinity, 1 with a taint that is not tolerated: see to their agents, label or join clusters that match it, tolerate the taints or take them off, or ask for fewer clusters`,
		"CLUSTER CHOSEN AFFINITY SPREAD WHY",
		`explain1 yes 0 0 Successfully scheduled resources for placement in "explain1" (affinity score: 0, topology spread score: 0): picked by scheduling policy; kubernetes-fleet.io/node-count is 3`,
		`explain2 no - - cluster does not match the required cluster affinity: label region is "west", and "region=east" is required; kubernetes-fleet.io/node-count is 3`,
		`explain3 no - - taint {full:NoSchedule} cannot be tolerated; kubernetes-fleet.io/node-count is 3`,
		`explain4 no - - cluster is not connected to the fleet: member agent not online yet; kubernetes-fleet.io/node-count is not reported`,
	}
	if diff := cmp.Diff(want, lines(out)); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	var at []int
	for line := range strings.Lines(out) {
		for _, word := range []string{" WHY", " Successfully", " cluster ", " taint "} {
			if i := strings.Index(line, word); i > 0 && strings.HasPrefix(line, "explain") || strings.HasPrefix(line, "CLUSTER") && i > 0 {
				at = append(at, i)
				break
			}
		}
	}
	for _, i := range at {
		if len(at) != 5 || i != at[0] {
			t.Fatalf("the last column begins at %v:\n%s", at, out)
		}
	}
}

// A placement that is there: a cluster keeps what it has, though it would not be chosen now; the scopes are told apart.
func TestExplainPlacement(t *testing.T) {
	hub := explainFleet(t)
	spec := placementv1.PlacementSpec{
		ResourceSelectors: []placementv1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}},
		Policy: &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](2), Affinity: &placementv1.Affinity{
			ClusterAffinity: &placementv1.ClusterAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &placementv1.ClusterSelector{
				ClusterSelectorTerms: []placementv1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "east"}}}},
			}}}},
	}
	p := &placementv1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "explained", Namespace: "default"}, Spec: spec}
	create(t, hub, p)
	owned := metav1.ObjectMeta{
		Name: "explained-0", Namespace: "default",
		Labels: map[string]string{
			placementv1.LabelParentPlacement: "explained", placementv1.LabelPolicyIndex: "0", placementv1.LabelIsLatestSnapshot: "true"},
		Annotations: map[string]string{placementv1.AnnotationPlacementUID: string(p.UID)},
	}
	snapshot := &placementv1.SchedulingPolicySnapshot{ObjectMeta: *owned.DeepCopy()}
	snapshot.Spec = placementv1.SchedulingPolicySnapshotSpec{Policy: p.Spec.Policy.DeepCopy(), PolicyHash: []byte("h")}
	snapshot.Spec.Policy.NumberOfClusters = nil
	create(t, hub, snapshot)
	binding := &placementv1.ResourceBinding{ObjectMeta: owned, Spec: placementv1.ResourceBindingSpec{
		State: placementv1.BindingStateBound, SchedulingPolicySnapshotName: "explained-0", TargetCluster: "explain2",
		ClusterDecision: placementv1.ClusterDecision{ClusterName: "explain2", Selected: true, Reason: "picked"},
	}}
	binding.Name = placement.BindingName(placement.Key{Namespace: "default", Name: "explained"}, "explain2")
	create(t, hub, binding)

	out, err := amc(t, "explain", "placement", "explained", "-n", "default")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`ResourcePlacement "default/explained", PickN of 2: found all cluster needed as specified by the scheduling policy, found 2 cluster(s)`,
		"CLUSTER CHOSEN AFFINITY SPREAD WHY",
		`explain1 yes 0 0 Successfully scheduled resources for placement in "explain1" (affinity score: 0, topology spread score: 0): picked by scheduling policy`,
		`explain2 yes - - picked; it keeps what was placed there, though now: cluster does not match the required cluster affinity: label region is "west", and "region=east" is required`,
		`explain3 no - - taint {full:NoSchedule} cannot be tolerated`,
		`explain4 no - - cluster is not connected to the fleet: member agent not online yet`,
	}
	if diff := cmp.Diff(want, lines(out)); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	edited := strings.NewReplacer("ClusterResourcePlacement", "ResourcePlacement", "name: not-applied", "name: explained, namespace: default",
		"kind: Namespace, name: shop", "kind: ConfigMap, name: shop", "numberOfClusters: 2", "numberOfClusters: 1").Replace(explainedFile)
	out, err = amc(t, "explain", "placement", "-f", file(t, edited))
	if err != nil {
		t.Fatal(err)
	}
	if want := "what was placed there is removed"; !strings.Contains(out, want) || !strings.Contains(out, "explain1   yes") {
		t.Errorf("an edit that chooses anew does not say %q:\n%s", want, out)
	}
}

func TestExplainMistakes(t *testing.T) {
	const placed = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: a}\nspec: {resourceSelectors: [], %s}\n"
	policy := func(p string) string { return strings.Replace(placed, "%s", p, 1) }
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":         {nil, "give the name of one placement, or one file with -f"},
		"both":            {[]string{"a", "-f", "b"}, "give the name of one placement, or one file with -f"},
		"none such":       {[]string{"nowhere"}, `there is no ClusterResourcePlacement "nowhere"; ` + "`kubectl get clusterresourceplacements` lists them"},
		"none such there": {[]string{"nowhere", "-n", "default"}, `there is no ResourcePlacement "default/nowhere"; ` + "`kubectl get resourceplacements -n default` lists them"},
		"no file":         {[]string{"-f", "/nowhere.yaml"}, "read the placement: open /nowhere.yaml: no such file"},
		"no placement":    {[]string{"-f", file(t, "apiVersion: v1\nkind: Namespace\n")}, "it has no ClusterResourcePlacement and no ResourcePlacement"},
		"two":             {[]string{"-f", file(t, policy("")+"---\n"+policy(""))}, "it has several placements; give one at a time"},
		"no YAML":         {[]string{"-f", file(t, "a: [")}, "it is no YAML"},
		"a field":         {[]string{"-f", file(t, policy("policy: {clusters: 3}"))}, `unknown field "clusters"`},
		"no number":       {[]string{"-f", file(t, policy("policy: {placementType: PickN}"))}, "numberOfClusters must be set when placementType is PickN"},
		"a type":          {[]string{"-f", file(t, policy("policy: {placementType: PickMost}"))}, `placement type "PickMost" is not known`},
		"a namespace":     {[]string{"-n", "default", "-f", file(t, policy(""))}, "a ClusterResourcePlacement has no namespace; leave -n default out"},
		"another kind":    {[]string{"-n", "other", "-f", file(t, strings.NewReplacer("ClusterResource", "Resource", "{name: a}", "{name: a, namespace: b}").Replace(policy("")))}, `the namespace of the placement is "b" and not "other", as -n says`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := amc(t, append([]string{"explain", "placement"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("got %q, error %v; want one line with %q", out, err, tc.want)
			}
		})
	}
}
