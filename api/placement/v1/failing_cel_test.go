package v1_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

func TestMaxFailures(t *testing.T) {
	const form = "maxFailures must be a number of clusters without quotes, such as 2, or a whole percentage from 0% to 100%, such as 10%"
	cases := map[string]apitest.Case{
		"absent": {Create: stages("{name: canary}")},
	}
	for _, accepted := range []string{"0", "1", "1000000", "0%", "5%", "100%"} {
		cases[accepted] = apitest.Case{Create: stage("maxFailures: " + accepted)}
	}
	for value, refused := range map[string]string{
		"-1":      "maxFailures must be at least 0",
		"1000001": "maxFailures must be at most 1000000",
		"101%":    form,
		"01%":     form,
		`"5"`:     form,
		"some":    form,
		"1.5":     "must be of type integer,string",
	} {
		cases[value] = apitest.Case{Create: stage("maxFailures: " + value), Refused: refused}
	}
	apitest.Run(t, hub, cases)
}

func TestProgressDeadline(t *testing.T) {
	const (
		form   = "progressDeadline must be hours, minutes and seconds, each a number and its unit h, m or s, such as 1h30m, 90s or 1.5h"
		bounds = "progressDeadline must be at least 1s and at most 87600h"
	)
	cases := map[string]apitest.Case{"absent": {Create: stages("{name: canary}")}}
	for _, accepted := range []string{"1s", "10m", "1h30m", "1.5h", "87600h"} {
		cases[accepted] = apitest.Case{Create: stage("progressDeadline: " + accepted)}
	}
	for value, refused := range map[string]string{
		"0s": bounds, "0.5s": bounds, "87601h": bounds, "99999999999999s": bounds,
		"1d": form, "-1m": form, `""`: form, "500ms": form, "soon": form,
	} {
		cases[value] = apitest.Case{Create: stage("progressDeadline: " + value), Refused: refused}
	}
	apitest.Run(t, hub, cases)
}

func TestClusterActions(t *testing.T) {
	const (
		only   = "clusterActions can only be added to at their end"
		skip   = "{cluster: member1, action: Skip, reason: known, requestedBy: alice}"
		retry  = "{cluster: member1, action: Retry}"
		asked  = "  state: Run\n  clusterActions: [" + skip + "]"
		change = "spec: {clusterActions: "
	)
	apitest.Run(t, hub, map[string]apitest.Case{
		"asked for when it is created": {Create: run(asked)},
		"asked for later":              {Create: run(""), Update: change + "[" + skip + "]}"},
		"another added":                {Create: run(asked), Update: change + "[" + skip + ", " + retry + "]}"},
		"the same twice":               {Create: run(asked), Update: change + "[" + skip + ", " + skip + "]}"},
		"one put before":               {Create: run(asked), Update: change + "[" + retry + ", " + skip + "]}", Refused: only},
		"one changed":                  {Create: run(asked), Update: change + "[" + strings.Replace(skip, "known", "other", 1) + "]}", Refused: only},
		"one given to somebody else":   {Create: run(asked), Update: change + "[" + strings.Replace(skip, "alice", "bob", 1) + "]}", Refused: only},
		"all removed":                  {Create: run(asked), Update: change + "null}", Refused: only},
		"the list emptied":             {Create: run(asked), Update: change + "[]}", Refused: only},
		"all else can change":          {Create: run(asked), Update: "spec: {state: Stop}"},
		"an action that is not known":  {Create: run("  clusterActions: [{cluster: member1, action: Undo}]"), Refused: `Unsupported value: "Undo"`},
		"no action":                    {Create: run("  clusterActions: [{cluster: member1}]"), Refused: "action: Required value"},
		"no cluster":                   {Create: run("  clusterActions: [{action: Skip}]"), Refused: "cluster: Required value"},
		"an empty cluster":             {Create: run(`  clusterActions: [{cluster: "", action: Skip}]`), Refused: "should be at least 1 chars long"},
		"a reason of 201 characters": {
			Create:  run("  clusterActions: [{cluster: member1, action: Skip, reason: " + strings.Repeat("r", 201) + "}]"),
			Refused: "may not be more than 200",
		},
		"200 of them": {Create: run("  clusterActions: [" + strings.Repeat(retry+",", 199) + retry + "]")},
		"201 of them": {Create: run("  clusterActions: [" + strings.Repeat(retry+",", 200) + retry + "]"), Refused: "must have at most 200 items"},
	})
}

func TestCancelledRun(t *testing.T) {
	const (
		cancelled = "  state: Run\n  cancel: {reason: wrong image, requestedBy: alice}"
		stays     = "the run was cancelled, which cannot be taken back or changed; create a new run"
	)
	apitest.Run(t, hub, map[string]apitest.Case{
		"cancelled":              {Create: run("  state: Run"), Update: "spec: {cancel: {reason: wrong image}}"},
		"without a reason":       {Create: run("  state: Stop"), Update: "spec: {cancel: {}}"},
		"cancelled with a state": {Create: run("  state: Run"), Update: "spec: {state: Stop, cancel: {}}"},
		"taken back":             {Create: run(cancelled), Update: "spec: {cancel: null}", Refused: stays},
		"another reason":         {Create: run(cancelled), Update: "spec: {cancel: {reason: other}}", Refused: stays},
		"by somebody else":       {Create: run(cancelled), Update: "spec: {cancel: {requestedBy: bob}}", Refused: stays},
		"resumed":                {Create: run(cancelled), Update: "spec: {state: Stop}", Refused: "the run was cancelled and cannot be resumed; create a new run"},
		"labels may change":      {Create: run(cancelled), Update: "metadata: {labels: {a: b}}"},
		"a reason of 201 characters": {
			Create: run("  cancel: {reason: " + strings.Repeat("r", 201) + "}"), Refused: "may not be more than 200",
		},
	})
}
