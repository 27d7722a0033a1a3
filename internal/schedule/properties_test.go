package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

var somePolicies = []string{
	"{}", eastern, "placementType: PickN", "placementType: PickN\n" + eastern,
	"placementType: PickFixed\nclusterNames: [c0, c2, c9]", "placementType: PickFixed",
	"placementType: PickN\ntopologySpreadConstraints: [{topologyKey: region}, {topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]",
	preferred("{weight: 50, preference: {propertySorter: {name: count, sortOrder: Descending}}}"),
	"placementType: PickN\ntolerations: [{key: full, operator: Exists}]",
}

// drawFleet draws clusters of all kinds, and bindings to them of all kinds.
func drawFleet(t *rapid.T) (clusters []Cluster, bindings []placementv1.BindingObject) {
	for i := range rapid.IntRange(0, 8).Draw(t, "clusters") {
		name := fmt.Sprint("c", i)
		var words []string
		for _, choice := range [][]string{{"region=east", "region=west", ""}, {"zone=1", "zone=2", ""}, {"count:1", "count:2", "count:many", ""}, {"!full", ""}, {"?unhealthy", "", ""}} {
			words = append(words, rapid.SampledFrom(choice).Draw(t, "word"))
		}
		c := cluster(name, words...)
		c.UID = types.UID("uid-" + name)
		c.Leaving = rapid.IntRange(0, 5).Draw(t, "leaving") == 0
		if rapid.IntRange(0, 6).Draw(t, "exists") > 0 {
			clusters = append(clusters, c)
		}
		if rapid.Bool().Draw(t, "has a binding") {
			b := drawBinding(t, name)
			if rapid.Bool().Draw(t, "of an earlier policy") {
				b.BindingSpec().SchedulingPolicySnapshotName = "app-0"
			}
			bindings = append(bindings, b)
		}
	}
	return clusters, bindings
}

// Whatever the policy, the fleet and what is there: no more clusters are chosen than are asked for, and fewer only where no other
// may be; none is chosen anew that must not be; the order of things does not matter; and once all is done as was decided,
// nothing is left to do.
func TestDecideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		clusters, bindings := drawFleet(rt)
		r := ask(t, rapid.SampledFrom(somePolicies).Draw(rt, "policy"), rapid.IntRange(0, 9).Draw(rt, "number"))
		fleet := NewFleet(clusters)
		pass := func(bindings []placementv1.BindingObject, fleet Fleet) (Result, Changes) {
			r.Holders = owner.Holders(fleet, bindings)
			result, err := Decide(r, fleet)
			if err != nil {
				rt.Fatal(err)
			}
			return result, Bind(owner, fleet, result, bindings, newBinding)
		}
		result, changes := pass(bindings, fleet)
		checkChosen(rt, &r, fleet, &result)
		backwards, reversed := slices.Clone(clusters), slices.Clone(bindings)
		slices.Reverse(backwards)
		slices.Reverse(reversed)
		if other, _ := pass(reversed, NewFleet(backwards)); !cmp.Equal(result.All(), other.All()) {
			rt.Fatalf("the order matters:\n%s", cmp.Diff(result.All(), other.All()))
		}
		after := carryOut(bindings, changes)
		again, left := pass(after, fleet)
		if len(left.Create)+len(left.Update) > 0 {
			rt.Fatalf("a second pass changes %v, creates %v", left.Update, left.Create)
		}
		if diff := cmp.Diff(recorded(result.Selected, after), recorded(again.Selected, after)); diff != "" {
			rt.Fatalf("a second pass decides otherwise:\n%s", diff)
		}
	})
}

// recorded are decisions as bindings keep them. One that waits for a binding in its way is made anew each time, and scored among
// those that have theirs by then.
func recorded(decisions []placementv1.ClusterDecision, bindings []placementv1.BindingObject) []placementv1.ClusterDecision {
	kept := owner.standing(bindings)
	recorded := slices.Clone(decisions)
	for i := range recorded {
		if b := kept[recorded[i].ClusterName]; b == nil || !owner.owns(b) || !b.GetDeletionTimestamp().IsZero() {
			recorded[i].ClusterScore, recorded[i].Reason = nil, ""
		}
	}
	return recorded
}

func checkChosen(t *rapid.T, r *Request, fleet Fleet, result *Result) {
	policyType := r.Policy.Type()
	if policyType == placementv1.PickNPlacementType && len(result.Selected) > r.Number {
		t.Fatalf("%d clusters are chosen, and %d asked for", len(result.Selected), r.Number)
	}
	seen := map[string]bool{}
	for _, d := range result.Selected {
		c := fleet.Cluster(d.ClusterName)
		if c == nil || c.Leaving || seen[d.ClusterName] {
			t.Fatalf("%s is chosen, and leaves or was chosen before", d.ClusterName)
		}
		seen[c.Name] = true
		if r.holds(c.Name) {
			continue
		}
		tolerated := len(r.Policy.Tolerations) > 0 || policyType == placementv1.PickFixedPlacementType
		if c.Disconnected != "" || (len(c.Taints) > 0 && !tolerated) {
			t.Fatalf("%s is chosen anew, and is disconnected %q or tainted %v", c.Name, c.Disconnected, c.Taints)
		}
		if r.Policy.Affinity != nil && r.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil && c.Labels["region"] != "east" {
			t.Fatalf("%s is chosen anew, and does not match", c.Name)
		}
	}
	for _, d := range result.Unselected() {
		if d.Reason == "" {
			t.Fatalf("%s is not chosen, and nothing says why", d.ClusterName)
		}
		if policyType == placementv1.PickNPlacementType && len(result.Selected) < r.Number && strings.Contains(d.Reason, "does not score high enough") {
			t.Fatalf("%s is not chosen though there is room: %s", d.ClusterName, d.Reason)
		}
	}
	for _, d := range result.All() {
		if d.Selected != seen[d.ClusterName] {
			t.Fatalf("%s is said to be chosen and not to be", d.ClusterName)
		}
	}
}

// A constraint that must be kept is, by everything that is chosen anew: no region has more than one cluster more than the one
// with the fewest of those where a cluster could be chosen.
func TestSpreadProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var clusters []Cluster
		for i := range rapid.IntRange(1, 20).Draw(rt, "clusters") {
			clusters = append(clusters, cluster(fmt.Sprint("c", i), rapid.SampledFrom([]string{"region=1", "region=2", "region=3"}).Draw(rt, "region")))
		}
		r := ask(t, "placementType: PickN\ntopologySpreadConstraints: [{topologyKey: region}]", rapid.IntRange(0, 20).Draw(rt, "number"))
		maxSkew := rapid.Int32Range(1, 4).Draw(rt, "skew")
		r.Policy.TopologySpreadConstraints[0].MaxSkew = ptr.To(maxSkew)
		result, err := Decide(r, NewFleet(clusters))
		if err != nil {
			rt.Fatal(err)
		}
		counts := map[string]int{}
		for i := range clusters {
			counts[clusters[i].Labels["region"]] += 0
		}
		fleet := NewFleet(clusters)
		for _, d := range result.Selected {
			counts[fleet.Cluster(d.ClusterName).Labels["region"]]++
		}
		least, most := 100, 0
		for _, n := range counts {
			least, most = min(least, n), max(most, n)
		}
		if most-least > int(maxSkew) {
			rt.Fatalf("skew %d of %v, want %d at the most", most-least, counts, maxSkew)
		}
	})
}

// TestEveryPropertyName: whatever a property is called, a cluster that reports it is found by it.
func TestEveryPropertyName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9./]{0,20}[a-z0-9])?`).Draw(rt, "name")
		kind := rapid.SampledFrom([]string{"total", "allocatable", "available"}).Draw(rt, "kind")
		list := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("3")}
		c := Cluster{Usage: map[string]clusterv1.ResourceUsage{"total": {Capacity: list}, "allocatable": {Allocatable: list}, "available": {Available: list}}[kind]}
		if q, ok := parseProperty(resourcePrefix + kind + "-" + name).quantity(&c); !ok || q.Value() != 3 {
			rt.Fatalf("%s of %s is not found", kind, name)
		}
		plain := Cluster{Properties: map[string]clusterv1.PropertyValue{name: {Value: "3"}}}
		if q, ok := parseProperty(name).quantity(&plain); !ok || q.Value() != 3 {
			rt.Fatalf("property %s is not found", name)
		}
	})
}
