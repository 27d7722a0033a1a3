package division

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDeschedule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		clusters []Stranded
		left     map[string]int32
		taken    int32
	}{
		"all are well":         {clusters: []Stranded{{"a", 4, 4, 0}, {"b", 4, 4, 0}}, left: map[string]int32{"a": 4, "b": 4}},
		"two have no node":     {clusters: []Stranded{{"a", 4, 2, 2}, {"b", 4, 4, 0}}, left: map[string]int32{"a": 2, "b": 4}, taken: 2},
		"not below the ready":  {clusters: []Stranded{{"a", 4, 3, 4}}, left: map[string]int32{"a": 3}, taken: 1},
		"surge pods of others": {clusters: []Stranded{{"a", 4, 4, 2}}, left: map[string]int32{"a": 4}},
		"none ready":           {clusters: []Stranded{{"a", 2, 0, 2}}, left: map[string]int32{"a": 0}, taken: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, taken := Deschedule(tc.clusters)
			if diff := cmp.Diff(tc.left, left); diff != "" || taken != tc.taken {
				t.Errorf("took %d (-want +got):\n%s", taken, diff)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		c := Stranded{"a", rapid.Int32Range(0, 50).Draw(t, "given"), rapid.Int32Range(0, 60).Draw(t, "ready"), rapid.Int32Range(0, 60).Draw(t, "unschedulable")}
		left, taken := Deschedule([]Stranded{c})
		if got := left["a"]; got < 0 || got > c.Given || got < min(c.Ready, c.Given) || got+taken != c.Given {
			t.Fatalf("%+v is left with %d, and %d taken", c, got, taken)
		}
	})
}
