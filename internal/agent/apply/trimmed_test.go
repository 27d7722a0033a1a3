package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// differing are so many objects, each of which differs in so many places, or has drifted in them.
func differing(t *testing.T, objects, places int, drifted bool) []*manifest {
	t.Helper()
	var details []placementv1.PatchDetail
	for i := range places {
		details = append(details, placementv1.PatchDetail{Path: fmt.Sprintf("/data/%03d", i), ValueInMember: strings.Repeat("m", 200), ValueInHub: strings.Repeat("h", 200)})
	}
	var all []*manifest
	for i := range objects {
		m := deployment(t, fmt.Sprintf("web-%04d", i), 3)
		m.key.name, m.id.Ordinal = m.id.Name, int32(i)
		if found := (&comparison{details: details}); drifted {
			m.drift = found
		} else {
			m.diff = found
		}
		all = append(all, m)
	}
	return all
}

// TestTooManyPlaces: where not all places fit into the status, each object still says that it differs, and in what before
// anything else; the Work says that something is left out, until nothing is.
func TestTooManyPlaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		objects, places int
		drifted         bool
		// shown are the places that each object lists.
		shown   int
		trimmed bool
	}{
		"few objects differ":       {10, 100, false, 100, false},
		"some more differ":         {40, 100, false, 20, true},
		"many differ":              {150, 100, false, 5, true},
		"many differ in little":    {150, 5, false, 5, false},
		"very many differ":         {400, 100, false, 1, true},
		"more than a place each":   {1000, 100, false, 0, true},
		"some more have drifted":   {40, 100, true, 20, true},
		"very many have drifted":   {400, 100, true, 1, true},
		"few objects have drifted": {10, 100, true, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReporter(t)
			if !tc.drifted {
				r.strategy = reporting.WithDefaults()
			}
			r.report(t, 0, differing(t, tc.objects, tc.places, tc.drifted)...)
			status := r.current()
			if data, err := json.Marshal(status); err != nil || len(data) > maxStatus {
				t.Errorf("the status has %d bytes, error %v", len(data), err)
			}
			if got := len(status.ManifestConditions); got != tc.objects {
				t.Errorf("%d objects are listed, want %d", got, tc.objects)
			}
			w := &placementv1.Work{Status: *status}
			for i := range status.ManifestConditions {
				shown := diffs(w, i)
				if tc.drifted {
					shown = drifts(w, i)
				}
				if len(shown) != tc.shown {
					t.Fatalf("object %d lists %d places, want %d", i, len(shown), tc.shown)
				}
			}
			c := meta.FindStatusCondition(status.Conditions, placementv1.ConditionStatusTrimmed)
			switch {
			case !tc.trimmed && c != nil:
				t.Errorf("nothing is left out, but it says %s", c.Message)
			case tc.trimmed && (c == nil || c.Status != metav1.ConditionTrue || c.Reason != placementv1.ReasonOversized || c.ObservedGeneration != r.work.Generation ||
				!strings.Contains(c.Message, "512 KB") || !strings.Contains(c.Message, "not all places are listed")):
				t.Errorf("it says %+v", c)
			}
			r.report(t, time.Minute, differing(t, 2, 2, tc.drifted)...)
			if c := meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionStatusTrimmed); c != nil {
				t.Errorf("all fits again, but it says %s", c.Message)
			}
		})
	}
}

// Where not even the objects fit, those that do not differ are left out first.
func TestTooManyObjects(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.strategy = reporting.WithDefaults()
	same := differing(t, 3000, 0, false)
	same[2999].diff = &comparison{details: []placementv1.PatchDetail{{Path: "/spec"}}}
	r.report(t, 0, same...)
	status := r.current()
	last := status.ManifestConditions[len(status.ManifestConditions)-1]
	if len(status.ManifestConditions) >= 3000 || last.Identifier.Name != "web-2999" || last.DiffDetails == nil {
		t.Errorf("%d objects are listed, and the last is %+v", len(status.ManifestConditions), last.Identifier)
	}
	c := meta.FindStatusCondition(status.Conditions, placementv1.ConditionStatusTrimmed)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, fmt.Sprintf("%d manifests are not listed", 3000-len(status.ManifestConditions))) {
		t.Errorf("it says %+v", c)
	}
	if c := meta.FindStatusCondition(status.Conditions, placementv1.ConditionDiffReported); c == nil || !strings.Contains(c.Message, "(1 of 3000 differ)") {
		t.Errorf("the whole is %+v", c)
	}
}
