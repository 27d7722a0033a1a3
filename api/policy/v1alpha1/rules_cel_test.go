package v1alpha1_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// policy is a PropagationPolicy with some more fields.
func policy(fields string) string {
	return `
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
` + fields + "\n"
}

func placed(fields string) string { return policy("  placement: {" + fields + "}") }

// selecting is a PropagationPolicy with one selector.
func selecting(selector string) string {
	return `
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {namespace: default}
spec: {resourceSelectors: [` + selector + "]}\n"
}

func TestPropagationPolicy(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"defaults": {Create: policy(""), Want: map[string]any{
			"spec.preemption": "Never", "spec.conflictResolution": "Abort", "spec.schedulerName": "default-scheduler", "metadata.generation": int64(1),
		}},
		"a division's defaults": {Create: placed("replicaScheduling: {}, spreadConstraints: [{}]"), Want: map[string]any{
			"spec.placement.replicaScheduling.replicaSchedulingType": "Divided",
		}},
		"all that the second seed has": {Create: policy("  preserveResourcesOnDeletion: false\n  placement: {clusterAffinity: {clusterNames: [member1, member2]}, replicaScheduling: " +
			"{replicaDivisionPreference: Weighted, replicaSchedulingType: Divided, weightPreference: {dynamicWeight: AvailableReplicas}}}")},
		"no selector":                {Create: "{apiVersion: policy.one.alibabacloud.com/v1alpha1, kind: PropagationPolicy, metadata: {name: none, namespace: default}, spec: {resourceSelectors: []}}", Refused: "should have at least 1 items"},
		"no version":                 {Create: selecting("{apiVersion: apps/, kind: Deployment}"), Refused: "apiVersion must be a group, a slash and a version"},
		"a name and labels":          {Create: selecting("{apiVersion: v1, kind: ConfigMap, name: a, labelSelector: {}}"), Refused: "name and labelSelector exclude each other"},
		"a key that is none":         {Create: selecting("{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {'a b': c}}}"), Refused: "each key of matchLabels must be a label key"},
		"an expression's key":        {Create: selecting("{apiVersion: v1, kind: ConfigMap, labelSelector: {matchExpressions: [{key: 'a b', operator: Exists}]}}"), Refused: "key must be a label key"},
		"an expression's values":     {Create: selecting("{apiVersion: v1, kind: ConfigMap, labelSelector: {matchExpressions: [{key: a, operator: In}]}}"), Refused: "values must be given for the operators In and NotIn"},
		"preemption without names":   {Create: selecting("{apiVersion: v1, kind: ConfigMap}], preemption: Always, dependentOverrides: ["), Refused: "preemption Always needs a name"},
		"another scheduler":          {Create: policy("  schedulerName: mine"), Refused: "schedulerName can only be default-scheduler"},
		"nodes that are bought":      {Create: policy("  autoScaling: {ecsProvision: true}"), Refused: "ecsProvision is not supported"},
		"no nodes that are bought":   {Create: policy("  autoScaling: {ecsProvision: false}")},
		"two ways to suspend":        {Create: policy("  suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [a]}}"), Refused: "dispatching and dispatchingOnClusters exclude each other"},
		"not suspended":              {Create: policy("  suspension: {dispatching: false}"), Refused: "dispatching can only be true"},
		"gang scheduling":            {Create: placed("replicaScheduling: {customSchedulingType: Gang}"), Refused: "unknown field"},
		"failover":                   {Create: policy("  failover: {application: {}}"), Refused: "unknown field"},
		"two sorts of affinity":      {Create: placed("clusterAffinity: {}, clusterAffinities: [{affinityName: a}]"), Refused: "clusterAffinity and clusterAffinities exclude each other"},
		"two groups of one name":     {Create: placed("clusterAffinities: [{affinityName: a}, {affinityName: a}]"), Refused: "two groups with one affinityName"},
		"a field that is none":       {Create: placed("clusterAffinity: {fieldSelector: {matchExpressions: [{key: city, operator: In, values: [a]}]}}"), Refused: "Unsupported value"},
		"spread by two":              {Create: placed("spreadConstraints: [{spreadByField: cluster, spreadByLabel: a}]"), Refused: "spreadByField and spreadByLabel exclude each other"},
		"at most fewer":              {Create: placed("spreadConstraints: [{minGroups: 3, maxGroups: 2}]"), Refused: "maxGroups is smaller than minGroups"},
		"regions without clusters":   {Create: placed("spreadConstraints: [{spreadByField: region}]"), Refused: "need one"},
		"spread twice":               {Create: placed("spreadConstraints: [{spreadByField: cluster}, {spreadByField: cluster}]"), Refused: "two constraints by the same"},
		"a toleration's operator":    {Create: placed("clusterTolerations: [{key: a, operator: Lt, value: '1'}]"), Refused: "operator of a toleration must be Exists or Equal"},
		"a toleration's value":       {Create: placed("clusterTolerations: [{key: a, operator: Exists, value: b}]"), Refused: "value of a toleration must be empty"},
		"a toleration without a key": {Create: placed("clusterTolerations: [{operator: Equal}]"), Refused: "operator of a toleration without a key must be Exists"},
		"a toleration's effect":      {Create: placed("clusterTolerations: [{key: a, effect: Never}]"), Refused: "effect of a toleration must be"},
		"a weight of nought":         {Create: placed("replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}"), Refused: "greater than or equal to 1"},
		"a weight beyond":            {Create: placed("replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 99999999999}]}}"), Refused: "less than or equal to"},
		"a priority beyond":          {Create: policy("  priority: 99999999999"), Refused: "spec.priority"},
	})
}

// overriding is an OverridePolicy with one rule.
func overriding(overrider string) string {
	return `
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: OverridePolicy
metadata: {namespace: default}
spec: {overrideRules: [{overriders: {` + overrider + "}}]}\n"
}

func TestOverridePolicy(t *testing.T) {
	spec := func(text string) string {
		return "{apiVersion: policy.one.alibabacloud.com/v1alpha1, kind: ClusterOverridePolicy, metadata: {}, spec: " + text + "}"
	}
	plaintext := func(path string) string { return overriding("plaintext: [{path: " + path + ", operator: remove}]") }
	apitest.Run(t, hub, map[string]apitest.Case{
		"a rule":              {Create: plaintext("/spec/paused")},
		"the older way":       {Create: spec("{targetCluster: {clusterNames: [a]}, overriders: {}}")},
		"nothing":             {Create: spec("{}"), Refused: "give overrideRules"},
		"both ways":           {Create: spec("{overrideRules: [{overriders: {}}], overriders: {}}"), Refused: "exclude each other"},
		"no pointer":          {Create: plaintext("spec"), Refused: "must be a JSON pointer to a field of the object"},
		"the kind":            {Create: plaintext("/kind"), Refused: "cannot lead to apiVersion or kind"},
		"the name":            {Create: plaintext("/metadata/name"), Refused: "labels and annotations alone"},
		"the status":          {Create: plaintext("/status/replicas"), Refused: "cannot lead into the status"},
		"an image's value":    {Create: overriding("imageOverrider: [{component: Tag, operator: replace}]"), Refused: "value is needed to add or replace a part of an image"},
		"a command replaced":  {Create: overriding("commandOverrider: [{containerName: a, operator: replace, value: [b]}]"), Refused: "operator must be add or remove"},
		"neither JSON nor it": {Create: overriding("fieldOverrider: [{fieldPath: /data/a}]"), Refused: "give either json or yaml"},
		"no pointer in it":    {Create: overriding("fieldOverrider: [{fieldPath: /data/a, json: [{subPath: b, operator: remove}]}]"), Refused: "subPath must be a JSON pointer into the text"},
	})
}

func TestObjectPlacement(t *testing.T) {
	const object = "{apiVersion: policy.one.alibabacloud.com/v1alpha1, kind: ObjectPlacement, metadata: {namespace: default}, " +
		"spec: {resource: {apiVersion: v1, kind: ConfigMap, namespace: default, name: a}, placement: {clusterAffinity: {clusterNames: [a]}}}}"
	apitest.Run(t, hub, map[string]apitest.Case{
		"as the hub makes it": {Create: object},
		"for another object":  {Create: object, Update: "spec: {resource: {name: b}}", Refused: "resource is immutable"},
	})
}
