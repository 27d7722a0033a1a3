package statusback

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := utiljson.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		generations          generations
		status, before, want string
	}{
		"observed, and what the hub says": {
			generations{member: 7, hub: 3, current: true}, `{"observedGeneration":7,"readyReplicas":2}`, `{}`, `{"observedGeneration":3,"readyReplicas":2}`,
		},
		"not observed yet, for the first time": {
			generations{member: 7, hub: 3, current: true}, `{"observedGeneration":6}`, `{}`, `{}`,
		},
		"not observed yet, by a change in the member alone": {
			generations{member: 7, hub: 3, current: true}, `{"observedGeneration":6}`, `{"observedGeneration":3}`, `{"observedGeneration":3}`,
		},
		"not observed yet, and the one before was": {
			generations{member: 7, hub: 3, current: true}, `{"observedGeneration":6}`, `{"observedGeneration":2}`, `{"observedGeneration":2}`,
		},
		"observed, and the hub says something else by now": {
			generations{member: 7, hub: 3, current: false}, `{"observedGeneration":7}`, `{"observedGeneration":2}`, `{"observedGeneration":2}`,
		},
		"observed, and the member was taken back to an earlier snapshot": {
			generations{member: 8, hub: 3, current: false}, `{"observedGeneration":8}`, `{"observedGeneration":3}`, `{"observedGeneration":2}`,
		},
		"a member's number that is larger than the hub's is never shown": {
			generations{member: 700, hub: 1, current: false}, `{"observedGeneration":700}`, `{}`, `{}`,
		},
		"a number of another history on the hub": {
			generations{member: 7, hub: 3, current: true}, `{"observedGeneration":6}`, `{"observedGeneration":90}`, `{"observedGeneration":3}`,
		},
		"a status that counts nothing": {
			generations{member: 7, hub: 3, current: true}, `{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}`, `{"observedGeneration":3}`, `{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}`,
		},
		"conditions count, too": {
			generations{member: 7, hub: 3, current: true},
			`{"conditions":[{"type":"Ready","observedGeneration":7},{"type":"Old","observedGeneration":5},{"type":"Plain"}],"observedGeneration":7}`,
			`{"conditions":[{"type":"Old","observedGeneration":1},{"type":"Ready","observedGeneration":1}]}`,
			`{"conditions":[{"type":"Ready","observedGeneration":3},{"type":"Old","observedGeneration":1},{"type":"Plain"}],"observedGeneration":3}`,
		},
		"conditions that are none": {
			generations{member: 7, hub: 3, current: true}, `{"conditions":["a",{"type":"b"}],"observedGeneration":"x"}`, `{"conditions":{}}`, `{"conditions":["a",{"type":"b"}],"observedGeneration":"x"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := parse(t, tc.status)
			got := tc.generations.translate(status, parse(t, tc.before))
			if diff := cmp.Diff(parse(t, tc.want), got); diff != "" {
				t.Errorf("the status on the hub (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, tc.status), status); diff != "" {
				t.Errorf("the report itself was changed: %s", diff)
			}
		})
	}
}

func TestSameContent(t *testing.T) {
	t.Parallel()
	const manifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"app","labels":{"a":"1"}},"spec":{"replicas":2}}`
	for name, tc := range map[string]struct {
		object string
		want   bool
	}{
		"as the hub has it": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"app","uid":"1","generation":4},"spec":{"replicas":2},"status":{"replicas":1}}`, true},
		"another label":     {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"a":"2"}},"spec":{"replicas":2}}`, true},
		"another spec":      {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3}}`, false},
		"data beside it":    {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2},"data":{}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sameContent(&unstructured.Unstructured{Object: parse(t, manifest)}, &unstructured.Unstructured{Object: parse(t, tc.object)}); got != tc.want {
				t.Errorf("the same: %t, want %t", got, tc.want)
			}
		})
	}
}
