package v1_test

import (
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

func TestEviction(t *testing.T) {
	const head = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementEviction, spec: "
	valid := head + "{placementName: web, clusterName: member1}}"
	apitest.Run(t, hub, map[string]apitest.Case{
		"both names":         {Create: valid},
		"no placement":       {Create: head + "{clusterName: member1}}", Refused: "spec.placementName: Required value"},
		"no cluster":         {Create: head + "{placementName: web}}", Refused: "spec.clusterName: Required value"},
		"an empty name":      {Create: head + `{placementName: "", clusterName: member1}}`, Refused: "should be at least 1 chars long"},
		"a long name":        {Create: head + "{placementName: " + strings.Repeat("x", 255) + ", clusterName: member1}}"},
		"a name too long":    {Create: head + "{placementName: " + strings.Repeat("x", 256) + ", clusterName: member1}}", Refused: "may not be more than 255"},
		"another placement":  {Create: valid, Update: "spec: {placementName: other}", Refused: "The PlacementName field is immutable"},
		"another cluster":    {Create: valid, Update: "spec: {clusterName: other}", Refused: "The ClusterName field is immutable"},
		"a field of no name": {Create: head + "{placementName: web, clusterName: member1, force: true}}", Refused: `unknown field "spec.force"`},
	})
}

func TestDisruptionBudget(t *testing.T) {
	const head = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementDisruptionBudget, spec: "
	cases := map[string]apitest.Case{
		"empty": {Create: head + "{}}"},
		"both":  {Create: head + "{maxUnavailable: 1, minAvailable: 1}}", Refused: "Both MaxUnavailable and MinAvailable cannot be specified"},
	}
	for _, field := range []string{"maxUnavailable", "minAvailable"} {
		bounds := field + " must be from 0 to 1000000"
		form := field + " must be a number without quotes, such as 2, or a whole percentage from 0% to 100%, such as 25%"
		for _, accepted := range []string{"0", "1", "1000000", "0%", "25%", "100%"} {
			cases[field+" "+accepted] = apitest.Case{Create: head + "{" + field + ": " + accepted + "}}"}
		}
		for value, refused := range map[string]string{
			"-1": bounds, "1000001": bounds, "2147483648": bounds, "101%": form, `"5"`: form, "half": form, `""`: form, "1.5": "must be of type integer,string",
			"10000%": "may not be more than 4",
		} {
			cases[field+" "+value] = apitest.Case{Create: head + "{" + field + ": " + value + "}}", Refused: refused}
		}
	}
	apitest.Run(t, hub, cases)
}
