package division

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		target  map[string]int32
		held    []Held
		want    map[string]int32
		settled bool
	}{
		"the first time":                     {target: map[string]int32{"a": 5, "b": 5}, want: map[string]int32{"a": 5, "b": 5}, settled: true},
		"grow before shrink":                 {target: map[string]int32{"a": 5, "b": 5}, held: []Held{{"a", 10, 10}, {"b", 0, 0}}, want: map[string]int32{"a": 10, "b": 5}},
		"as many as are ready elsewhere":     {target: map[string]int32{"a": 5, "b": 5}, held: []Held{{"a", 10, 10}, {"b", 5, 2}}, want: map[string]int32{"a": 8, "b": 5}},
		"all are ready elsewhere":            {target: map[string]int32{"a": 5, "b": 5}, held: []Held{{"a", 10, 10}, {"b", 5, 5}}, want: map[string]int32{"a": 5, "b": 5}, settled: true},
		"what is not ready goes first":       {target: map[string]int32{"a": 5, "b": 5}, held: []Held{{"a", 10, 7}, {"b", 0, 0}}, want: map[string]int32{"a": 7, "b": 5}},
		"scaled down by a person":            {target: map[string]int32{"a": 3, "b": 2}, held: []Held{{"a", 4, 4}, {"b", 4, 4}}, want: map[string]int32{"a": 3, "b": 2}, settled: true},
		"scaled to nothing":                  {target: map[string]int32{"a": 0, "b": 0}, held: []Held{{"a", 4, 4}, {"b", 4, 4}}, want: map[string]int32{"a": 0, "b": 0}, settled: true},
		"a cluster goes once others have it": {target: map[string]int32{"b": 4}, held: []Held{{"a", 4, 4}, {"b", 0, 0}}, want: map[string]int32{"a": 4, "b": 4}},
		"a cluster goes":                     {target: map[string]int32{"b": 4}, held: []Held{{"a", 4, 4}, {"b", 4, 4}}, want: map[string]int32{"b": 4}, settled: true},
		"a cluster that is not heard of":     {target: map[string]int32{"b": 4}, held: []Held{{"a", 4, 0}, {"b", 0, 0}}, want: map[string]int32{"b": 4}, settled: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, settled := Next(tc.target, tc.held)
			if diff := cmp.Diff(tc.want, got); diff != "" || settled != tc.settled {
				t.Errorf("settled %t (-want +got):\n%s", settled, diff)
			}
		})
	}
}

// TestNextKeepsReady: whatever the members' pace, the replicas that are ready never become fewer than are wanted, or than they were;
// and once all that was given is ready, it ends at the shares.
func TestNextKeepsReady(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		members := map[string]*Held{}
		target := map[string]int32{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "has") {
				given := rapid.Int32Range(0, 20).Draw(t, "given")
				members[name] = &Held{Cluster: name, Given: given, Ready: rapid.Int32Range(0, given).Draw(t, "ready")}
			}
			if rapid.Bool().Draw(t, "gets") {
				target[name] = rapid.Int32Range(0, 20).Draw(t, "share")
			}
		}
		wanted := int32(0)
		for _, share := range target {
			wanted += share
		}
		ready := func() (sum int32) {
			for _, m := range members {
				sum += m.Ready
			}
			return sum
		}
		step := func() bool {
			var held []Held
			for _, m := range members {
				held = append(held, *m)
			}
			floor := min(wanted, ready())
			now, settled := Next(target, held)
			for name := range members {
				if _, stays := now[name]; !stays {
					delete(members, name)
				}
			}
			for name, given := range now {
				if members[name] == nil {
					members[name] = &Held{Cluster: name}
				}
				m := members[name]
				m.Given, m.Ready = given, min(m.Ready, given) // a member takes away those that are not ready first
			}
			if ready() < floor {
				t.Fatalf("%d are ready, of %d that were wanted: %v", ready(), floor, now)
			}
			return settled
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			step()
			if len(members) == 0 {
				continue
			}
			name := rapid.SampledFrom(names).Draw(t, "who")
			if m := members[name]; m != nil && m.Ready < m.Given {
				m.Ready++
			}
		}
		for range 3 { // all become ready
			for _, m := range members {
				m.Ready = m.Given
			}
			step()
		}
		got := map[string]int32{}
		for name, m := range members {
			got[name] = m.Given
		}
		if !maps.Equal(got, target) {
			t.Fatalf("ended at %v, want %v", got, target)
		}
	})
}
