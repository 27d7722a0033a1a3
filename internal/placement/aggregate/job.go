package aggregate

import (
	"fmt"
	"slices"
	"strings"
)

// The conditions by which a Job says that it has ended, and those that the API wants before each.
const (
	jobComplete  = "Complete"
	jobSucceeded = "SuccessCriteriaMet"
	jobFailed    = "Failed"
	jobFailing   = "FailureTarget"
)

// job has ended once all of its clusters' have, and failed where one has. One that has ended stays as it is: the API lets nothing
// of it be changed.
func job(before map[string]any, items []Item) map[string]any {
	if _, ended := condition(before, jobComplete); ended {
		return before
	}
	if _, ended := condition(before, jobFailed); ended {
		return before
	}
	status := keep(before, "conditions", "startTime", "uncountedTerminatedPods")
	for _, counter := range []string{"active", "succeeded", "failed", "ready", "terminating"} {
		total := sum(items, counter)
		if counter == "succeeded" || counter == "failed" { // the API lets neither shrink, as they do where a cluster falls silent
			total = max(total, number(before[counter]))
		}
		if total > 0 {
			status[counter] = total
		}
	}
	if _, set := status["startTime"]; !set {
		if start := earliest(items, "startTime"); start != "" {
			status["startTime"] = start
		}
	}
	complete, failed := 0, []string(nil)
	last := ""
	for i := range items {
		if at, ended := condition(items[i].Status, jobFailed); ended {
			failed, last = append(failed, items[i].Cluster), max(last, at)
		} else if at, ended := condition(items[i].Status, jobComplete); ended {
			complete, last = complete+1, max(last, at)
		}
	}
	if len(items) == 0 || complete+len(failed) < len(items) || status["startTime"] == nil {
		return status
	}
	for _, running := range []string{"active", "ready", "terminating", "uncountedTerminatedPods"} {
		delete(status, running)
	}
	if len(failed) > 0 {
		message := fmt.Sprintf("Job failed in clusters %s", strings.Join(failed, ", "))
		end(status, last, "JobFailed", message, jobFailing, jobFailed)
		return status
	}
	status["completionTime"] = max(latest(items, "completionTime"), text(status["startTime"]))
	end(status, last, "Completed", "Job completed in all clusters", jobSucceeded, jobComplete)
	return status
}

// end sets conditions true.
func end(status map[string]any, at, reason, message string, types ...string) {
	conditions, _ := status["conditions"].([]any)
	conditions = slices.DeleteFunc(slices.Clone(conditions), func(c any) bool {
		fields, _ := c.(map[string]any)
		return slices.Contains(types, text(fields["type"]))
	})
	for _, t := range types {
		conditions = append(conditions, map[string]any{
			"type": t, "status": "True", "reason": reason, "message": message, "lastProbeTime": at, "lastTransitionTime": at,
		})
	}
	status["conditions"] = conditions
}

// condition returns since when a condition is true.
func condition(status map[string]any, conditionType string) (since string, isTrue bool) {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if fields, _ := c.(map[string]any); fields["type"] == conditionType && fields["status"] == "True" {
			return text(fields["lastTransitionTime"]), true
		}
	}
	return "", false
}

// earliest and latest compare times as the API writes them, which sort as text.
func earliest(items []Item, field string) string {
	found := ""
	for i := range items {
		if at := text(items[i].Status[field]); at != "" && (found == "" || at < found) {
			found = at
		}
	}
	return found
}

func latest(items []Item, field string) string {
	found := ""
	for i := range items {
		found = max(found, text(items[i].Status[field]))
	}
	return found
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
