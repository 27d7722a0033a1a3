package drift

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
)

type detail = placementv1.PatchDetail

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		member, hub string
		saidOnly    bool
		want        []detail
	}{
		"nothing":        {member: `{spec: {a: {b: [1, {c: x}]}}}`, hub: `{spec: {a: {b: [1, {c: x}]}}}`},
		"a nested field": {member: `{spec: {a: {b: {c: old}, same: 1}}}`, hub: `{spec: {a: {b: {c: new}, same: 1}}}`, want: []detail{{Path: "/spec/a/b/c", ValueInMember: "old", ValueInHub: "new"}}},
		"fields of one side": {
			member: `{spec: {both: 1, theirs: x}}`, hub: `{spec: {both: 1, ours: z}}`,
			want: []detail{{Path: "/spec/ours", ValueInHub: "z"}, {Path: "/spec/theirs", ValueInMember: "x"}},
		},
		"fields of the member, where only what is said counts": {
			member: `{spec: {both: 1, theirs: x, deep: {more: y}}}`, hub: `{spec: {both: 1, deep: {}}}`, saidOnly: true,
		},
		"keys that a pointer escapes": {member: `{data: {a/b: "1", c~d: "1"}}`, hub: `{data: {a/b: "2", c~d: "2"}}`, want: []detail{{Path: "/data/a~1b", ValueInMember: "1", ValueInHub: "2"}, {Path: "/data/c~0d", ValueInMember: "1", ValueInHub: "2"}}},
		"values of another shape": {
			member: `{spec: {a: text, b: [1], c: {d: 1}}}`, hub: `{spec: {a: {b: 1}, b: {c: 1}, c: true}}`,
			want: []detail{{Path: "/spec/a", ValueInMember: "text", ValueInHub: `{"b":1}`}, {Path: "/spec/b", ValueInMember: "[1]", ValueInHub: `{"c":1}`}, {Path: "/spec/c", ValueInMember: `{"d":1}`, ValueInHub: "true"}},
		},

		"nulls on both sides":     {member: `{spec: {a: null}}`, hub: `{spec: {}}`},
		"null for what is absent": {member: `{spec: {}}`, hub: `{spec: {a: null}}`},
		"null for a value":        {member: `{spec: {a: x, b: null}}`, hub: `{spec: {a: null, b: z}}`, want: []detail{{Path: "/spec/a", ValueInMember: "x", ValueInHub: ""}, {Path: "/spec/b", ValueInMember: "", ValueInHub: "z"}}},
		"what is empty is not nothing": {
			member: `{spec: {a: {}, b: [], c: ""}}`, hub: `{spec: {d: {}, e: []}}`,
			want: []detail{{Path: "/spec/a", ValueInMember: "{}", ValueInHub: ""}, {Path: "/spec/b", ValueInMember: "[]", ValueInHub: ""}, {Path: "/spec/c", ValueInMember: "", ValueInHub: ""}, {Path: "/spec/d", ValueInMember: "", ValueInHub: "{}"}, {Path: "/spec/e", ValueInMember: "", ValueInHub: "[]"}},
		},

		"one number, written twice": {member: `{spec: {a: 1, b: [2.0], c: 1e3}}`, hub: `{spec: {a: 1.0, b: [2], c: 1000}}`},
		"two numbers":               {member: `{spec: {a: 1, b: 1.5}}`, hub: `{spec: {a: 2, b: 1.25}}`, want: []detail{{Path: "/spec/a", ValueInMember: "1", ValueInHub: "2"}, {Path: "/spec/b", ValueInMember: "1.5", ValueInHub: "1.25"}}},
		"a number and its text":     {member: `{spec: {a: 1}}`, hub: `{spec: {a: "1"}}`, want: []detail{{Path: "/spec/a", ValueInMember: "1", ValueInHub: "1"}}},
		"a text and true":           {member: `{spec: {a: "true"}}`, hub: `{spec: {a: true}}`, want: []detail{{Path: "/spec/a", ValueInMember: "true", ValueInHub: "true"}}},

		"a list":                 {member: `{spec: {l: [a, b, c]}}`, hub: `{spec: {l: [a, x, c]}}`, want: []detail{{Path: "/spec/l/1", ValueInMember: "b", ValueInHub: "x"}}},
		"a list with more":       {member: `{spec: {l: [a, b]}}`, hub: `{spec: {l: [a]}}`, want: []detail{{Path: "/spec/l/1", ValueInMember: "b"}}},
		"a list with more, said": {member: `{spec: {l: [a, b]}}`, hub: `{spec: {l: [a]}}`, saidOnly: true, want: []detail{{Path: "/spec/l/1", ValueInMember: "b"}}},
		"a list with less":       {member: `{spec: {l: [a]}}`, hub: `{spec: {l: [a, {b: 1}]}}`, want: []detail{{Path: "/spec/l/1", ValueInHub: `{"b":1}`}}},
		"the order of a list":    {member: `{spec: {l: [a, b]}}`, hub: `{spec: {l: [b, a]}}`, want: []detail{{Path: "/spec/l/0", ValueInMember: "a", ValueInHub: "b"}, {Path: "/spec/l/1", ValueInMember: "b", ValueInHub: "a"}}},
		"the order of names":     {member: `{spec: {l: [{name: a, v: 1}, {name: b, v: 2}]}}`, hub: `{spec: {l: [{name: b, v: 2}, {name: a, v: 1}]}}`},
		"an entry with a name": {
			member: `{spec: {l: [{name: theirs, v: 9}, {name: a, v: 1, more: x}]}}`, hub: `{spec: {l: [{name: a, v: 2}, {name: ours}]}}`, saidOnly: true,
			want: []detail{{Path: "/spec/l/0", ValueInMember: `{"name":"theirs","v":9}`, ValueInHub: ""}, {Path: "/spec/l/0/v", ValueInMember: "1", ValueInHub: "2"}, {Path: "/spec/l/1", ValueInHub: `{"name":"ours"}`}},
		},
		"names that two entries share": {
			member: `{spec: {l: [{name: a, v: 1}, {name: a, v: 2}]}}`, hub: `{spec: {l: [{name: a, v: 2}, {name: a, v: 2}]}}`, want: []detail{{Path: "/spec/l/0/v", ValueInMember: "1", ValueInHub: "2"}},
		},
		"lists in lists": {member: `{spec: {l: [[a, b], [c]]}}`, hub: `{spec: {l: [[a, x], [c]]}}`, want: []detail{{Path: "/spec/l/0/1", ValueInMember: "b", ValueInHub: "x"}}},

		"what servers and controllers keep": {
			member: `{apiVersion: v1, metadata: {uid: "1", resourceVersion: "7", generation: 3, finalizers: [x], ownerReferences: [{uid: "2"}], managedFields: [{manager: us}]}, status: {a: 1}}`,
			hub:    `{apiVersion: v2, metadata: {uid: "2"}, status: {a: 2}}`,
		},
		"labels and annotations of systems": {
			member: `{metadata: {labels: {app.kubernetes.io/part-of: x, pod-template.k8s.io/h: x}, annotations: {rollouts.kruise.io/hash: x, fleetwright.io/a: x, kubernetes-fleet.io/spec-hash: x, deployment.kubernetes.io/revision: "3"}}}`,
			hub:    `{metadata: {}}`,
		},
		"labels and annotations of people": {
			member: `{metadata: {labels: {tier: gold}, annotations: {example.com/note: x, notkubernetes.io: z}}}`, hub: `{metadata: {labels: {tier: free}}}`,
			want: []detail{{Path: "/metadata/annotations/example.com~1note", ValueInMember: "x", ValueInHub: ""}, {Path: "/metadata/annotations/notkubernetes.io", ValueInMember: "z", ValueInHub: ""}, {Path: "/metadata/labels/tier", ValueInMember: "gold", ValueInHub: "free"}},
		},
		"a system's label that is said": {
			member: `{metadata: {labels: {app.kubernetes.io/name: theirs}}}`, hub: `{metadata: {labels: {app.kubernetes.io/name: ours}}}`,
			want: []detail{{Path: "/metadata/labels/app.kubernetes.io~1name", ValueInMember: "theirs", ValueInHub: "ours"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member, hub := object(t, tc.member), object(t, tc.hub)
			before := []any{member.DeepCopy().Object, hub.DeepCopy().Object}
			if diff := cmp.Diff(tc.want, Compare(member, hub, hub, tc.saidOnly)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, []any{member.Object, hub.Object}); diff != "" {
				t.Errorf("an object was changed (-want +got):\n%s", diff)
			}
		})
	}
}

// What the manifest says decides, and not what the member would make of it.
func TestCompareByTheManifest(t *testing.T) {
	t.Parallel()
	member := object(t, `{metadata: {labels: {app.kubernetes.io/name: theirs}}}`)
	hub := object(t, `{metadata: {labels: {app.kubernetes.io/name: ours}}}`)
	if got := Compare(member, hub, object(t, `{metadata: {}}`), false); got != nil {
		t.Errorf("of a label that no manifest says: %v", got)
	}
}

// TestCompareRedacts: what a Secret holds is not shown, wherever it is and whichever side has it; all else is.
func TestCompareRedacts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		member, hub string
		want        []detail
	}{
		"data":       {`{kind: Secret, data: {p: swordfish}}`, `{kind: Secret, data: {p: tr0ub4dor}}`, []detail{{Path: "/data/p", ValueInMember: Redacted, ValueInHub: Redacted}}},
		"stringData": {`{kind: Secret}`, `{kind: Secret, stringData: {p: tr0ub4dor}}`, []detail{{Path: "/stringData", ValueInMember: "", ValueInHub: Redacted}}},
		"one side alone": {
			`{kind: Secret, data: {p: swordfish}}`, `{kind: Secret, data: {q: tr0ub4dor}}`, []detail{{Path: "/data/p", ValueInMember: Redacted, ValueInHub: ""}, {Path: "/data/q", ValueInMember: "", ValueInHub: Redacted}},
		},
		"all of it":         {`{kind: Secret, data: {p: swordfish}}`, `{kind: Secret}`, []detail{{Path: "/data", ValueInMember: Redacted, ValueInHub: ""}}},
		"of another shape":  {`{kind: Secret, data: swordfish}`, `{kind: Secret, data: {p: [tr0ub4dor]}}`, []detail{{Path: "/data", ValueInMember: Redacted, ValueInHub: Redacted}}},
		"numbers":           {`{kind: Secret, data: {pin: 1234}}`, `{kind: Secret, data: {pin: 4321}}`, []detail{{Path: "/data/pin", ValueInMember: Redacted, ValueInHub: Redacted}}},
		"of one kind alone": {`{kind: ConfigMap, data: {p: swordfish}}`, `{kind: Secret, data: {p: tr0ub4dor}}`, []detail{{Path: "/data/p", ValueInMember: Redacted, ValueInHub: Redacted}, {Path: "/kind", ValueInMember: "ConfigMap", ValueInHub: "Secret"}}},
		"its type":          {`{kind: Secret, type: Opaque}`, `{kind: Secret, type: tls}`, []detail{{Path: "/type", ValueInMember: "Opaque", ValueInHub: "tls"}}},
		"a ConfigMap":       {`{kind: ConfigMap, data: {p: open}}`, `{kind: ConfigMap, data: {p: word}}`, []detail{{Path: "/data/p", ValueInMember: "open", ValueInHub: "word"}}},
		"within an object": {
			`{kind: E, data: {s: {kind: Secret, data: {p: swordfish}}}}`, `{kind: E, data: {s: {kind: Secret, data: {p: tr0ub4dor}}}}`, []detail{{Path: "/data/s/data/p", ValueInMember: Redacted, ValueInHub: Redacted}},
		},
		"within a value that is shown": {
			`{kind: E}`, `{kind: E, items: [{kind: Secret, metadata: {name: a}, data: {p: tr0ub4dor}, stringData: {q: swordfish}}]}`,
			[]detail{{Path: "/items", ValueInHub: `[{"data":"` + Redacted + `","kind":"Secret","metadata":{"name":"a"},"stringData":"` + Redacted + `"}]`}},
		},
		"an enveloping ConfigMap": {
			`{kind: ConfigMap, metadata: {annotations: {` + envelope + `: "true"}}, data: {s: swordfish}}`, `{kind: ConfigMap, metadata: {annotations: {` + envelope + `: "true"}}, data: {s: tr0ub4dor}}`,
			[]detail{{Path: "/data/s", ValueInMember: Redacted, ValueInHub: Redacted}},
		},
		"kubectl's record": {
			`{kind: Secret, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: swordfish}}}`, `{kind: Secret, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: tr0ub4dor}}}`, nil,
		},
		"our own record": {
			`{kind: Secret, metadata: {annotations: {` + Merged + `: swordfish}}}`, `{kind: Secret}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := object(t, tc.hub)
			got := Compare(object(t, tc.member), hub, hub, false)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text := fmt.Sprint(got); strings.Contains(text, "swordfish") || strings.Contains(text, "tr0ub4dor") {
				t.Errorf("it shows what is secret: %s", text)
			}
		})
	}
}

// A hundred places are listed, always the same ones, and of a long value the beginning.
func TestCompareIsBounded(t *testing.T) {
	t.Parallel()
	var member, hub strings.Builder
	for i := range 250 {
		fmt.Fprintf(&member, "k%03d: a, ", i)
		fmt.Fprintf(&hub, "k%03d: b, ", i)
	}
	m, h := object(t, "{data: {"+member.String()+"}}"), object(t, "{data: {"+hub.String()+"}}")
	got := Compare(m, h, h, false)
	if len(got) != 100 || got[0].Path != "/data/k000" || got[99].Path != "/data/k099" {
		t.Errorf("%d places, of which the first is %v", len(got), got[0])
	}
	long := strings.Repeat("é", 1000)
	h = object(t, `{data: {text: `+long+`, list: [`+long+`]}}`)
	for _, d := range Compare(object(t, "{data: {}}"), h, h, false) {
		if v := d.ValueInHub; len(v) > 512 || len(v) < 500 || !utf8.ValidString(v) || !strings.HasSuffix(v, "…") {
			t.Errorf("%s is shown in %d bytes: …%s", d.Path, len(v), v[max(0, len(v)-10):])
		}
	}
}
