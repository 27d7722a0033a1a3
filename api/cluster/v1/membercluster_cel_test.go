package v1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
)

// cluster is a MemberCluster whose spec has these fields.
func cluster(spec string) string {
	return "{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, spec: {" + spec + "}}"
}

// named is a MemberCluster with a name.
func named(name string) string {
	return "{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {name: " + name + "}}"
}

func TestMemberCluster(t *testing.T) {
	apitest.Run(t, hub, map[string]apitest.Case{
		"a name is enough": {
			Create: named("member1"),
			Want: map[string]any{
				"spec.heartbeatPeriodSeconds": int64(60), "spec.identity": nil, "spec.deleteOptions": nil, "metadata.generation": int64(1),
			},
		},
		"a heartbeat of 1 second":     {Create: cluster("heartbeatPeriodSeconds: 1")},
		"a heartbeat of 600 seconds":  {Create: cluster("heartbeatPeriodSeconds: 600")},
		"a heartbeat of 0 seconds":    {Create: cluster("heartbeatPeriodSeconds: 0"), Refused: "should be greater than or equal to 1"},
		"a heartbeat of 601 seconds":  {Create: cluster("heartbeatPeriodSeconds: 601"), Refused: "should be less than or equal to 600"},
		"workloads are kept on leave": {Create: cluster("deleteOptions: {}"), Want: map[string]any{"spec.deleteOptions.workloads": "Keep"}},
		"workloads are removed":       {Create: cluster("deleteOptions: {workloads: Remove}")},
		"workloads are burnt":         {Create: cluster("deleteOptions: {workloads: Burn}"), Refused: `Unsupported value: "Burn"`},
		"a field that is not known":   {Create: cluster("tints: []"), Refused: `unknown field "spec.tints"`},
		"the spec may change": {
			Create: cluster("heartbeatPeriodSeconds: 1"), Update: "spec: {heartbeatPeriodSeconds: 2}",
			Want: map[string]any{"spec.heartbeatPeriodSeconds": int64(2)},
		},
		"a status": {
			Create: cluster(""),
			UpdateStatus: `
status:
  clusterID: 5f0a
  properties: {kubernetes-fleet.io/node-count: {value: "2", observationTime: "2026-01-02T03:04:05Z"}}
  resourceUsage: {capacity: {cpu: "16"}, allocatable: {cpu: 15500m}, available: {cpu: 12}, observationTime: "2026-01-02T03:04:05Z"}
  agentStatus: [{type: MemberAgent, lastReceivedHeartbeat: "2026-01-02T03:04:05Z"}]
`,
		},
		"a status with namespaces": {
			Create:       cluster(""),
			UpdateStatus: `status: {resourceUsage: {observationTime: "2026-01-02T03:04:05Z"}, namespaces: {default: "", app: app-work}}`,
			Want:         map[string]any{"status.namespaces": map[string]any{"default": "", "app": "app-work"}},
		},
		"a status with amounts in all forms": {
			Create:       cluster(""),
			UpdateStatus: `status: {resourceUsage: {observationTime: "2026-01-02T03:04:05Z", capacity: {a: 1, b: "1", c: 1500m, d: 16Gi, e: "1e3", f: "12E6", g: 1E, h: "-1.5", i: ".5"}}}`,
		},
		"a status with an amount that Go cannot read": {
			Create:       cluster(""),
			UpdateStatus: `status: {resourceUsage: {capacity: {cpu: "1e1.5"}}}`,
			Refused:      "capacity.cpu in body should match",
		},
		"a status with an amount of any size": {
			Create:       cluster(""),
			UpdateStatus: `status: {resourceUsage: {capacity: {cpu: "1e2147483649"}}}`,
			Refused:      "capacity.cpu in body should match",
		},
		"a status with an amount that is none": {
			Create:       cluster(""),
			UpdateStatus: `status: {resourceUsage: {capacity: {cpu: many}}}`,
			Refused:      "capacity.cpu in body should match",
		},
	})
}

func TestMemberClusterTaints(t *testing.T) {
	taints := func(list string) string { return cluster("taints: [" + list + "]") }
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("{key: example.com/key-%d, effect: NoSchedule}", i)
		}
		return taints(strings.Join(list, ", "))
	}
	const key, value = "a taint's key must be written like the key of a label", "a taint's value must be written like the value of a label"
	apitest.Run(t, hub, map[string]apitest.Case{
		"none": {Create: taints("")},
		"one that drains": {
			Create: taints("{key: cordon-key, value: cordon-value, effect: NoSchedule}"),
			Want:   map[string]any{"spec.taints": []any{map[string]any{"key": "cordon-key", "value": "cordon-value", "effect": "NoSchedule"}}},
		},
		"without a value":      {Create: taints("{key: example.com/gpu, effect: NoSchedule}")},
		"with an empty value":  {Create: taints(`{key: gpu, value: "", effect: NoSchedule}`)},
		"without a key":        {Create: taints("{value: a, effect: NoSchedule}"), Refused: "key: Required value"},
		"with an empty key":    {Create: taints(`{key: "", effect: NoSchedule}`), Refused: "should be at least 1 chars long"},
		"without an effect":    {Create: taints("{key: gpu}"), Refused: "effect: Required value"},
		"an effect of a node":  {Create: taints("{key: gpu, effect: NoExecute}"), Refused: `Unsupported value: "NoExecute"`},
		"a key with a space":   {Create: taints(`{key: "a b", effect: NoSchedule}`), Refused: key},
		"a key with slashes":   {Create: taints("{key: a/b/c, effect: NoSchedule}"), Refused: key},
		"the longest key":      {Create: taints("{key: " + strings.Repeat("a", 63) + ", effect: NoSchedule}")},
		"a key that is longer": {Create: taints("{key: " + strings.Repeat("a", 64) + ", effect: NoSchedule}"), Refused: key},
		"a value with a slash": {Create: taints("{key: gpu, value: a/b, effect: NoSchedule}"), Refused: value},
		"a value that is long": {Create: taints("{key: gpu, value: " + strings.Repeat("a", 64) + ", effect: NoSchedule}"), Refused: "Too long"},
		"one key twice":        {Create: taints("{key: gpu, value: a, effect: NoSchedule}, {key: gpu, value: b, effect: NoSchedule}"), Refused: "Duplicate value"},
		"a hundred":            {Create: many(100)},
		"a hundred and one":    {Create: many(101), Refused: "must have at most 100 items"},
		"taken away": {
			Create: taints("{key: gpu, effect: NoSchedule}"), Update: "spec: {taints: null}", Want: map[string]any{"spec.taints": nil},
		},
	})
}

func TestMemberClusterName(t *testing.T) {
	const form = "metadata.name must be lower-case letters, digits and dashes"
	cases := map[string]apitest.Case{
		"of 50 characters": {Create: named(strings.Repeat("m", 50))},
		"of 51 characters": {Create: named(strings.Repeat("m", 51)), Refused: "metadata.name max length is 50, since the hub names the cluster's namespace fleet-member-<name>"},
		"of 63 characters": {Create: named(strings.Repeat("m", 63)), Refused: "metadata.name max length is 50"},
		"of 64 characters": {Create: named(strings.Repeat("m", 64)), Refused: "metadata.name max length is 63"},
		"with a dot":       {Create: named("member.example"), Refused: form},
	}
	for _, name := range []string{"m", "member-1", "1a"} {
		cases[name] = apitest.Case{Create: named(name)}
	}
	apitest.Run(t, hub, cases)
}

func TestMemberClusterIdentity(t *testing.T) {
	identity := func(fields string) string { return cluster("identity: {" + fields + "}") }
	const systems = "identity.name must not be a user of Kubernetes' own, whose names begin with system:"
	apitest.Run(t, hub, map[string]apitest.Case{
		"a user":                         {Create: identity("kind: User, name: agent, apiGroup: rbac.authorization.k8s.io")},
		"a service account":              {Create: identity("kind: ServiceAccount, name: agent, namespace: fleet-system")},
		"a service account of nowhere":   {Create: identity("kind: ServiceAccount, name: agent"), Refused: "identity.namespace is required when identity.kind is ServiceAccount"},
		"a service account of nowhere 2": {Create: identity(`kind: ServiceAccount, name: agent, namespace: ""`), Refused: "identity.namespace is required"},
		"a group":                        {Create: identity("kind: Group, name: agents"), Refused: "identity.kind must be User or ServiceAccount"},
		"nobody":                         {Create: identity(`kind: User, name: ""`), Refused: "identity.name is required"},
		"a system user":                  {Create: identity(`kind: User, name: "system:admin"`), Refused: systems},
		"a system group as a user":       {Create: identity(`kind: User, name: "system:masters"`), Refused: systems},
		"a node":                         {Create: identity(`kind: User, name: "system:node:one"`), Refused: systems},
		"a system group":                 {Create: identity(`kind: Group, name: "system:masters"`), Refused: "identity.kind must be User or ServiceAccount"},
		"a service account as a user":    {Create: identity(`kind: User, name: "system:serviceaccount:fleet-system:agent"`)},
		"one without a namespace":        {Create: identity(`kind: User, name: "system:serviceaccount:agent"`), Refused: systems},
		"all service accounts":           {Create: identity(`kind: User, name: "system:serviceaccounts"`), Refused: systems},
		"a user with a colon":            {Create: identity(`kind: User, name: "oidc:jane@example.com"`)},
		"a service account's full name":  {Create: identity(`kind: ServiceAccount, name: "system:serviceaccount:a:b", namespace: a`), Refused: "identity.name must be the service account's own name"},
		"becoming a system user":         {Create: identity("kind: User, name: agent"), Update: `spec: {identity: {name: "system:admin"}}`, Refused: systems},
		"no kind":                        {Create: identity("name: agent"), Refused: "spec.identity.kind: Required value"},
	})
}

func TestInternalMemberCluster(t *testing.T) {
	internal := func(spec string) string {
		return "{apiVersion: cluster.kubernetes-fleet.io/v1, kind: InternalMemberCluster, metadata: {namespace: default}, spec: {" + spec + "}}"
	}
	apitest.Run(t, hub, map[string]apitest.Case{
		"to join":                    {Create: internal("state: Join, heartbeatPeriodSeconds: 60")},
		"to leave, removing":         {Create: internal("state: Leave, workloads: Remove")},
		"a state that is not known":  {Create: internal("state: Sleep"), Refused: `Unsupported value: "Sleep"`},
		"no state":                   {Create: internal("heartbeatPeriodSeconds: 60"), Refused: "spec.state: Required value"},
		"workloads that are unknown": {Create: internal("state: Leave, workloads: Burn"), Refused: `Unsupported value: "Burn"`},
		"from joining to leaving":    {Create: internal("state: Join"), Update: "spec: {state: Leave}"},
		"the agent's account": {
			Create:       internal("state: Join"),
			UpdateStatus: `status: {clusterID: 5f0a, agentStatus: [{type: MemberAgent, conditions: [{type: Joined, status: "True", reason: r, message: m, lastTransitionTime: "2026-01-02T03:04:05Z"}]}]}`,
		},
	})
}
