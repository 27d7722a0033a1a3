package schedule

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// ask makes a request of a policy in YAML.
func ask(t testing.TB, policy string, number int) Request {
	t.Helper()
	p := &placementv1.PlacementPolicy{}
	if err := yaml.UnmarshalStrict([]byte(policy), p); err != nil {
		t.Fatalf("parse the policy: %v", err)
	}
	return Request{Policy: p, Number: number}
}

// cluster makes a healthy cluster from words: a label such as region=east, a property such as cpu:4, which is available CPU, a
// taint such as !key=value, or why it is disconnected, such as ?unhealthy.
func cluster(name string, words ...string) Cluster {
	c := Cluster{Name: name, Labels: map[string]string{}, Properties: map[string]clusterv1.PropertyValue{}}
	c.Usage.Available, c.Usage.Capacity = corev1.ResourceList{}, corev1.ResourceList{}
	for _, word := range words {
		if taint, is := strings.CutPrefix(word, "!"); is {
			key, value, _ := strings.Cut(taint, "=")
			c.Taints = append(c.Taints, clusterv1.Taint{Key: key, Value: value, Effect: clusterv1.TaintNoSchedule})
		} else if why, is := strings.CutPrefix(word, "?"); is {
			c.Disconnected = why
		} else if key, value, is := strings.Cut(word, "="); is {
			c.Labels[key] = value
		} else if property, value, is := strings.Cut(word, ":"); is && (property == "cpu" || property == "nvidia.com/gpu" || property == "some-dashed-thing") {
			c.Usage.Available[corev1.ResourceName(property)] = resource.MustParse(value)
		} else if is {
			c.Properties[property] = clusterv1.PropertyValue{Value: value}
		}
	}
	return c
}

// decide says for every cluster + or -, its name and, in brackets, its scores.
func decide(t testing.TB, r Request, clusters ...Cluster) (decisions []string, reasons map[string]string, result Result) {
	t.Helper()
	result, err := Decide(r, NewFleet(clusters))
	if err != nil {
		t.Fatalf("decide: %v", err)
	}
	reasons = map[string]string{}
	for _, d := range result.All() {
		sign, score := "-", ""
		if d.Selected {
			sign = "+"
		}
		if d.ClusterScore != nil {
			score = fmt.Sprintf("(%d,%d)", *d.ClusterScore.AffinityScore, *d.ClusterScore.TopologySpreadScore)
		}
		decisions = append(decisions, sign+d.ClusterName+score)
		reasons[d.ClusterName] = d.Reason
	}
	return decisions, reasons, result
}

const eastern = "affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: east}}}]}}}"

func required(expression string) string {
	return "affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{propertySelector: {matchExpressions: [" + expression + "]}}]}}}"
}

func preferred(terms ...string) string {
	return "placementType: PickN\naffinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" + strings.Join(terms, ", ") + "]}}"
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	const cpu = "resources.kubernetes-fleet.io/available-cpu"
	bound, obsolete := holding("a")["a"], holding("a")["a"]
	obsolete.Current = false
	tests := map[string]struct {
		policy    string
		number    int
		namespace string
		holders   map[string]Holder
		clusters  []Cluster
		want      string
		reasons   map[string]string
	}{
		"required labels": {
			policy: eastern, clusters: []Cluster{cluster("a", "region=east"), cluster("b", "region=west"), cluster("c")}, want: "+a -b -c",
			reasons: map[string]string{
				"b": `cluster does not match the required cluster affinity: label region is "west", and "region=east" is required`,
				"c": `cluster does not match the required cluster affinity: label region is not set, and "region=east" is required`,
			},
		},
		"no terms match every cluster": {
			policy:   "affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: []}}}",
			clusters: []Cluster{cluster("a")}, want: "+a",
		},
		"one of several terms": {
			policy:   "affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {a: b}}}, {labelSelector: {matchExpressions: [{key: c, operator: Exists}]}}]}}}",
			clusters: []Cluster{cluster("a", "a=b"), cluster("b", "c=d"), cluster("c", "e=f")}, want: "+a +b -c",
			reasons: map[string]string{"c": `cluster does not match the required cluster affinity: term 1: label a is not set, and "a=b" is required; term 2: label c is not set, and "c" is required`},
		},
		"a chosen cluster stays when its labels change": {
			policy: eastern, clusters: []Cluster{cluster("a")}, holders: holding("a"), want: "+a",
		},
		"but not when the policy does": {
			policy: eastern, clusters: []Cluster{cluster("a")}, holders: map[string]Holder{"a": obsolete}, want: "-a",
		},
		"required properties": {
			policy:   required("{name: " + cpu + ", operator: Gt, values: ['4']}"),
			clusters: []Cluster{cluster("a", "cpu:4500m"), cluster("b", "cpu:4"), cluster("c")}, want: "+a -b -c",
			reasons: map[string]string{
				"b": "cluster does not match the required cluster affinity: property " + cpu + " is not greater than 4",
				"c": "cluster does not match the required cluster affinity: property " + cpu + " is not reported, and has to be greater than 4",
			},
		},
		"a property that is no quantity": {
			policy: required("{name: example.com/os, operator: Ge, values: ['4']}"), clusters: []Cluster{cluster("a", "example.com/os:linux")}, want: "-a",
			reasons: map[string]string{"a": "cluster does not match the required cluster affinity: property example.com/os is no quantity, and has to be at least 4"},
		},
		"an extended resource": {
			policy:   required("{name: resources.kubernetes-fleet.io/available-nvidia.com/gpu, operator: Ge, values: ['2']}"),
			clusters: []Cluster{cluster("a", "nvidia.com/gpu:2"), cluster("b", "nvidia.com/gpu:1")}, want: "+a -b",
		},
		"a resource with dashes": {
			policy:   required("{name: resources.kubernetes-fleet.io/available-some-dashed-thing, operator: Ge, values: ['2']}"),
			clusters: []Cluster{cluster("a", "some-dashed-thing:2"), cluster("b", "some-dashed-thing:1")}, want: "+a -b",
		},
		"a property that only looks like a resource": {
			policy:   required("{name: resources.kubernetes-fleet.io/spare-cpu, operator: Ge, values: ['2']}"),
			clusters: []Cluster{cluster("a", "resources.kubernetes-fleet.io/spare-cpu:2"), cluster("b", "cpu:2")}, want: "+a -b",
		},
		"the greater name of equals": {policy: "placementType: PickN", number: 2, clusters: []Cluster{cluster("a"), cluster("b"), cluster("c")}, want: "-a(0,0) +b(0,0) +c(0,0)",
			reasons: map[string]string{
				"a": `Cluster "a" does not score high enough (affinity score: 0, topology spread score: 0)`,
				"b": `Successfully scheduled resources for placement in "b" (affinity score: 0, topology spread score: 0): picked by scheduling policy`,
			}},
		"preferred labels": {
			policy: preferred("{weight: 20, preference: {labelSelector: {matchLabels: {a: b}}}}", "{weight: -30, preference: {labelSelector: {matchLabels: {c: d}}}}"), number: 1,
			clusters: []Cluster{cluster("a", "a=b"), cluster("b"), cluster("c", "c=d", "a=b")}, want: "+a(20,0) -b(0,0) -c(-10,0)",
		},
		"the most of a property": {
			policy: preferred("{weight: 50, preference: {propertySorter: {name: " + cpu + ", sortOrder: Descending}}}"), number: 2,
			clusters: []Cluster{cluster("a", "cpu:10"), cluster("b", "cpu:6"), cluster("c", "cpu:2"), cluster("d")}, want: "+a(50,0) +b(25,0) -c(0,0) -d(0,0)",
		},
		"the least of a property": {
			policy: preferred("{weight: 50, preference: {propertySorter: {name: " + cpu + ", sortOrder: Ascending}}}"), number: 2,
			clusters: []Cluster{cluster("a", "cpu:10"), cluster("b", "cpu:7"), cluster("c", "cpu:2"), cluster("d")}, want: "-a(0,0) +b(19,0) +c(50,0) -d(0,0)",
		},
		"a property of which all have the same": {
			policy: preferred("{weight: 50, preference: {propertySorter: {name: " + cpu + ", sortOrder: Ascending}}}"), number: 1,
			clusters: []Cluster{cluster("a", "cpu:1"), cluster("b", "cpu:1")}, want: "-a(0,0) +b(0,0)",
		},
		"a sorter for some": {
			policy: preferred("{weight: 50, preference: {labelSelector: {matchLabels: {a: b}}, propertySorter: {name: " + cpu + ", sortOrder: Descending}}}"), number: 1,
			clusters: []Cluster{cluster("a", "cpu:4", "a=b"), cluster("b", "cpu:8"), cluster("c", "cpu:0")}, want: "+a(25,0) -b(0,0) -c(0,0)",
		},
		"taints": {
			policy:   "tolerations: [{key: a, operator: Equal, value: b}, {key: c, operator: Exists}]",
			clusters: []Cluster{cluster("a", "!a=b", "!c=d"), cluster("b", "!a=c"), cluster("c", "!b"), cluster("d", "!c")}, want: "+a -b -c +d",
			reasons: map[string]string{"b": "taint {a=c:NoSchedule} cannot be tolerated", "c": "taint {b:NoSchedule} cannot be tolerated"},
		},
		"every taint":            {policy: "tolerations: [{operator: Exists}]", clusters: []Cluster{cluster("a", "!a=b")}, want: "+a"},
		"of an effect":           {policy: "tolerations: [{operator: Exists, effect: NoSchedule}]", clusters: []Cluster{cluster("a", "!a=b")}, want: "+a"},
		"a taint after the fact": {policy: "{}", clusters: []Cluster{cluster("a", "!a=b")}, holders: map[string]Holder{"a": obsolete}, want: "+a"},
		"taints and PickFixed":   {policy: "placementType: PickFixed\nclusterNames: [a]", clusters: []Cluster{cluster("a", "!a=b")}, want: "+a"},
		"PickFixed": {
			policy: "placementType: PickFixed\nclusterNames: [d, a, c, a]", clusters: []Cluster{cluster("a"), cluster("b"), cluster("c", "?unhealthy")}, want: "+a -b -c -d",
			reasons: map[string]string{
				"b": "cluster is not among the clusterNames of the policy",
				"c": `Cluster "c" is not eligible for resource placement yet: cluster is not connected to the fleet: unhealthy`,
				"d": `Specified cluster "d" is not found`,
			},
		},
		"PickFixed, cut off":       {policy: "placementType: PickFixed\nclusterNames: [a]", clusters: []Cluster{cluster("a", "?unhealthy")}, holders: holding("a"), want: "+a"},
		"more than there are":      {policy: "placementType: PickN", number: 3, clusters: []Cluster{cluster("a"), cluster("b", "?unhealthy")}, want: "+a(0,0) -b"},
		"PickN, cut off":           {policy: "placementType: PickN", number: 1, clusters: []Cluster{cluster("a", "?unhealthy"), cluster("b")}, holders: holding("a"), want: "+a -b(0,0)"},
		"PickN, gone":              {policy: "placementType: PickN", number: 1, clusters: []Cluster{cluster("b")}, holders: holding("a"), want: "-a +b(0,0)"},
		"what is there goes first": {policy: "placementType: PickN", number: 1, clusters: []Cluster{cluster("a"), cluster("b")}, holders: map[string]Holder{"a": obsolete}, want: "+a(0,0) -b(0,0)"},
		"but not before what is better": {
			policy: preferred("{weight: 1, preference: {labelSelector: {matchLabels: {a: b}}}}"), number: 1,
			clusters: []Cluster{cluster("a"), cluster("b", "a=b")}, holders: map[string]Holder{"a": obsolete}, want: "-a(0,0) +b(1,0)",
		},
		"what is being removed goes last": {
			policy: "placementType: PickN", number: 1, clusters: []Cluster{cluster("a"), cluster("b")},
			holders: map[string]Holder{"b": {State: placementv1.BindingStateBound, Removing: true, Current: true}}, want: "+a(0,0) -b(0,0)",
		},
		"scale in: what was given nothing yet goes first": {
			policy: "placementType: PickN", number: 1, clusters: []Cluster{cluster("a"), cluster("b")},
			holders: map[string]Holder{"a": bound, "b": {State: placementv1.BindingStateScheduled, Current: true, Decision: selected("b")}}, want: "+a -b(0,0)",
		},
		"a namespace that is there": {
			policy: "{}", namespace: "shop", want: "+a -b +c",
			clusters: []Cluster{
				{Name: "a", NamespacesKnown: true, Namespaces: map[string]string{"shop": ""}}, {Name: "b", NamespacesKnown: true}, {Name: "c"}},
			reasons: map[string]string{"b": `cluster has no namespace "shop"; a ClusterResourcePlacement that selects the namespace creates it there`},
		},
		"a namespace that is gone": {policy: "{}", namespace: "shop", holders: holding("a"), clusters: []Cluster{{Name: "a", NamespacesKnown: true}}, want: "-a"},
		"a namespace that is gone, PickN": {
			policy: "placementType: PickN", number: 1, namespace: "shop", holders: holding("a"), clusters: []Cluster{{Name: "a", NamespacesKnown: true}}, want: "+a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask(t, tc.policy, tc.number)
			r.Namespace, r.Holders = tc.namespace, tc.holders
			got, reasons, _ := decide(t, r, tc.clusters...)
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			for c, want := range tc.reasons {
				if reasons[c] != want {
					t.Errorf("reason for %s:\n got %s\nwant %s", c, reasons[c], want)
				}
			}
		})
	}
}

func TestOperators(t *testing.T) {
	t.Parallel()
	for operator, want := range map[string]string{"Gt": "-a -b +c", "Ge": "-a +b +c", "Eq": "-a +b -c", "Ne": "+a -b +c", "Lt": "+a -b -c", "Le": "+a +b -c"} {
		r := ask(t, required("{name: count, operator: "+operator+", values: [1Ki]}"), 0)
		got, _, _ := decide(t, r, cluster("a", "count:1023"), cluster("b", "count:1024"), cluster("c", "count:1025"))
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("operator %s (-want +got):\n%s", operator, diff)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	const hard, soft = "placementType: PickN\ntopologySpreadConstraints: [{topologyKey: region}]", "placementType: PickN\ntopologySpreadConstraints: [{topologyKey: region, whenUnsatisfiable: ScheduleAnyway}]"
	east, west := "region=east", "region=west"
	tests := map[string]struct {
		policy   string
		number   int
		holders  map[string]Holder
		clusters []Cluster
		want     string
		reason   string // of the last that is not chosen
	}{
		"evenly":          {policy: hard, number: 4, clusters: []Cluster{cluster("a", east), cluster("b", east), cluster("c", west), cluster("d", west)}, want: "+a(0,1) +b(0,1) +c(0,-1) +d(0,-1)"},
		"best first":      {policy: hard, number: 1, clusters: []Cluster{cluster("a", east), cluster("b", west)}, want: "-a(0,1) +b(0,-1)"},
		"not beyond skew": {policy: hard, number: 3, clusters: []Cluster{cluster("a", east), cluster("b", west), cluster("c", west), cluster("d", west)}, want: "+a(0,1) -b(0,0) +c(0,-1) +d(0,-1)", reason: `Cluster "b" does not score high enough (affinity score: 0, topology spread score: 0)`},
		"fewer rather than break it": {
			policy: hard, number: 4, clusters: []Cluster{cluster("a", east), cluster("b", west), cluster("c", west), cluster("d", west)},
			want: "+a(0,1) -b(0,0) +c(0,-1) +d(0,-1)", reason: `violated doNotSchedule topology spread constraint "region" (max skew 1)`,
		},
		"anyway": {
			policy: soft, number: 4, clusters: []Cluster{cluster("a", east), cluster("b", west), cluster("c", west), cluster("d", west)},
			want: "+a(0,1) +b(0,-1000) +c(0,-1) +d(0,-1)",
		},
		"without the label": {
			policy: hard, number: 2, clusters: []Cluster{cluster("a", east), cluster("b")}, want: "+a(0,0) -b(0,0)",
			reason: `cluster has no label "region", by which a doNotSchedule topology spread constraint spreads the clusters`,
		},
		"without the label, anyway": {policy: soft, number: 1, clusters: []Cluster{cluster("a", east), cluster("b")}, want: "+a(0,0) -b(0,-1000)"},
		"a region where nothing is fit is no domain": {
			policy: hard, number: 2, clusters: []Cluster{cluster("a", east), cluster("b", east), cluster("c", west, "?unhealthy"), cluster("d", "region=south", "!full")},
			want: "+a(0,0) +b(0,0) -c -d",
		},
		"what is there counts": {policy: hard, number: 2, holders: holding("b"), clusters: []Cluster{cluster("a", east), cluster("b", west), cluster("c", west)}, want: "+a(0,1) +b -c(0,-1)"},
		"scale in keeps the spread": {
			policy: hard, number: 2, holders: holding("a", "b", "c"), clusters: []Cluster{cluster("a", east), cluster("b", west), cluster("c", west)},
			want: "+a -b(0,-1) +c",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask(t, tc.policy, tc.number)
			r.Holders = tc.holders
			got, reasons, result := decide(t, r, tc.clusters...)
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			if unselected := result.Unselected(); tc.reason != "" && reasons[unselected[len(unselected)-1].ClusterName] != tc.reason {
				t.Errorf("got %v, want %s", reasons, tc.reason)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const missing = "could not find all clusters needed as specified by the scheduling policy, found %d cluster(s) instead; %d are asked for"
	tests := map[string]struct {
		policy   string
		number   int
		clusters []Cluster
		want     string
	}{
		"enough":          {policy: "placementType: PickN", number: 1, clusters: []Cluster{cluster("a")}, want: "found all cluster needed as specified by the scheduling policy, found 1 cluster(s)"},
		"all, none there": {policy: "{}", want: "found all cluster needed as specified by the scheduling policy, found 0 cluster(s)"},
		"none asked for":  {policy: "placementType: PickN", clusters: []Cluster{cluster("a")}, want: "found all cluster needed as specified by the scheduling policy, found 0 cluster(s); the policy asks for none"},
		"none named":      {policy: "placementType: PickFixed", clusters: []Cluster{cluster("a")}, want: "found all cluster needed as specified by the scheduling policy, found 0 cluster(s); the policy asks for none"},
		"an empty fleet":  {policy: "placementType: PickN", number: 1, want: fmt.Sprintf(missing, 0, 1) + ", and there are no others in the fleet: join more, or ask for fewer"},
		"reasons, the most frequent first": {
			policy: "placementType: PickN\n" + eastern, number: 3, clusters: []Cluster{cluster("a", "region=east"), cluster("b", "?unhealthy"), cluster("c"), cluster("d")},
			want: fmt.Sprintf(missing, 1, 3) + "; of the others, 2 not matching the required cluster affinity, 1 not connected to the fleet: label or join clusters that match it, see to their agents, or ask for fewer clusters",
		},
		"taints": {
			policy: "placementType: PickN", number: 1, clusters: []Cluster{cluster("a", "!x")},
			want: fmt.Sprintf(missing, 0, 1) + "; of the others, 1 with a taint that is not tolerated: tolerate the taints or take them off, or ask for fewer clusters",
		},
		"a spread over a label that clusters lack": {
			policy: "placementType: PickN\ntopologySpreadConstraints: [{topologyKey: region}]", number: 2, clusters: []Cluster{cluster("a", "region=east"), cluster("b")},
			want: fmt.Sprintf(missing, 1, 2) + "; of the others, 1 violating a doNotSchedule topology spread constraint: " +
				`label the clusters that have no label "region", add clusters where the fewest are, allow more skew or use ScheduleAnyway, or ask for fewer clusters`,
		},
		"a spread over a label that all clusters have": {
			policy: "placementType: PickN\ntopologySpreadConstraints: [{topologyKey: region}]", number: 4,
			clusters: []Cluster{cluster("a", "region=east"), cluster("b", "region=west"), cluster("c", "region=west"), cluster("d", "region=west")},
			want: fmt.Sprintf(missing, 3, 4) + "; of the others, 1 violating a doNotSchedule topology spread constraint: " +
				"add clusters where the fewest are, allow more skew or use ScheduleAnyway, or ask for fewer clusters",
		},
		"PickFixed": {
			policy: "placementType: PickFixed\nclusterNames: [a, b]", clusters: []Cluster{cluster("a")},
			want: fmt.Sprintf(missing, 1, 2) + "; of the others, 1 not found in the fleet: join them or correct clusterNames, or ask for fewer clusters",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, result := decide(t, ask(t, tc.policy, tc.number), tc.clusters...)
			if got := result.Message(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A policy that an API server would not take, and that is there all the same, is a mistake that says what is wrong.
func TestPolicyMistakes(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"placementType: PickMost":                                                                             `placement type "PickMost" is not known to this hub`,
		required("{name: count, operator: Ge, values: []}"):                                                   `required term 1 of the affinity: property "count" is compared with 0 values, and must be with one`,
		required("{name: count, operator: Ge, values: [many]}"):                                               `required term 1 of the affinity: property "count" is compared with "many", which is no quantity`,
		preferred("{weight: 1, preference: {labelSelector: {matchExpressions: [{key: a, operator: Near}]}}}"): `preferred term 1 of the affinity: its label selector is invalid: "Near" is not a valid label selector operator`,
	} {
		if _, err := Decide(ask(t, policy, 1), NewFleet(nil)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", policy, err, want)
		}
	}
}

func TestConcerned(t *testing.T) {
	t.Parallel()
	const cpu = "resources.kubernetes-fleet.io/available-cpu"
	before := cluster("a", "region=east", "cpu:4", "count:1")
	sorted := preferred("{weight: 1, preference: {propertySorter: {name: " + cpu + ", sortOrder: Descending}}}")
	tests := map[string]struct {
		policy, namespace string
		settled           bool
		after             func(*Cluster)
		want              bool
	}{
		"nothing":                     {policy: "{}"},
		"leaving":                     {policy: sorted, settled: true, after: func(c *Cluster) { c.Leaving = true }, want: true},
		"another cluster":             {policy: "placementType: PickFixed", after: func(c *Cluster) { c.UID = "x" }, want: true},
		"health":                      {policy: "{}", after: func(c *Cluster) { c.Disconnected = "x" }, want: true},
		"health, settled":             {policy: sorted, settled: true, after: func(c *Cluster) { c.Disconnected = "x" }},
		"health of one that is named": {policy: "placementType: PickFixed\nclusterNames: [a]", after: func(c *Cluster) { c.Disconnected = "x" }, want: true},
		"health of one that is not":   {policy: "placementType: PickFixed\nclusterNames: [b]", after: func(c *Cluster) { c.Disconnected = "x" }},
		"labels":                      {policy: "{}", after: func(c *Cluster) { c.Labels = nil }, want: true},
		"labels of one that is named": {policy: "placementType: PickFixed\nclusterNames: [a]", after: func(c *Cluster) { c.Labels = nil }},
		"taints":                      {policy: "{}", after: func(c *Cluster) { c.Taints = []clusterv1.Taint{{Key: "a"}} }, want: true},
		"a property it speaks of":     {policy: sorted, after: func(c *Cluster) { *c = cluster("a", "region=east", "cpu:5", "count:1") }, want: true},
		"a property that comes":       {policy: required("{name: m, operator: Ge, values: ['1']}"), after: func(c *Cluster) { *c = cluster("a", "region=east", "cpu:4", "count:1", "m:0") }, want: true},
		"a property it does not":      {policy: sorted, after: func(c *Cluster) { *c = cluster("a", "region=east", "cpu:4", "count:2") }},
		"when it was observed":        {policy: required("{name: count, operator: Ge, values: ['1']}"), after: func(c *Cluster) { c.Properties["count"] = clusterv1.PropertyValue{Value: "1", ObservationTime: noon} }},
		"its namespace":               {policy: "{}", namespace: "shop", after: func(c *Cluster) { c.Namespaces = map[string]string{"shop": ""} }, want: true},
		"another namespace":           {policy: "{}", namespace: "shop", after: func(c *Cluster) { c.Namespaces = map[string]string{"other": ""} }},
		"a namespace of a cluster's":  {policy: "{}", after: func(c *Cluster) { c.Namespaces = map[string]string{"shop": ""} }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := before
			after.Properties = maps.Clone(before.Properties)
			if tc.after != nil {
				tc.after(&after)
			}
			if got := Concerned(ask(t, tc.policy, 1).Policy, tc.namespace, tc.settled, &before, &after); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// TestObservesNamespaces: a cluster whose agent does not tell of all its namespaces is not known to lack one.
func TestObservesNamespaces(t *testing.T) {
	t.Parallel()
	m := member("True", "True", "")
	m.Status.Namespaces = map[string]string{"shop": "", "app": "app-work"}
	for status, want := range map[metav1.ConditionStatus]bool{"": false, metav1.ConditionTrue: true, metav1.ConditionFalse: false} {
		observed := m.DeepCopy()
		if status != "" {
			meta.SetStatusCondition(&observed.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionNamespaceCollectionSucceeded, Status: status, Reason: "R"})
		}
		if c := Observe(observed); c.NamespacesKnown != want || len(c.Namespaces) != 2 {
			t.Errorf("condition %q: observed %+v", status, c)
		}
	}
}

func TestObservesWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	m := member("True", "True", "")
	m.Spec.Taints = []clusterv1.Taint{{Key: "a", Effect: clusterv1.TaintNoSchedule}}
	m.Status.Properties = map[string]clusterv1.PropertyValue{"n": {Value: "1", ObservationTime: metav1.Now()}}
	m.Status.ResourceUsage.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4")}
	c := Observe(m)
	if len(c.Taints) != 1 || c.Properties["n"].Value != "1" || c.Usage.Capacity.Cpu().String() != "4" {
		t.Errorf("observed %+v", c)
	}
	other := c
	other.Taints, other.Properties = nil, nil
	if !c.SameStanding(&other) {
		t.Error("properties and taints are no part of a cluster's standing")
	}
	if other.Labels = nil; c.SameStanding(&other) {
		t.Error("labels are a part of a cluster's standing")
	}
}
