package apply

import (
	"encoding/json"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestHeldBy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []objectKey
		all  bool
	}{
		"none":                {},
		"some":                {text: `[{"group":"apps","version":"v1","kind":"Deployment","namespace":"ns","name":"a"}]`, want: []objectKey{{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, namespace: "ns", name: "a"}}},
		"too many":            {text: "*", all: true},
		"what cannot be read": {text: "[{", all: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{placementv1.AnnotationHeldObjects: tc.text}}}
			got, all := heldBy(w)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(objectKey{})); diff != "" || all != tc.all {
				t.Errorf("all %v, want %v; keys (-want +got):\n%s", all, tc.all, diff)
			}
		})
	}
}

// An object that the hub could not override is not in the Work any more, and stays, while another is removed; and it is not
// forgotten: it goes when it is given up.
func testCannotBeOverridden(t *testing.T) {
	a := startAgent(t, "unsaid")
	w := a.create(a.work("unsaid", "work", 1, settings("unsaid-a", "1"), settings("unsaid-held", "1"), settings("unsaid-gone", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	hold := func(value string) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{placementv1.AnnotationHeldObjects: value}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.hub.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
	hold(`[{"version":"v1","kind":"ConfigMap","namespace":"default","name":"unsaid-held"}]`)
	before := a.live("unsaid-held")
	a.change(w, "1", settings("unsaid-a", "2"))
	framework.AwaitGone(t, a.member, settings("unsaid-gone", "1"))
	if held := a.live("unsaid-held"); held.UID != before.UID || held.Data["key"] != "1" || held.DeletionTimestamp != nil {
		t.Errorf("what could not be overridden is %v with UID %s, going since %v; want it as it was, with UID %s", held.Data, held.UID, held.DeletionTimestamp, before.UID)
	}
	hold("")
	a.change(w, "2", settings("unsaid-a", "3"))
	framework.AwaitGone(t, a.member, settings("unsaid-held", "1"))
}
