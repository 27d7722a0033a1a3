package policies_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRequesters: who asked a run for something is who the API server says it was, whatever the client says.
func TestRequesters(t *testing.T) {
	install(t)
	makeNamespaces(t, "requesters")
	spec := placementv1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful", State: placementv1.UpdateRunStateRun}
	for name, run := range map[string]placementv1.UpdateRunObject{
		"ClusterStagedUpdateRun": &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "asked"}, Spec: spec},
		"StagedUpdateRun":        &placementv1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "asked", Namespace: "requesters"}, Spec: spec},
	} {
		t.Run(name, func(t *testing.T) {
			ask(t, run)
		})
	}
}

func ask(t *testing.T, run placementv1.UpdateRunObject) {
	t.Helper()
	anna, bob := as(t, "anna"), as(t, "bob")
	add := func(claimed string) {
		run.UpdateRunSpec().ClusterActions = append(run.UpdateRunSpec().ClusterActions,
			placementv1.ClusterAction{Cluster: "paris", Action: placementv1.ClusterActionRetry, Reason: "mended", RequestedBy: claimed})
	}
	requesters := func() (names []string) {
		for _, a := range run.UpdateRunSpec().ClusterActions {
			names = append(names, a.RequestedBy)
		}
		return names
	}
	update := func(c client.Client, what string) {
		t.Helper()
		if err := c.Update(t.Context(), run); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	add("the queen")
	if err := anna.Create(t.Context(), run); err != nil {
		t.Fatalf("anna makes a run that is asked for something: %v", err)
	}
	add("anna") // the very entry that anna made
	update(bob, "bob asks for the same")
	add("")
	update(anna, "anna asks once more")
	run.UpdateRunSpec().ClusterActions[0].RequestedBy = "" // as a client may that does not know the field
	run.SetLabels(map[string]string{"a": "b"})
	update(bob, "bob labels the run")
	if diff := cmp.Diff([]string{"anna", "bob", "anna"}, requesters()); diff != "" {
		t.Errorf("who asked (-want +got):\n%s", diff)
	}
	run.UpdateRunSpec().Cancel = &placementv1.RunCancellation{Reason: "wrong image", RequestedBy: "anna"}
	update(bob, "bob cancels")
	run.SetLabels(nil)
	update(anna, "anna takes a label off")
	if got := run.UpdateRunSpec().Cancel.RequestedBy; got != "bob" {
		t.Errorf("the run was cancelled by %q", got)
	}
	if err := framework.Client(t, hub).Delete(t.Context(), run); err != nil {
		t.Errorf("delete the run: %v", err)
	}
}
