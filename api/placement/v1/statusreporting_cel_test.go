package v1_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

func TestStatusReportingScope(t *testing.T) {
	const accessible = "\n  statusReportingScope: NamespaceAccessible\n"
	const one = "when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required"
	apitest.Run(t, hub, map[string]apitest.Case{
		"for the cluster alone by default": {Create: aPlacement, Want: map[string]any{"spec.statusReportingScope": "ClusterScopeOnly"}},
		"for one namespace":                {Create: aPlacement + accessible},
		"for one namespace and more": {
			Create: aPlacement + "  - {group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: web}" + accessible,
		},
		"for two namespaces": {Create: aPlacement + "  - {group: \"\", version: v1, kind: Namespace, name: shop}" + accessible, Refused: one},
		"for none": {
			Create: selecting("{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: web}") + accessible, Refused: one,
		},
		"for two, of which one is added": {
			Create:  aPlacement + accessible,
			Update:  `spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}, {group: "", version: v1, kind: Namespace, name: shop}]}`,
			Refused: one,
		},
		"for everybody":  {Create: aPlacement + "\n  statusReportingScope: Everybody", Refused: `Unsupported value: "Everybody"`},
		"opened later":   {Create: aPlacement, Update: "spec: {statusReportingScope: NamespaceAccessible}", Refused: "statusReportingScope is immutable"},
		"closed later":   {Create: aPlacement + accessible, Update: "spec: {statusReportingScope: null}", Refused: "statusReportingScope is immutable"},
		"said once more": {Create: aPlacement, Update: "spec: {statusReportingScope: ClusterScopeOnly}"},
	})
}

func TestClusterResourcePlacementStatus(t *testing.T) {
	const head = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacementStatus\nmetadata: {namespace: default, name: web}\n"
	apitest.Run(t, hub, map[string]apitest.Case{
		"one":              {Create: head + "sourceStatus: {observedResourceIndex: \"3\"}\nlastUpdatedTime: \"2026-01-02T03:04:05Z\""},
		"without a status": {Create: head + `lastUpdatedTime: "2026-01-02T03:04:05Z"`, Refused: "sourceStatus: Required value"},
		"without a time":   {Create: head + `sourceStatus: {}`, Refused: "lastUpdatedTime: Required value"},
	})
}
