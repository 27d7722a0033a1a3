package v1_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

func TestDeleteStrategy(t *testing.T) {
	const at = "spec.strategy.deleteStrategy.propagationPolicy"
	with := func(text string) string { return aPlacement + "  strategy: {deleteStrategy: " + text + "}\n" }
	apitest.Run(t, hub, inEveryVersion(map[string]apitest.Case{
		"default":        {Create: aPlacement, Want: map[string]any{at: "Delete", "metadata.generation": int64(1)}},
		"an empty one":   {Create: with("{}"), Want: map[string]any{at: "Delete"}},
		"Delete":         {Create: with("{propagationPolicy: Delete}"), Want: map[string]any{at: "Delete"}},
		"Abandon":        {Create: with("{propagationPolicy: Abandon}"), Want: map[string]any{at: "Abandon"}},
		"another policy": {Create: with("{propagationPolicy: Keep}"), Refused: `Unsupported value: "Keep"`},
		"no policy":      {Create: with("{propagationPolicy: \"\"}"), Refused: `Unsupported value: ""`},
		"another field":  {Create: with("{policy: Abandon}"), Refused: `unknown field "spec.strategy.deleteStrategy.policy"`},
		"it can be changed": {
			Create: with("{propagationPolicy: Abandon}"),
			Update: "spec: {strategy: {deleteStrategy: {propagationPolicy: Delete}}}",
			Want:   map[string]any{at: "Delete"},
		},
	}))
}
