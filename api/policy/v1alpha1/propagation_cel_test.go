package v1alpha1_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

const (
	propagation        = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: PropagationPolicy\nmetadata: {namespace: default}\n"
	clusterPropagation = "apiVersion: policy.one.alibabacloud.com/v1alpha1\nkind: ClusterPropagationPolicy\n"
	aSelector          = "{apiVersion: apps/v1, kind: Deployment, name: web}"
)

// repeat is a list's inside: an item n times, with commas between.
func repeat(item string, n int) string { return strings.Repeat(item+", ", n) }

// onBoth runs cases for a kind in namespaces and its cluster-scoped twin. A case's texts are what stands in spec.
func onBoth(t *testing.T, namespaced, cluster string, cases map[string]apitest.Case) {
	t.Helper()
	for _, head := range []string{namespaced, cluster} {
		of := maps.Clone(cases)
		for name, tc := range of {
			tc.Create = head + "spec: {" + tc.Create + "}"
			of[name] = tc
		}
		t.Run(apitest.Parse(t, head).GetKind(), func(t *testing.T) { apitest.Run(t, hub, of) })
	}
}

// with is a spec that selects something and says more.
func with(more string) string { return "resourceSelectors: [" + aSelector + "], " + more }

func TestPropagationDefaults(t *testing.T) {
	onBoth(t, propagation, clusterPropagation, map[string]apitest.Case{
		"all": {
			Create: with(""),
			Want: map[string]any{
				"metadata.generation": int64(1), "spec.preemption": "Never", "spec.conflictResolution": "Abort", "spec.schedulerName": "default-scheduler",
				"spec.placement.replicaScheduling": nil, "spec.priority": nil, "spec.propagateDeps": nil, "spec.association": nil,
				"spec.preserveResourcesOnDeletion": nil, "spec.activationPreference": nil, "spec.suspension": nil,
			},
		},
		"how replicas are divided": {
			Create: with("placement: {replicaScheduling: {}}"),
			Want:   map[string]any{"spec.placement.replicaScheduling": map[string]any{"replicaSchedulingType": "Divided"}},
		},
		"a spread constraint": {
			Create: with("placement: {spreadConstraints: [{maxGroups: 3}]}"),
			Want:   map[string]any{"spec.placement.spreadConstraints": []any{map[string]any{"minGroups": int64(1), "maxGroups": int64(3)}}},
		},
		"nothing of what is said is lost": {
			Create: `resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: default, labelSelector: {matchLabels: {a: b}}}], association: true, propagateDeps: true,
  priority: -3, preemption: Never, dependentOverrides: [one], schedulerName: default-scheduler, conflictResolution: Overwrite, activationPreference: Lazy,
  suspension: {dispatchingOnClusters: {clusterNames: [rome]}, scheduling: true}, preserveResourcesOnDeletion: true, autoScaling: {ecsProvision: false}`,
			Want: map[string]any{
				"spec.association": true, "spec.propagateDeps": true, "spec.priority": int64(-3), "spec.dependentOverrides": []any{"one"}, "spec.conflictResolution": "Overwrite",
				"spec.activationPreference": "Lazy", "spec.preserveResourcesOnDeletion": true, "spec.autoScaling.ecsProvision": false, "spec.suspension.scheduling": true,
				"spec.suspension.dispatchingOnClusters.clusterNames": []any{"rome"},
			},
		},
	})
}

// The second seed's policies are accepted to the letter, and nothing is added to what they say of replicas.
func TestTheSeedsPolicies(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"of the Deployment": {
			Create: `
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: web-demo-pp, namespace: default}
spec:
  preserveResourcesOnDeletion: false
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: web-demo
  placement:
    replicaScheduling:
      replicaDivisionPreference: Weighted
      replicaSchedulingType: Divided
      weightPreference:
        dynamicWeight: AvailableReplicas
    clusterAffinity:
      clusterNames:
        - c7ecd9e1d8b9e4f3c8b1a1e0f1a2b3c4d
        - member2`,
			Want: map[string]any{"spec.placement.replicaScheduling": map[string]any{
				"replicaDivisionPreference": "Weighted", "replicaSchedulingType": "Divided", "weightPreference": map[string]any{"dynamicWeight": "AvailableReplicas"},
			}},
		},
		"of the Service": {
			Create: propagation + "spec: {preserveResourcesOnDeletion: false, resourceSelectors: [{apiVersion: v1, kind: Service, name: web}], placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}}",
			Want:   map[string]any{"spec.placement.replicaScheduling": map[string]any{"replicaSchedulingType": "Duplicated"}},
		},
	})
}

func TestPropagationRules(t *testing.T) {
	selecting := func(selector string) string { return "resourceSelectors: [" + selector + "]" }
	cases := map[string]apitest.Case{
		"no selectors":                    {Create: "priority: 1", Refused: "spec.resourceSelectors: Required value"},
		"an empty list of selectors":      {Create: "resourceSelectors: []", Refused: "spec.resourceSelectors in body should have at least 1 items"},
		"50 selectors":                    {Create: selecting(repeat(aSelector, 50))},
		"51 selectors":                    {Create: selecting(repeat(aSelector, 51)), Refused: "must have at most 50 items"},
		"a selector without a kind":       {Create: selecting("{apiVersion: v1}"), Refused: "kind: Required value"},
		"a selector with an empty kind":   {Create: selecting(`{apiVersion: v1, kind: ""}`), Refused: "kind in body should be at least 1 chars long"},
		"a selector without a version":    {Create: selecting("{kind: Deployment}"), Refused: "apiVersion: Required value"},
		"an empty version":                {Create: selecting(`{apiVersion: "", kind: Deployment}`), Refused: "apiVersion must be a group, a slash and a version"},
		"a group without a version":       {Create: selecting("{apiVersion: apps/, kind: Deployment}"), Refused: "apiVersion must be a group, a slash and a version"},
		"a version of too many parts":     {Create: selecting("{apiVersion: apps/v1/web, kind: Deployment}"), Refused: "apiVersion must be a group, a slash and a version"},
		"a version of a long group":       {Create: selecting("{apiVersion: batch.volcano.sh/v1alpha1, kind: Job}")},
		"a name and labels":               {Create: selecting("{apiVersion: v1, kind: ConfigMap, name: a, labelSelector: {matchLabels: {a: b}}}"), Refused: "name and labelSelector exclude each other"},
		"an empty name and labels":        {Create: selecting(`{apiVersion: v1, kind: ConfigMap, name: "", labelSelector: {matchLabels: {a: b}}}`)},
		"the whole kind":                  {Create: selecting("{apiVersion: v1, kind: ConfigMap}")},
		"Always, each named":              {Create: with("preemption: Always")},
		"Always, one without a name":      {Create: selecting(aSelector+", {apiVersion: v1, kind: ConfigMap}") + ", preemption: Always", Refused: "preemption Always needs a name in each of resourceSelectors"},
		"Always, one with an empty name":  {Create: selecting(`{apiVersion: v1, kind: ConfigMap, name: ""}`) + ", preemption: Always", Refused: "preemption Always needs a name in each of resourceSelectors"},
		"Sometimes":                       {Create: with("preemption: Sometimes"), Refused: `Unsupported value: "Sometimes"`},
		"another scheduler":               {Create: with("schedulerName: mine"), Refused: "schedulerName can only be default-scheduler"},
		"an empty scheduler":              {Create: with(`schedulerName: ""`), Refused: "schedulerName can only be default-scheduler"},
		"Merge":                           {Create: with("conflictResolution: Merge"), Refused: `Unsupported value: "Merge"`},
		"at once":                         {Create: with(`activationPreference: ""`)},
		"Eager":                           {Create: with("activationPreference: Eager"), Refused: `Unsupported value: "Eager"`},
		"100 overrides":                   {Create: with("dependentOverrides: [" + repeat("a", 100) + "]")},
		"101 overrides":                   {Create: with("dependentOverrides: [" + repeat("a", 101) + "]"), Refused: "must have at most 100 items"},
		"an override without a name":      {Create: with(`dependentOverrides: [""]`), Refused: "should be at least 1 chars long"},
		"nodes that are bought":           {Create: with("autoScaling: {ecsProvision: true}"), Refused: "ecsProvision is not supported: the fleet buys no nodes"},
		"the greatest priority":           {Create: with("priority: 2147483647"), Want: map[string]any{"spec.priority": int64(2147483647)}},
		"a priority beyond":               {Create: with("priority: 2147483648"), Refused: "priority"},
		"a priority far below":            {Create: with("priority: -2147483649"), Refused: "priority"},
		"a fraction of priority":          {Create: with("priority: 1.5"), Refused: "priority"},
		"suspended everywhere":            {Create: with("suspension: {dispatching: true}")},
		"not suspended":                   {Create: with("suspension: {dispatching: false}"), Refused: "dispatching can only be true; take it off"},
		"suspended on no cluster":         {Create: with("suspension: {dispatchingOnClusters: {}}"), Refused: "clusterNames: Required value"},
		"suspended on an empty list":      {Create: with("suspension: {dispatchingOnClusters: {clusterNames: []}}"), Refused: "should have at least 1 items"},
		"suspended in two ways":           {Create: with("suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}}"), Refused: "dispatching and dispatchingOnClusters exclude each other"},
		"suspended on 101 clusters":       {Create: with("suspension: {dispatchingOnClusters: {clusterNames: [" + repeat("a", 101) + "]}}"), Refused: "must have at most 100 items"},
		"decisions suspended":             {Create: with("suspension: {scheduling: true}")},
		"decisions and sending suspended": {Create: with("suspension: {scheduling: true, dispatching: true}")},
	}
	// What is not supported is not in the schema, and a strict write says so.
	for _, unknown := range []string{
		"failover: {cluster: {}}", "schedulePriority: {}", "placement: {workloadAffinity: {}}", "placement: {replicaScheduling: {customSchedulingType: Gang}}",
		"placement: {clusterAffinities: [{affinityName: a, overflowAffinities: []}]}",
	} {
		cases["unknown: "+unknown] = apitest.Case{Create: with(unknown), Refused: "unknown field"}
	}
	onBoth(t, propagation, clusterPropagation, cases)
}

func TestPlacementRules(t *testing.T) {
	placed := func(text string, args ...any) string { return with("placement: {" + fmt.Sprintf(text, args...) + "}") }
	group := func(n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "{affinityName: g%d, clusterNames: [a]}, ", i)
		}
		return "clusterAffinities: [" + all.String() + "]"
	}
	spread := func(constraints string) string { return placed("spreadConstraints: [%s]", constraints) }
	tolerate := func(toleration string) string { return placed("clusterTolerations: [%s]", toleration) }
	weights := func(text string) string { return placed("replicaScheduling: {weightPreference: {%s}}", text) }
	const (
		perCluster = "need one with spreadByField cluster beside them"
		twice      = "spreadConstraints has two constraints by the same"
	)
	onBoth(t, propagation, clusterPropagation, map[string]apitest.Case{
		"affinity and affinities":          {Create: placed("clusterAffinity: {}, %s", group(1)), Refused: "clusterAffinity and clusterAffinities exclude each other"},
		"10 groups":                        {Create: placed("%s", group(10))},
		"11 groups":                        {Create: placed("%s", group(11)), Refused: "must have at most 10 items"},
		"a group without a name":           {Create: placed("clusterAffinities: [{clusterNames: [a]}]"), Refused: "affinityName: Required value"},
		"a group with an empty name":       {Create: placed(`clusterAffinities: [{affinityName: ""}]`), Refused: "at least 1 chars long"},
		"a name of 32":                     {Create: placed("clusterAffinities: [{affinityName: %s}]", strings.Repeat("a", 32))},
		"a name of 33":                     {Create: placed("clusterAffinities: [{affinityName: %s}]", strings.Repeat("a", 33)), Refused: "may not be more than 32"},
		"a name that is no label's":        {Create: placed(`clusterAffinities: [{affinityName: "no good"}]`), Refused: "affinityName in body should match"},
		"two groups of a name":             {Create: placed("clusterAffinities: [{affinityName: a}, {affinityName: b}, {affinityName: a}]"), Refused: "two groups with one affinityName"},
		"100 names":                        {Create: placed("clusterAffinity: {clusterNames: [%s], exclude: [%s]}", repeat("a", 100), repeat("b", 100))},
		"101 names":                        {Create: placed("clusterAffinity: {clusterNames: [%s]}", repeat("a", 101)), Refused: "must have at most 100 items"},
		"101 excluded":                     {Create: placed("clusterAffinity: {exclude: [%s]}", repeat("a", 101)), Refused: "must have at most 100 items"},
		"labels":                           {Create: placed("clusterAffinity: {labelSelector: {matchLabels: {example.com/env: prod}, matchExpressions: [{key: a, operator: Exists}]}}")},
		"a key that is none":               {Create: placed(`clusterAffinity: {labelSelector: {matchLabels: {"no good": prod}}}`), Refused: "each key of matchLabels must be a label key"},
		"a key in an expression":           {Create: placed(`clusterAffinity: {labelSelector: {matchExpressions: [{key: "no good", operator: Exists}]}}`), Refused: "key must be a label key"},
		"In without values":                {Create: placed("clusterAffinity: {labelSelector: {matchExpressions: [{key: a, operator: In}]}}"), Refused: "values must be given for the operators In and NotIn"},
		"fields":                           {Create: placed("clusterAffinity: {fieldSelector: {matchExpressions: [{key: provider, operator: In, values: [a]}, {key: region, operator: NotIn, values: [b]}, {key: zone, operator: In, values: [c, d]}]}}")},
		"another field":                    {Create: placed("clusterAffinity: {fieldSelector: {matchExpressions: [{key: country, operator: In, values: [a]}]}}"), Refused: `Unsupported value: "country"`},
		"another operator":                 {Create: placed("clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: Exists, values: [a]}]}}"), Refused: `Unsupported value: "Exists"`},
		"a field without values":           {Create: placed("clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: In, values: []}]}}"), Refused: "should have at least 1 items"},
		"11 fields":                        {Create: placed("clusterAffinity: {fieldSelector: {matchExpressions: [%s]}}", repeat("{key: zone, operator: In, values: [a]}", 11)), Refused: "must have at most 10 items"},
		"51 values":                        {Create: placed("clusterAffinity: {fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [%s]}]}}", repeat("a", 51)), Refused: "must have at most 50 items"},
		"tolerations":                      {Create: tolerate("{key: a, operator: Equal, value: b, effect: NoSchedule}, {key: a, value: b}, {operator: Exists}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}")},
		"a toleration by order":            {Create: tolerate(`{key: a, operator: Gt, value: "1"}`), Refused: "operator of a toleration must be Exists or Equal"},
		"Exists with a value":              {Create: tolerate("{key: a, operator: Exists, value: b}"), Refused: "value of a toleration must be empty where its operator is Exists"},
		"a toleration without a key":       {Create: tolerate("{value: b}"), Refused: "operator of a toleration without a key must be Exists"},
		"another effect":                   {Create: tolerate("{key: a, operator: Exists, effect: NoSelect}"), Refused: "effect of a toleration must be NoSchedule, PreferNoSchedule or NoExecute"},
		"100 tolerations":                  {Create: tolerate(repeat("{operator: Exists}", 100))},
		"101 tolerations":                  {Create: tolerate(repeat("{operator: Exists}", 101)), Refused: "must have at most 100 items"},
		"spread over clusters":             {Create: spread("{spreadByField: cluster, minGroups: 2, maxGroups: 2}")},
		"spread over regions":              {Create: spread("{spreadByField: region}, {spreadByField: cluster}")},
		"over clusters, which goes unsaid": {Create: spread("{spreadByField: zone, maxGroups: 2}, {maxGroups: 4}")},
		"spread over regions alone":        {Create: spread("{spreadByField: region}"), Refused: perCluster},
		"over regions and a label":         {Create: spread("{spreadByField: region}, {spreadByLabel: rack}"), Refused: perCluster},
		"spread over a label alone":        {Create: spread("{spreadByLabel: rack}")},
		"spread over labels":               {Create: spread("{spreadByLabel: rack}, {spreadByLabel: room}")},
		"by field and label":               {Create: spread("{spreadByField: cluster, spreadByLabel: rack}"), Refused: "spreadByField and spreadByLabel exclude each other"},
		"another field to spread by":       {Create: spread("{spreadByField: country}"), Refused: `Unsupported value: "country"`},
		"two by cluster":                   {Create: spread("{spreadByField: cluster}, {spreadByField: cluster, maxGroups: 3}"), Refused: twice},
		"two by cluster, one unsaid":       {Create: spread("{spreadByField: cluster}, {maxGroups: 3}"), Refused: twice},
		"two by a label":                   {Create: spread("{spreadByLabel: rack}, {spreadByLabel: rack}"), Refused: twice},
		"more at least than at most":       {Create: spread("{minGroups: 3, maxGroups: 2}"), Refused: "maxGroups is smaller than minGroups"},
		"as many at least as at most":      {Create: spread("{minGroups: 3, maxGroups: 3}")},
		"no most":                          {Create: spread("{minGroups: 3, maxGroups: 0}")},
		"a negative least":                 {Create: spread("{minGroups: -1}"), Refused: "should be greater than or equal to 0"},
		"a negative most":                  {Create: spread("{maxGroups: -1}"), Refused: "should be greater than or equal to 0"},
		"too great a least":                {Create: spread("{minGroups: 10001}"), Refused: "should be less than or equal to 10000"},
		"11 constraints":                   {Create: spread(repeat("{}", 11)), Refused: "must have at most 10 items"},
		"Aggregated":                       {Create: placed("replicaScheduling: {replicaDivisionPreference: Aggregated}")},
		"another type":                     {Create: placed("replicaScheduling: {replicaSchedulingType: Halved}"), Refused: `Unsupported value: "Halved"`},
		"another preference":               {Create: placed("replicaScheduling: {replicaDivisionPreference: Even}"), Refused: `Unsupported value: "Even"`},
		"another weight":                   {Create: weights("dynamicWeight: Nodes"), Refused: `Unsupported value: "Nodes"`},
		"static and dynamic weights":       {Create: weights("dynamicWeight: AvailableReplicas, staticWeightList: [{targetCluster: {}, weight: 1}]")},
		"a weight of 0":                    {Create: weights("staticWeightList: [{targetCluster: {}, weight: 0}]"), Refused: "should be greater than or equal to 1"},
		"the greatest weight":              {Create: weights("staticWeightList: [{targetCluster: {}, weight: 2147483647}]")},
		"a weight beyond":                  {Create: weights("staticWeightList: [{targetCluster: {}, weight: 2147483648}]"), Refused: "should be less than or equal to 2147483647"},
		"a weight of no clusters":          {Create: weights("staticWeightList: [{weight: 1}]"), Refused: "targetCluster: Required value"},
		"30 weights":                       {Create: weights("staticWeightList: [" + repeat("{targetCluster: {}, weight: 1}", 30) + "]")},
		"31 weights":                       {Create: weights("staticWeightList: [" + repeat("{targetCluster: {}, weight: 1}", 31) + "]"), Refused: "must have at most 30 items"},
	})
}
