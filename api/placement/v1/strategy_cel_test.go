package v1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

const strategyHead = `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterStagedUpdateStrategy
`

// stages is a strategy with these stages.
func stages(stages ...string) string {
	return strategyHead + "spec:\n  stages:\n  - " + strings.Join(stages, "\n  - ") + "\n"
}

// stage is a strategy with one stage that has these fields.
func stage(fields string) string { return stages("{name: canary, " + fields + "}") }

// theSeedsStrategy is the first seed's.
const theSeedsStrategy = strategyHead + `
spec:
  stages:
  - name: staging
    labelSelector: {matchLabels: {environment: staging}}
    afterStageTasks: [{type: TimedWait, waitTime: 1m}]
    maxConcurrency: 1
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
    sortingLabelKey: order
    beforeStageTasks: [{type: Approval}]
    maxConcurrency: 50%
`

func manyStages(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("{name: stage%d}", i)
	}
	return stages(all...)
}

func TestClusterStagedUpdateStrategy(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"the first seed's strategy": {
			Create: theSeedsStrategy,
			Want:   map[string]any{"metadata.generation": int64(1)},
		},
		"no stages":                   {Create: strategyHead + "spec: {stages: []}", Refused: "should have at least 1 items"},
		"31 stages":                   {Create: manyStages(31)},
		"32 stages":                   {Create: manyStages(32), Refused: "must have at most 31 items"},
		"stages of the same name":     {Create: stages("{name: canary}", "{name: canary}"), Refused: "stage names must be unique"},
		"a stage without a name":      {Create: stages("{labelSelector: {}}"), Refused: "stages[0].name: Required value"},
		"a name of 63 characters":     {Create: stages("{name: " + strings.Repeat("s", 63) + "}")},
		"a name of 64 characters":     {Create: stages("{name: " + strings.Repeat("s", 64) + "}"), Refused: "may not be more than 63"},
		"a name with a dash":          {Create: stages("{name: us-east}"), Refused: "a stage's name must be lower-case letters and digits only, such as canary or useast1; it can have no dash"},
		"a name with a capital":       {Create: stages("{name: Canary}"), Refused: "a stage's name must be lower-case letters and digits only"},
		"an empty name":               {Create: stages(`{name: ""}`), Refused: "a stage's name must be lower-case letters and digits only"},
		"a sorting key with a domain": {Create: stage("sortingLabelKey: example.com/order")},
		"an empty sorting key":        {Create: stage(`sortingLabelKey: ""`), Refused: "should be at least 1 chars long"},
		"a sorting key that is none":  {Create: stage(`sortingLabelKey: "no key"`), Refused: "sortingLabelKey must be a label key"},
		"a wrong label selector": {
			Create:  stage("labelSelector: {matchExpressions: [{key: tier, operator: In}]}"),
			Refused: "values must be given for the operators In and NotIn",
		},
		"a field that is not known": {
			Create:  stage("failureBudget: 1"),
			Refused: `unknown field "spec.stages[0].failureBudget"`,
		},
		"a strategy can be changed": {
			Create: theSeedsStrategy,
			Update: "spec: {stages: [{name: all, labelSelector: {}}]}",
		},
	})
}

func TestMaxConcurrency(t *testing.T) {
	const form = "maxConcurrency must be a number of clusters without quotes, such as 2, or a whole percentage from 1% to 100%, such as 50%"
	cases := map[string]apitest.Case{
		"absent": {Create: stages("{name: canary}")},
	}
	for _, accepted := range []string{"1", "5000", "1%", "50%", "100%"} {
		cases[accepted] = apitest.Case{Create: stage("maxConcurrency: " + accepted)}
	}
	for value, refused := range map[string]string{
		"0":           "maxConcurrency must be at least 1",
		"-1":          "maxConcurrency must be at least 1",
		"99999999999": "maxConcurrency must be at most 1000000",
		"0%":          form,
		"101%":        form,
		"1.5%":        form,
		"half":        form,
		`""`:          form,
		"1e30":        "must be of type integer,string",
		`"5"`:         form,
		"01%":         form,
		"1.5":         "must be of type integer,string",
		"[1, 2]":      "must be of type integer,string",
	} {
		cases[value] = apitest.Case{Create: stage("maxConcurrency: " + value), Refused: refused}
	}
	apitest.Run(t, hub, cases)
}

func TestMaxConcurrencyDefault(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"one cluster at a time": {
			Create: stages("{name: canary}"),
			Want:   map[string]any{"spec.stages": []any{map[string]any{"name": "canary", "maxConcurrency": int64(1)}}},
		},
	})
}

func TestStageTasks(t *testing.T) {
	const (
		approval = "{type: Approval}"
		minute   = "{type: TimedWait, waitTime: 1m}"
	)
	before := func(tasks ...string) string { return stage("beforeStageTasks: [" + strings.Join(tasks, ", ") + "]") }
	after := func(tasks ...string) string { return stage("afterStageTasks: [" + strings.Join(tasks, ", ") + "]") }
	apitest.Run(t, hub, map[string]apitest.Case{
		"approval before":               {Create: before(approval)},
		"a wait before":                 {Create: before(minute), Refused: "BeforeStageTaskType cannot be TimedWait"},
		"approval with a wait before":   {Create: before("{type: Approval, waitTime: 1m}"), Refused: "BeforeStageTaskType is Approval, waitTime is not allowed"},
		"two approvals before":          {Create: before(approval, approval), Refused: "must have at most 1 item"},
		"approval and wait after":       {Create: after(approval, minute)},
		"three tasks after":             {Create: after(approval, minute, minute), Refused: "must have at most 2 items"},
		"two waits after":               {Create: after(minute, minute), Refused: "afterStageTasks cannot have two tasks of the same type"},
		"two approvals after":           {Create: after(approval, approval), Refused: "afterStageTasks cannot have two tasks of the same type"},
		"approval with a wait after":    {Create: after("{type: Approval, waitTime: 1m}"), Refused: "AfterStageTaskType is Approval, waitTime is not allowed"},
		"a wait of no length after":     {Create: after("{type: TimedWait}"), Refused: "AfterStageTaskType is TimedWait, waitTime is required"},
		"a task of an unknown type":     {Create: after("{type: Pause}"), Refused: `Unsupported value: "Pause"`},
		"a task without a type":         {Create: after("{waitTime: 1m}"), Refused: "type: Required value"},
		"no tasks at all, said in full": {Create: stage("beforeStageTasks: [], afterStageTasks: []")},
	})
}

func TestWaitTime(t *testing.T) {
	const (
		form = "waitTime must be hours, minutes and seconds, each a number and its unit h, m or s, such as 1h30m, 90s or 1.5h; a day is 24h"
		most = "waitTime must be more than zero and at most 87600h, which is ten years; to wait for somebody's word, use a task of type Approval"
	)
	cases := map[string]apitest.Case{}
	for _, accepted := range []string{"1s", "90s", "1m", "1h30m", "1h0m5s", "1.5h", "0h1m", "87600h", "604800s", "0.33333333h"} {
		cases[accepted] = apitest.Case{Create: stage("afterStageTasks: [{type: TimedWait, waitTime: " + accepted + "}]")}
	}
	for value, refused := range map[string]string{
		"0s":       most,
		"0h0m":     most,
		`"0"`:      form,
		"1d":       form,
		"100ms":    form,
		"-1m":      form,
		"1 m":      form,
		`""`:       form,
		"60":       "must be of type string",
		"9999999h": most,
		"87601h":   most,
		// More than Go, and than CEL, can hold.
		"99999999999999999999h": most,
		"1m99999999999999m":     most,
		"99999999999999.5s":     most,
	} {
		cases[value] = apitest.Case{Create: stage("afterStageTasks: [{type: TimedWait, waitTime: " + value + "}]"), Refused: refused}
	}
	apitest.Run(t, hub, cases)
}
