package apply

import (
	"context"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testVersionDropped is a version of an API that the member does not serve any more: its objects are there still, in another
// one, and are given up there.
func testVersionDropped(t *testing.T) {
	a := startAgent(t, "dropped")
	definition := widgets("doodads", "Doodad")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	old := (&unstructured.Unstructured{Object: versions[0].(map[string]any)}).DeepCopy().Object
	old["name"], old["storage"] = "v1beta1", false
	if err := unstructured.SetNestedSlice(definition.Object, append(versions, any(old)), "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := a.member.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	beta := func(name string) *unstructured.Unstructured {
		o := widget("Doodad", name, map[string]any{"size": int64(1)})
		o.SetAPIVersion("example.com/v1beta1")
		return o
	}
	w := a.create(a.work("dropped", "work", 1, beta("dropped-a"), beta("dropped-b")))
	a.await(w, placementv1.ConditionApplied, applied)
	noBeta := []byte(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
	if err := a.member.Patch(t.Context(), definition, client.RawPatch("application/json-patch+json", noBeta)); err != nil {
		t.Fatal(err)
	}
	awaitUnserved(t, a, beta("dropped-a"))
	// What is not wanted any more is removed, and not just forgotten.
	a.change(w, "1", beta("dropped-a"))
	framework.AwaitGone(t, a.member, widget("Doodad", "dropped-b", nil))
	a.await(w, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	if c := meta.FindStatusCondition(w.Status.ManifestConditions[0].Conditions, placementv1.ConditionApplied); c.Reason != placementv1.ReasonManifestDecodingErred {
		t.Errorf("told %s: %s", c.Reason, c.Message)
	}
	if remaining, err := a.applier.Leave(t.Context(), clusterv1.WorkloadsKeep); err != nil || len(remaining) > 0 {
		t.Fatalf("Leave: %v remain, error %v", remaining, err)
	}
	kept := widget("Doodad", "dropped-a", nil)
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatal(err)
	}
	if owners := kept.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("the object that was kept is still owned by %v: the garbage collector would take it", owners)
	}
}

// awaitUnserved waits until the member does not serve the kind of an object in its version. It asks as the applier does: a
// client that looks kinds up first would never get to ask.
func awaitUnserved(t *testing.T, a *agent, o *unstructured.Unstructured) {
	t.Helper()
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	objects := a.applier.resource(resource, o.GetNamespace())
	err := utilwait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, framework.Patience, true, func(ctx context.Context) (bool, error) {
		_, err := objects.Get(ctx, o.GetName(), metav1.GetOptions{})
		return unserved(err), nil
	})
	if err != nil {
		t.Fatalf("the member goes on serving %s: %v", o.GroupVersionKind(), err)
	}
}

// testServedNowhere is an object whose kind the member does not serve at all: it is gone with its definition, and may be
// there while that exists.
func testServedNowhere(t *testing.T) {
	a := startAgent(t, "nowhere")
	definition := widgets("whatnots", "Whatnot")
	if err := a.member.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	w := a.create(a.work("nowhere", "work", 1, widget("Whatnot", "nowhere-a", map[string]any{})))
	a.await(w, placementv1.ConditionApplied, applied)
	hide := []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	if err := a.member.Patch(t.Context(), definition, client.RawPatch("application/json-patch+json", hide)); err != nil {
		t.Fatal(err)
	}
	awaitUnserved(t, a, widget("Whatnot", "nowhere-a", nil))
	if _, err := a.applier.Leave(t.Context(), clusterv1.WorkloadsKeep); err == nil {
		t.Error("let go of, although nobody can take the owner off the object")
	}
	framework.Remove(t, a.member, definition)
	if remaining, err := a.applier.Leave(t.Context(), clusterv1.WorkloadsKeep); err != nil || len(remaining) > 0 {
		t.Errorf("Leave, without the kind: %v remain, error %v", remaining, err)
	}
}

func TestUnserved(t *testing.T) {
	t.Parallel()
	things := schema.GroupResource{Group: "example.com", Resource: "things"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"the object is not there":    {apierrors.NewNotFound(things, "a"), false},
		"the path is not there":      {apierrors.NewGenericServerResponse(404, "get", things, "a", "404 page not found", 0, true), true},
		"a path, no object named":    {apierrors.NewGenericServerResponse(404, "get", things, "", "", 0, false), true},
		"a 404 that says nothing":    {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound}}, true},
		"another error":              {apierrors.NewGenericServerResponse(503, "get", things, "a", "", 0, true), false},
		"no error":                   {nil, false},
		"the namespace is not there": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "app"), false},
		"an error that is no answer": {errorText("EOF"), false},
	} {
		if got := unserved(tc.err); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
