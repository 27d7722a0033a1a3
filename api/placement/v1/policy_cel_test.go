package v1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// withPolicy is a placement with a policy, in YAML's one-line form.
func withPolicy(policy string) string { return aPlacement + "  policy: {" + policy + "}\n" }

// requiring and preferring are policies with one term.
func requiring(term string) string {
	return withPolicy("affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [" + term + "]}}}")
}

func preferring(term string) string {
	return withPolicy("placementType: PickN, numberOfClusters: 1, affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [" + term + "]}}")
}

func comparing(expression string) string {
	return requiring("{propertySelector: {matchExpressions: [" + expression + "]}}")
}

// inEveryVersion are the cases in v1 and in v1beta1 and, those of a placement, in both scopes.
func inEveryVersion(cases map[string]apitest.Case) map[string]apitest.Case {
	all := map[string]apitest.Case{}
	for name, tc := range cases {
		scopes := map[string]string{"": tc.Create}
		if strings.HasPrefix(tc.Create, placementHead) {
			scopes[", in a namespace"] = strings.Replace(tc.Create, "kind: ClusterResourcePlacement\n", "kind: ResourcePlacement\nmetadata: {namespace: default}\n", 1)
		}
		for scope, create := range scopes {
			tc.Create = create
			all[name+scope] = tc
			tc.Create = strings.Replace(create, "placement.kubernetes-fleet.io/v1\n", "placement.kubernetes-fleet.io/v1beta1\n", 1)
			all[name+scope+", in v1beta1"] = tc
		}
	}
	return all
}

func TestPlacementPolicy(t *testing.T) {
	const (
		fixed = "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed"
		every = "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll"
		some  = "clusterNames cannot be set and numberOfClusters must be set when placementType is PickN"
		fixes = "placement type is immutable"
	)
	names := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("c%d", i))
		}
		return "placementType: PickFixed, clusterNames: [" + strings.Join(names, ", ") + "]"
	}
	apitest.Run(t, hub, inEveryVersion(map[string]apitest.Case{
		"PickFixed":                  {Create: withPolicy("placementType: PickFixed, clusterNames: [a, b]")},
		"PickFixed, none":            {Create: withPolicy("placementType: PickFixed, clusterNames: []")},
		"PickFixed, no names":        {Create: withPolicy("placementType: PickFixed")},
		"PickFixed, 100 names":       {Create: withPolicy(names(100))},
		"PickFixed, 101 names":       {Create: withPolicy(names(101)), Refused: "must have at most 100 items"},
		"PickFixed with a number":    {Create: withPolicy("placementType: PickFixed, numberOfClusters: 1"), Refused: fixed},
		"PickFixed with an affinity": {Create: withPolicy("placementType: PickFixed, affinity: {}"), Refused: fixed},
		"PickFixed with tolerations": {Create: withPolicy("placementType: PickFixed, tolerations: [{key: a, operator: Exists}]"), Refused: fixed},
		"PickFixed with a spread":    {Create: withPolicy("placementType: PickFixed, topologySpreadConstraints: [{topologyKey: region}]"), Refused: fixed},
		"PickFixed, one twice":       {Create: withPolicy("placementType: PickFixed, clusterNames: [a, b, a]"), Refused: "clusterNames must name each cluster once"},
		"PickAll with a preference": {
			Create:  withPolicy("affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}"),
			Refused: "preferredDuringSchedulingIgnoredDuringExecution cannot be set when placementType is PickAll",
		},
		"PickAll with no preferences":         {Create: withPolicy("affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}")},
		"PickAll with names":                  {Create: withPolicy("placementType: PickAll, clusterNames: [a]"), Refused: every},
		"PickAll with a number":               {Create: withPolicy("numberOfClusters: 0"), Refused: every},
		"PickAll with a spread":               {Create: withPolicy("topologySpreadConstraints: [{topologyKey: region}]"), Refused: every},
		"PickN":                               {Create: withPolicy("placementType: PickN, numberOfClusters: 3")},
		"PickN, none":                         {Create: withPolicy("placementType: PickN, numberOfClusters: 0")},
		"PickN of -1":                         {Create: withPolicy("placementType: PickN, numberOfClusters: -1"), Refused: "should be greater than or equal to 0"},
		"PickN without a number":              {Create: withPolicy("placementType: PickN"), Refused: some},
		"PickN with names":                    {Create: withPolicy("placementType: PickN, numberOfClusters: 1, clusterNames: [a]"), Refused: some},
		"another number":                      {Create: withPolicy("placementType: PickN, numberOfClusters: 3"), Update: "spec: {policy: {numberOfClusters: 4}}"},
		"other names":                         {Create: withPolicy("placementType: PickFixed, clusterNames: [a]"), Update: "spec: {policy: {clusterNames: [b]}}"},
		"PickN made PickAll":                  {Create: withPolicy("placementType: PickN, numberOfClusters: 3"), Update: "spec: {policy: {placementType: PickAll, numberOfClusters: null}}", Refused: fixes},
		"PickAll made PickFixed":              {Create: withPolicy("placementType: PickAll"), Update: "spec: {policy: {placementType: PickFixed}}", Refused: fixes},
		"a policy that is left out made some": {Create: aPlacement, Update: "spec: {policy: {placementType: PickN, numberOfClusters: 1}}"},
	}))
}

func TestClusterAffinity(t *testing.T) {
	const (
		sorter   = "propertySorter is not allowed in requiredDuringSchedulingIgnoredDuringExecution"
		selector = "propertySelector is not allowed in preferredDuringSchedulingIgnoredDuringExecution"
		sort     = "propertySorter: {name: kubernetes-fleet.io/node-count, sortOrder: Descending}"
		compare  = "{name: kubernetes-fleet.io/node-count, operator: Ge, values: ['3']}"
	)
	times := func(n int, what string) string { return strings.TrimSuffix(strings.Repeat(what+", ", n), ", ") }
	apitest.Run(t, hub, inEveryVersion(map[string]apitest.Case{
		"no terms":                     {Create: requiring("")},
		"terms that are left out":      {Create: withPolicy("affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}"), Refused: "clusterSelectorTerms: Required value"},
		"by label and property":        {Create: requiring("{labelSelector: {matchLabels: {region: east}}, propertySelector: {matchExpressions: [" + compare + "]}}")},
		"10 terms":                     {Create: requiring(times(10, "{labelSelector: {}}"))},
		"11 terms":                     {Create: requiring(times(11, "{labelSelector: {}}")), Refused: "must have at most 10 items"},
		"a wrong label":                {Create: requiring("{labelSelector: {matchLabels: {region: 'a b'}}}"), Refused: "should match"},
		"a required sorter":            {Create: requiring("{" + sort + "}"), Refused: sorter},
		"a preferred selector":         {Create: preferring("{weight: 1, preference: {propertySelector: {matchExpressions: [" + compare + "]}}}"), Refused: selector},
		"a preferred label and sorter": {Create: preferring("{weight: 1, preference: {labelSelector: {matchLabels: {region: east}}, " + sort + "}}")},
		"a weight of 100":              {Create: preferring("{weight: 100, preference: {}}")},
		"a weight of 101":              {Create: preferring("{weight: 101, preference: {}}"), Refused: "should be less than or equal to 100"},
		"a weight of -100":             {Create: preferring("{weight: -100, preference: {}}")},
		"a weight of -101":             {Create: preferring("{weight: -101, preference: {}}"), Refused: "should be greater than or equal to -100"},
		"no weight":                    {Create: preferring("{preference: {}}"), Refused: "weight: Required value"},
		"20 preferences":               {Create: preferring(times(20, "{weight: 1, preference: {}}"))},
		"21 preferences":               {Create: preferring(times(21, "{weight: 1, preference: {}}")), Refused: "must have at most 20 items"},
		"an order that is none":        {Create: preferring("{weight: 1, preference: {propertySorter: {name: a, sortOrder: Random}}}"), Refused: `Unsupported value: "Random"`},
		"a sorter without a name":      {Create: preferring("{weight: 1, preference: {propertySorter: {name: '', sortOrder: Ascending}}}"), Refused: "should be at least 1 chars long"},
	}))
}

func TestPropertySelector(t *testing.T) {
	cases := map[string]apitest.Case{
		"an extended resource":    {Create: comparing("{name: resources.kubernetes-fleet.io/total-nvidia.com/gpu, operator: Ge, values: ['1']}")},
		"a resource with dashes":  {Create: comparing("{name: resources.kubernetes-fleet.io/available-nvidia-gpu-shared, operator: Gt, values: ['0']}")},
		"with a unit":             {Create: comparing("{name: resources.kubernetes-fleet.io/available-memory, operator: Ge, values: [16Gi]}")},
		"no quantity":             {Create: comparing("{name: a, operator: Ge, values: [many]}"), Refused: "values must be quantities, such as 4, 0.5 or 16Gi"},
		"no values":               {Create: comparing("{name: a, operator: Ge, values: []}"), Refused: "values must hold exactly one value"},
		"two values":              {Create: comparing("{name: a, operator: Ge, values: ['1', '2']}"), Refused: "must have at most 1 item"},
		"an operator that is not": {Create: comparing("{name: a, operator: In, values: ['1']}"), Refused: `Unsupported value: "In"`},
		"no name":                 {Create: comparing("{name: '', operator: Ge, values: ['1']}"), Refused: "should be at least 1 chars long"},
		"20 expressions":          {Create: comparing(strings.TrimSuffix(strings.Repeat("{name: a, operator: Ge, values: ['1']}, ", 20), ", "))},
		"21 expressions":          {Create: comparing(strings.TrimSuffix(strings.Repeat("{name: a, operator: Ge, values: ['1']}, ", 21), ", ")), Refused: "must have at most 20 items"},
	}
	for _, operator := range []string{"Gt", "Ge", "Eq", "Ne", "Lt", "Le"} {
		cases["operator "+operator] = apitest.Case{Create: comparing("{name: a, operator: " + operator + ", values: ['1']}")}
	}
	apitest.Run(t, hub, inEveryVersion(cases))
}

func TestTopologySpreadConstraint(t *testing.T) {
	spread := func(constraint string) string {
		return withPolicy("placementType: PickN, numberOfClusters: 2, topologySpreadConstraints: [" + constraint + "]")
	}
	constraint := func(key string, value any) map[string]any {
		c := map[string]any{"maxSkew": int64(1), "topologyKey": "region", "whenUnsatisfiable": "DoNotSchedule"}
		c[key] = value
		return c
	}
	want := func(key string, value any) map[string]any {
		return map[string]any{"spec.policy.topologySpreadConstraints": []any{constraint(key, value)}}
	}
	apitest.Run(t, hub, inEveryVersion(map[string]apitest.Case{
		"defaults":           {Create: spread("{topologyKey: region}"), Want: want("maxSkew", int64(1))},
		"a skew of 3":        {Create: spread("{topologyKey: region, maxSkew: 3}"), Want: want("maxSkew", int64(3))},
		"a skew of 0":        {Create: spread("{topologyKey: region, maxSkew: 0}"), Refused: "should be greater than or equal to 1"},
		"anyway":             {Create: spread("{topologyKey: region, whenUnsatisfiable: ScheduleAnyway}"), Want: want("whenUnsatisfiable", "ScheduleAnyway")},
		"a word that is not": {Create: spread("{topologyKey: region, whenUnsatisfiable: Never}"), Refused: `Unsupported value: "Never"`},
		"no key":             {Create: spread("{maxSkew: 1}"), Refused: "topologyKey: Required value"},
		"an empty key":       {Create: spread("{topologyKey: ''}"), Refused: "should be at least 1 chars long"},
		"21 constraints":     {Create: spread(strings.TrimSuffix(strings.Repeat("{topologyKey: region}, ", 21), ", ")), Refused: "must have at most 20 items"},
	}))
}

func TestToleration(t *testing.T) {
	tolerating := func(toleration string) string { return withPolicy("tolerations: [" + toleration + "]") }
	want := func(key string, value any) map[string]any {
		toleration := map[string]any{"key": "a", "operator": "Equal"}
		toleration[key] = value
		return map[string]any{"spec.policy.tolerations": []any{toleration}}
	}
	apitest.Run(t, hub, inEveryVersion(map[string]apitest.Case{
		"defaults":               {Create: tolerating("{key: a}"), Want: want("operator", "Equal")},
		"a value":                {Create: tolerating("{key: a, value: b}"), Want: want("value", "b")},
		"an effect":              {Create: tolerating("{key: a, effect: NoSchedule}"), Want: want("effect", "NoSchedule")},
		"every taint":            {Create: tolerating("{operator: Exists}")},
		"a key that exists":      {Create: tolerating("{key: example.com/a, operator: Exists}")},
		"a value, and Exists":    {Create: tolerating("{key: a, operator: Exists, value: b}"), Refused: "value must be empty when operator is Exists"},
		"no key, and Equal":      {Create: tolerating("{value: b}"), Refused: "operator must be Exists when key is empty"},
		"an empty key":           {Create: tolerating("{key: '', value: b}"), Refused: "operator must be Exists when key is empty"},
		"a key that is none":     {Create: tolerating("{key: a b}"), Refused: "a toleration's key must be written like the key of a label"},
		"a value that is none":   {Create: tolerating("{key: a, value: a b}"), Refused: "a toleration's value must be written like the value of a label"},
		"another effect":         {Create: tolerating("{key: a, effect: NoExecute}"), Refused: `Unsupported value: "NoExecute"`},
		"another operator":       {Create: tolerating("{key: a, operator: In}"), Refused: `Unsupported value: "In"`},
		"100 tolerations":        {Create: tolerating(strings.TrimSuffix(strings.Repeat("{key: a}, ", 100), ", "))},
		"101 tolerations":        {Create: tolerating(strings.TrimSuffix(strings.Repeat("{key: a}, ", 101), ", ")), Refused: "must have at most 100 items"},
		"PickN, with toleration": {Create: withPolicy("placementType: PickN, numberOfClusters: 1, tolerations: [{key: a}]")},
	}))
}

// A snapshot's policy may lack what a placement's must have.
func TestPolicySnapshotOfPickN(t *testing.T) {
	const snapshot = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterSchedulingPolicySnapshot\nspec: {policyHash: YWJj, policy: {placementType: PickN}}\n"
	apitest.Run(t, hub, inEveryVersion(map[string]apitest.Case{
		"without its number": {Create: snapshot},
		"a decision with a score": {
			Create:       snapshot,
			UpdateStatus: fmt.Sprintf("status: {targetClusters: [{clusterName: a, selected: true, reason: r, clusterScore: {affinityScore: %d, priorityScore: %d}}]}", 10, -1),
			Want: map[string]any{"status.targetClusters": []any{map[string]any{"clusterName": "a", "selected": true, "reason": "r",
				"clusterScore": map[string]any{"affinityScore": int64(10), "priorityScore": int64(-1)}}}},
		},
	}))
}
