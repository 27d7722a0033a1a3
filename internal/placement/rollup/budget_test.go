package rollup_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	"pgregory.net/rapid"
)

var longText = strings.Repeat("é", 8000)

func failing(cluster string, failures, length int) placementv1.BindingObject {
	words := append([]string{"on1", "Applied=False/NotAllWorkHaveBeenApplied"}, synced...)
	b := binding(cluster, words...)
	message := longText[:2*length]
	for i := range failures {
		f := failure(message)
		f.Name = fmt.Sprintf("config-%d", i)
		b.BindingStatus().FailedPlacements = append(b.BindingStatus().FailedPlacements, f)
	}
	return b
}

func jsonSize(t interface{ Fatal(...any) }, v any) int {
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return len(encoded)
}

func TestThreeThousandClustersAllFailing(t *testing.T) {
	in := input(external)
	for i := range 3000 {
		in.Bindings = append(in.Bindings, failing(fmt.Sprintf("cluster-%04d", i), 100, 8000))
	}
	in.Selected.Count = 5000
	for i := range 5000 {
		in.Selected.Resources = append(in.Selected.Resources, placementv1.ResourceIdentifier{
			Group: "example.com", Version: "v1", Kind: "Widget", Namespace: "demo", Name: fmt.Sprintf("%0200d", i),
		})
	}
	status := rollup.Status(in)
	if size := jsonSize(t, status); size > rollup.Budget || size < rollup.Budget*3/4 {
		t.Errorf("the status has %d bytes, want up to, and nearly, %d", size, rollup.Budget)
	}
	s := status.ClusterSummary
	shown := len(status.PlacementStatuses)
	if s.Selected != 3000 || s.Failed != 3000 || int(s.Omitted) != 3000-shown || shown < 50 {
		t.Errorf("summary %+v with %d rows", *s, shown)
	}
	for _, row := range status.PlacementStatuses {
		if len(row.FailedPlacements) != 1 {
			t.Fatalf("%s has %d failures, want the one that there is room for", row.ClusterName, len(row.FailedPlacements))
		}
	}
	if len(status.SelectedResources) == 0 || status.SelectedResourceCount != 5000 {
		t.Errorf("%d of %d selected resources", len(status.SelectedResources), status.SelectedResourceCount)
	}
}

func TestFewClustersKeepAllTheirFailures(t *testing.T) {
	in := input(external)
	for i := range 3 {
		in.Bindings = append(in.Bindings, failing(fmt.Sprintf("cluster-%d", i), 100, 100))
	}
	for _, row := range rollup.Status(in).PlacementStatuses {
		if len(row.FailedPlacements) != 100 {
			t.Errorf("%s has %d failures, want 100", row.ClusterName, len(row.FailedPlacements))
		}
	}
}

func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := input(external)
		clusters := rapid.IntRange(0, 150).Draw(t, "clusters")
		failures := rapid.SampledFrom([]int{0, 1, 5, 30}).Draw(t, "failures")
		length := rapid.SampledFrom([]int{0, 10, 1000, 5000}).Draw(t, "length")
		for i := range clusters {
			name := fmt.Sprintf("%s-%d", rapid.StringMatching(`[a-z]{1,40}`).Draw(t, "name"), i)
			if rapid.Bool().Draw(t, "fails") {
				in.Bindings = append(in.Bindings, failing(name, failures, length))
			} else {
				in.Bindings = append(in.Bindings, binding(name, "on1", "done"))
			}
		}
		status := rollup.Status(in)
		if size := jsonSize(t, status); size > rollup.Budget {
			t.Fatalf("the status has %d bytes", size)
		}
		s := status.ClusterSummary
		if int(s.Selected) != clusters || len(status.PlacementStatuses)+int(s.Omitted) != clusters || s.Failed+s.Available != s.Selected {
			t.Fatalf("summary %+v of %d clusters with %d rows", *s, clusters, len(status.PlacementStatuses))
		}
		sawDone := false
		for _, row := range status.PlacementStatuses {
			done := row.Conditions[len(row.Conditions)-1].Type == placementv1.ConditionAvailable
			if sawDone && !done {
				t.Fatal("a cluster that is done comes before one that is not")
			}
			sawDone = done
		}
	})
}
