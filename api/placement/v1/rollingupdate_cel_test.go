package v1_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

func rollingUpdate(config string) string {
	return aPlacement + "  strategy: {rollingUpdate: " + config + "}"
}

func TestRollingUpdateDefaults(t *testing.T) {
	const field = "spec.strategy.rollingUpdate"
	apitest.Run(t, hub, map[string]apitest.Case{
		"left out": {Create: aPlacement, Want: map[string]any{field: nil}},
		"empty": {
			Create: rollingUpdate("{}"),
			Want: map[string]any{field: map[string]any{
				"maxUnavailable": "25%", "maxSurge": "25%", "unavailablePeriodSeconds": int64(60),
			}},
		},
		"one given": {
			Create: rollingUpdate("{maxUnavailable: 1}"),
			Want: map[string]any{field: map[string]any{
				"maxUnavailable": int64(1), "maxSurge": "25%", "unavailablePeriodSeconds": int64(60),
			}, "metadata.generation": int64(1)},
		},
		"with External": {Create: aPlacement + "  strategy: {type: External, rollingUpdate: {maxUnavailable: 1}}"},
		"an edit": {
			Create: aPlacement,
			Update: "spec: {strategy: {rollingUpdate: {maxUnavailable: 50%}}}",
			Want:   map[string]any{field + ".maxUnavailable": "50%"},
		},
		"another field": {Create: rollingUpdate("{partition: 1}"), Refused: `unknown field "spec.strategy.rollingUpdate.partition"`},
	})
}

func TestRollingUpdateBounds(t *testing.T) {
	cases := map[string]apitest.Case{}
	for _, name := range []string{"maxUnavailable", "maxSurge"} {
		bounds := name + " must be from 0 to 1000000"
		form := name + " must be a number of clusters, such as 2, or a whole percentage from 0% to 100%, such as 25%"
		for _, accepted := range []string{"0", "1", "1000000", "0%", "1%", "25%", "100%", `"5"`, `"1000000"`, "05%"} {
			cases[name+" "+accepted] = apitest.Case{Create: rollingUpdate("{" + name + ": " + accepted + "}")}
		}
		for value, refused := range map[string]string{
			"-1":                  bounds,
			"1000001":             bounds,
			"2147483648":          bounds, // beyond what a client could read
			"9223372036854775807": "must be of type integer,string",
			`"1000001"`:           bounds,
			`"99999999999"`:       "may not be more than 7",
			"101%":                form,
			"1000%":               form,
			"1.5%":                form,
			`"-1"`:                form,
			"half":                form,
			`""`:                  form,
			"1e30":                "must be of type integer,string",
			"1.5":                 "must be of type integer,string",
			"[1]":                 "must be of type integer,string",
		} {
			cases[name+" "+value] = apitest.Case{Create: rollingUpdate("{" + name + ": " + value + "}"), Refused: refused}
		}
	}
	for _, accepted := range []string{"0", "1", "31536000"} {
		cases["period "+accepted] = apitest.Case{Create: rollingUpdate("{unavailablePeriodSeconds: " + accepted + "}")}
	}
	for value, refused := range map[string]string{
		"-1":         "should be greater than or equal to 0",
		"31536001":   "should be less than or equal to 31536000",
		"2147483648": "should be less than or equal to 31536000",
		"1m":         "must be of type integer",
	} {
		cases["period "+value] = apitest.Case{Create: rollingUpdate("{unavailablePeriodSeconds: " + value + "}"), Refused: refused}
	}
	apitest.Run(t, hub, cases)
}
