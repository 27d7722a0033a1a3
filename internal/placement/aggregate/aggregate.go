// Package aggregate makes of the statuses that one object has in its clusters the status that its original on the hub shows.
// A cluster that is not heard of counts for nothing: what it last said is not how it is.
package aggregate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Item is what is known of the object in one cluster.
type Item struct {
	// Cluster is the cluster's name.
	Cluster string
	// Status is the object's status there; nil where the cluster has not reported one, or is not heard of.
	Status map[string]any
	// Observed tells that the cluster has what the hub's object says now, and that its own controllers have looked at it.
	Observed bool
}

// rule makes a status of those of the clusters; before is the hub's so far. It may change what before holds.
type rule func(before map[string]any, items []Item) map[string]any

var rules = map[schema.GroupKind]rule{
	{Group: "apps", Kind: "Deployment"}:  sums("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"),
	{Group: "apps", Kind: "StatefulSet"}: sums("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
	{Group: "apps", Kind: "ReplicaSet"}:  sums("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
	{Group: "apps", Kind: "DaemonSet"}: sums("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
		"updatedNumberScheduled", "numberAvailable", "numberUnavailable"),
	{Group: "policy", Kind: "PodDisruptionBudget"}:          sums("expectedPods", "disruptionsAllowed", "currentHealthy", "desiredHealthy"),
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: sums("currentReplicas", "desiredReplicas"),
	{Group: "batch", Kind: "Job"}:                           job,
	{Kind: "Service"}:                                       loadBalancer,
	{Group: "networking.k8s.io", Kind: "Ingress"}:           loadBalancer,
	{Kind: "PersistentVolumeClaim"}:                         claim,
	{Group: "rollouts.kruise.io", Kind: "Rollout"}:          rollout,
}

// required are counters that the API wants in a status even where they are nought.
var required = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "StatefulSet"}:                    {"replicas"},
	{Group: "apps", Kind: "ReplicaSet"}:                     {"replicas"},
	{Group: "apps", Kind: "DaemonSet"}:                      {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"},
	{Group: "policy", Kind: "PodDisruptionBudget"}:          {"expectedPods", "disruptionsAllowed", "currentHealthy", "desiredHealthy"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {"desiredReplicas"},
}

// unobserved are kinds whose status tells of no observed generation.
var unobserved = map[schema.GroupKind]bool{
	{Group: "batch", Kind: "Job"}: true, {Kind: "Service"}: true, {Group: "networking.k8s.io", Kind: "Ingress"}: true, {Kind: "PersistentVolumeClaim"}: true,
}

// Knows tells whether there is a rule for a kind.
func Knows(kind schema.GroupKind) bool { return rules[kind] != nil }

// Status returns the status of the hub's object, which is of a kind that Aggregate knows and of a generation, where before is
// what it has. Its observedGeneration moves on to that generation only once every cluster has observed it. The items are in the
// order of their clusters' names, and before is left as it is.
func Status(kind schema.GroupKind, generation int64, before map[string]any, items []Item) map[string]any {
	before = runtime.DeepCopyJSON(before)
	items = slices.SortedFunc(slices.Values(items), func(a, b Item) int { return cmp.Compare(a.Cluster, b.Cluster) })
	status := rules[kind](before, items)
	for _, counter := range required[kind] {
		if _, there := status[counter]; !there {
			status[counter] = int64(0)
		}
	}
	if unobserved[kind] {
		return status
	}
	was, _ := before["observedGeneration"].(int64)
	observed := min(was, generation)
	if len(items) > 0 && !slices.ContainsFunc(items, func(i Item) bool { return !i.Observed }) {
		observed = generation
	}
	if observed > 0 {
		status["observedGeneration"] = observed
	}
	return status
}

// sums adds counters up. One that is nought is left out, as the API does.
func sums(counters ...string) rule {
	return func(before map[string]any, items []Item) map[string]any {
		status := keep(before, "conditions", "selector", "collisionCount")
		for _, counter := range counters {
			if total := sum(items, counter); total > 0 {
				status[counter] = total
			}
		}
		return status
	}
}

func sum(items []Item, counter string) int64 {
	total := int64(0)
	for i := range items {
		total += number(items[i].Status[counter])
	}
	return total
}

// number reads a count; what is none counts for nothing.
func number(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	default:
		return 0
	}
}

// keep is a status with some fields of another.
func keep(before map[string]any, fields ...string) map[string]any {
	status := map[string]any{}
	for _, field := range fields {
		if value, there := before[field]; there {
			status[field] = value
		}
	}
	return status
}

// loadBalancer has the addresses of all clusters, each once.
func loadBalancer(before map[string]any, items []Item) map[string]any {
	status := keep(before, "conditions")
	found := map[string]any{}
	for i := range items {
		balancer, _ := items[i].Status["loadBalancer"].(map[string]any)
		addresses, _ := balancer["ingress"].([]any)
		for _, address := range addresses {
			if text, err := json.Marshal(address); err == nil { // maps are written in the order of their keys
				found[string(text)] = address
			}
		}
	}
	if len(found) == 0 {
		status["loadBalancer"] = map[string]any{}
		return status
	}
	texts := make([]string, 0, len(found))
	for text := range found {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, strings.Compare)
	all := make([]any, 0, len(texts))
	for _, text := range texts {
		all = append(all, found[text])
	}
	status["loadBalancer"] = map[string]any{"ingress": all}
	return status
}

// claim is Lost where it is so in one cluster, else what it is in the first where it is not Bound.
func claim(before map[string]any, items []Item) map[string]any {
	status := keep(before, "conditions", "accessModes", "capacity")
	phase := ""
	for i := range items {
		switch there, _ := items[i].Status["phase"].(string); {
		case there == "Lost":
			phase = there
		case phase == "Lost" || there == "":
		case phase == "" || phase == "Bound":
			phase = there
		}
		if items[i].Status == nil && phase == "Bound" {
			phase = "Pending"
		}
	}
	status["phase"] = cmp.Or(phase, "Pending")
	return status
}
