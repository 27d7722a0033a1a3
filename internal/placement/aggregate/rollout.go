package aggregate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// phases are those of a Kruise Rollout, the one that most wants looking at first.
var phases = []string{"Terminating", "Progressing", "Disabling", "Disabled", "Healthy", "Initial"}

// rollout tells of a Kruise Rollout in how many clusters it is at rest, and what it waits for where it is not. Clusters
// without its workload are not counted. Steps and states of clusters cannot be added up, and are left out.
func rollout(_ map[string]any, items []Item) map[string]any {
	worst, healthy, idle := "", 0, 0
	var waiting []string
	for i := range items {
		phase := text(items[i].Status["phase"])
		if phase == "" {
			continue
		}
		if worst == "" || slices.Index(phases, phase) < slices.Index(phases, worst) {
			worst = phase
		}
		switch phase {
		case "Healthy":
			healthy++
			continue
		case "Initial":
			idle++
			continue
		}
		waiting = append(waiting, fmt.Sprintf("%s: %s", items[i].Cluster, cmp.Or(state(items[i].Status), phase)))
	}
	message := fmt.Sprintf("%d of %d clusters are at rest", healthy, len(items)-idle)
	if idle > 0 {
		message += fmt.Sprintf(", %d more have no such workload", idle)
	}
	status := map[string]any{"message": message}
	if worst != "" {
		status["phase"] = worst
	}
	const most = 10
	if more := len(waiting) - most; more > 0 {
		waiting = append(waiting[:most], fmt.Sprintf("and %d more", more))
	}
	if len(waiting) > 0 {
		status["message"] = message + "; " + strings.Join(waiting, ", ")
	}
	return status
}

// state is how far a release in one cluster has come.
func state(status map[string]any) string {
	if text(status["phase"]) != "Progressing" {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("step %d %s", number(status["currentStepIndex"]), text(status["currentStepState"])))
}
